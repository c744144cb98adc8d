"""Lines and tables of numbers in text files, with the file and the line in every complaint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.errors import InputError
from ltenet.shape import FloatArray, IntArray

_SEPARATORS = re.compile(r"[\s,;]+")


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


def failure(path: Path, line: int | None, reason: str, advice: str) -> InputError:
    """Return the error of a damaged file: where, what came and what is needed, what to try."""
    where = f"{path}" if line is None else f"{path}, line {line}"
    return InputError(f"{where}: {reason}; {advice}")


def read_bytes(path: Path) -> bytes:
    """Return what the file holds; a file that cannot be opened is an InputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise failure(
            path,
            None,
            f"the file cannot be read ({error.strerror or error}), a readable one is needed",
            "check the path and its permissions",
        ) from None


def read_lines(path: Path, *, comment: str = "#") -> Lines:
    """Return the lines of a UTF-8 text file, comments and empty lines left out."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise failure(
            path,
            line,
            "the bytes are no text, a text file is needed",
            "check that the suffix tells the truth about the format",
        ) from None
    numbers, texts = [], []
    for number, line_text in enumerate(text.splitlines(), start=1):
        kept = line_text.split(comment, 1)[0].strip()
        if kept:
            numbers.append(number)
            texts.append(kept)
    return Lines(path, numbers, texts)


def fields(text: str) -> list[str]:
    """Split a line at blanks, commas and semicolons."""
    return [field for field in _SEPARATORS.split(text) if field]


def table(lines: Lines, *, what: str, columns: int | None = None) -> FloatArray:
    """Return the lines as finite numbers.

    Parameters
    ----------
    lines
        The lines of the table.
    what
        What a line holds, for messages, e.g. "a vertex".
    columns
        Numbers in a line; None takes the count of the first line for all.

    Returns
    -------
    (R, C) float64.
    """
    rows = [fields(text) for text in lines.texts]
    width = columns if columns is not None else (len(rows[0]) if rows else 0)
    for number, row in zip(lines.numbers, rows, strict=True):
        if len(row) != width:
            raise failure(
                lines.path,
                number,
                f"{len(row)} numbers came, {what} has {width}",
                "look at this line and the one before it",
            )
    try:
        values = np.array([field for row in rows for field in row], dtype=np.float64)
    except ValueError:
        raise _first_non_number(lines, rows, what) from None
    values = values.reshape(len(rows), width)  # (R, C)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        row_index = int(np.argmin(finite))
        raise failure(
            lines.path,
            lines.numbers[row_index],
            f"'{lines.texts[row_index]}' is not finite, {what} has finite numbers",
            "remove the line, or export the file again without missing values",
        )
    return values


def whole_table(lines: Lines, *, what: str, columns: int) -> IntArray:
    """Return the lines as (R, C) int64; "7.0" passes for 7, as some programs write it."""
    values = table(lines, what=what, columns=columns)
    whole = (values == np.round(values)) & (np.abs(values) < 2**53)
    if not whole.all():
        row_index = int(np.argmin(whole.all(axis=1)))
        raise failure(
            lines.path,
            lines.numbers[row_index],
            f"'{lines.texts[row_index]}' came, {what} has whole numbers",
            "look at this line",
        )
    return values.astype(np.int64)


def _first_non_number(lines: Lines, rows: list[list[str]], what: str) -> InputError:
    for number, row in zip(lines.numbers, rows, strict=True):
        for field in row:
            try:
                float(field)
            except ValueError:
                return failure(
                    lines.path,
                    number,
                    f"'{field}' is not a number, {what} has numbers only",
                    "look at this line",
                )
    return failure(lines.path, None, "not all of it is numbers", "look at the file")
