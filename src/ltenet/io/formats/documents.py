"""JSON and TOML from files of unknown origin: bounded in size, depth and digits.

A parsed document takes up to about 100 times the memory of its text, hence the bound on its size.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ltenet.errors import MissingError
from ltenet.io.formats.text import failure, read_text

#: Largest document, in bytes.
DOCUMENT_LIMIT = 32 * 2**20
#: Deepest nesting of lists and objects; parsers recurse.
DEPTH_LIMIT = 64
#: Longest whole number; Python's own limit depends on its version.
DIGIT_LIMIT = 100

# Texts are skipped and brackets counted. A text that is never closed runs to the end: it is the
# parser's to report, and looking for its end again from every quote would be quadratic.
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def read_json(path: Path, *, limit: int = DOCUMENT_LIMIT) -> Any:
    """Return the content of a JSON file."""
    return parse_json(read_text(path, limit=limit), path)


def parse_json(text: str, path: Path, *, constants: bool = False) -> Any:
    """Return the content of a JSON text; `path` names it in messages.

    `constants` allows NaN and Infinity, which are not JSON, but which Python writes.
    """
    _check_depth(text, path)
    try:
        return json.loads(text, parse_int=_whole, parse_constant=None if constants else _constant)
    except ValueError as error:
        raise failure(
            path,
            getattr(error, "lineno", None),
            f"got text that is not JSON ({error}), expected a JSON document",
            "try saving or copying the file again",
        ) from None


def read_toml(path: Path, *, limit: int = DOCUMENT_LIMIT) -> dict[str, Any]:
    """Return the content of a TOML file."""
    return parse_toml(read_text(path, limit=limit), path)


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Return the content of a TOML text; `path` names it in messages."""
    try:
        # The standard library has it since Python 3.11; extra `train` brings tomli before that.
        toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError:
        raise MissingError(
            f"{path}: got TOML, expected tomli to read it with this Python; "
            "try pip install tomli, or Python 3.11"
        ) from None
    _check_depth(text, path)
    try:
        values: dict[str, Any] = toml.loads(text)
        _check_tables(values)
    except (ValueError, RecursionError) as error:
        raise failure(
            path,
            getattr(error, "lineno", None),
            f"got text that is not TOML ({error}), expected `key = value` lines under [tables]",
            "try quotes around text",
        ) from None
    return values


def number(value: Any) -> float:
    """Return a number of a document as float; anything else is a ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{type(value).__name__} instead of a number")
    return float(value)


def _check_depth(text: str, path: Path) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        sign = token.group()[0]
        depth += (sign in "[{") - (sign in "]}")
        if depth > DEPTH_LIMIT:
            raise failure(
                path,
                text.count("\n", 0, token.start()) + 1,
                f"got lists or objects nested more than {DEPTH_LIMIT} deep, expected a plain "
                "document",
                "try exporting it again",
            )


def _check_tables(values: Any) -> None:
    """Raise if dotted keys nest tables too deeply, or a whole number has too many digits."""
    level = [values]
    for _ in range(DEPTH_LIMIT):
        if not level:
            return
        inner = [
            item for part in level for item in (part.values() if isinstance(part, dict) else part)
        ]
        if any(isinstance(item, int) and abs(item) >= 10**DIGIT_LIMIT for item in inner):
            raise ValueError(f"a whole number of more than {DIGIT_LIMIT} digits")
        level = [item for item in inner if isinstance(item, dict | list)]
    raise ValueError(f"tables nested more than {DEPTH_LIMIT} deep")


def _whole(digits: str) -> int:
    if len(digits) > DIGIT_LIMIT:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def _constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")
