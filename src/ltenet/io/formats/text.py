"""The one way to open a file, split it into lines, and complain with file and line.

Memory grows linearly with the file: bytes, decoded text and lines together take at most about 100
bytes for each byte read.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import NamedTuple

from ltenet.errors import InputError

_SEPARATORS = re.compile(r"[\s,;]+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_SHOWN = 60


class Lines(NamedTuple):
    """The lines of a file that hold something.

    Attributes
    ----------
    path
        The file, for messages.
    numbers
        Line numbers, from 1.
    texts
        The lines without comments and without surrounding blanks; never empty.
    """

    path: Path
    numbers: list[int]
    texts: list[str]

    def part(self, start: int, stop: int | None = None) -> Lines:
        """Lines `start` to `stop` of these."""
        return Lines(self.path, self.numbers[start:stop], self.texts[start:stop])

    def failure(self, index: int, reason: str, advice: str) -> InputError:
        """Return the error of line `index`; an index past the end means the last line."""
        line = self.numbers[min(index, len(self.numbers) - 1)] if self.numbers else None
        return failure(self.path, line, reason, advice)


def failure(path: Path, line: int | None, reason: str, advice: str) -> InputError:
    """Return the error of a damaged file: "FILE, line N: got ..., expected ...; try ..."."""
    where = f"{path}" if line is None else f"{path}, line {line}"
    return InputError(f"{where}: {reason}; {advice}")


def shown(text: str) -> str:
    """Quote a text in a message, shortened where it is long."""
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}...'"


def read_bytes(path: Path, *, limit: int | None = None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise failure(path, None, "got no regular file, expected one", "try copying it first")
        if limit is not None and status.st_size > limit:
            raise failure(
                path,
                None,
                f"got {status.st_size:,} bytes, expected at most {limit:,}",
                "try checking that this is the right file",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise failure(
            path,
            None,
            f"got a file that cannot be read ({reason}), expected a readable one",
            "try checking the path and its permissions",
        ) from None


def read_text(path: Path, *, limit: int | None = None) -> str:
    """Return the text of a UTF-8 file, without a byte-order mark."""
    data = read_bytes(path, limit=limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise failure(
            path,
            data.count(b"\n", 0, error.start) + 1,
            "got bytes that are not UTF-8 text, expected a text file",
            "try another suffix if the file has another format inside",
        ) from None


def read_lines(path: Path, *, comment: str = "#") -> Lines:
    """Return the lines of a UTF-8 text file, comments and empty lines left out."""
    return split_lines(path, read_text(path), comment=comment)


def split_lines(path: Path, text: str, *, comment: str | None = None, after: int = 0) -> Lines:
    """Return the non-empty lines of a text that follows line `after` of its file."""
    numbers, texts = [], []
    for number, line in enumerate(text.splitlines(), start=after + 1):
        kept = (line if comment is None else line.split(comment, 1)[0]).strip()
        if kept:
            numbers.append(number)
            texts.append(kept)
    return Lines(path, numbers, texts)


def fields(text: str) -> list[str]:
    """Split a line at blanks, commas and semicolons; a line of separators has no fields."""
    return [field for field in _SEPARATORS.split(text) if field]


def whole_number(word: str) -> int | None:
    """Return a whole number of at most 18 digits, None for anything else."""
    return int(word) if _WHOLE.fullmatch(word) else None


def beside(path: Path, name: str) -> Path | None:
    """Return the file that `name` means next to `path`; None if that leaves the folder.

    A file may only refer to files in its own folder and below, also through symbolic links.
    """
    folder = path.parent.resolve()
    try:
        file = (folder / name.replace("\\", "/")).resolve()
        file.exists()
    except (OSError, ValueError, RuntimeError):  # too long, a null character, a loop of links
        return None
    return file if file.is_relative_to(folder) else None
