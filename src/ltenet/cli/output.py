"""Where the command line writes: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback as tracebacks
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


def write_result(data: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Write a verb's result, the only thing that reaches stdout."""
    content = as_json_text(data) if as_json else text.rstrip("\n") + "\n"
    sys.stdout.write(content)
    sys.stdout.flush()


def as_json_text(data: Mapping[str, Any]) -> str:
    """One JSON object, the same for the same data; numbers that are not finite are an error."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def say(message: str, *, traceback: bool = False) -> None:
    """Tell the user something on stderr, with the traceback of the present error if wanted."""
    if traceback:
        tracebacks.print_exc(file=sys.stderr)
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def discard_stdout() -> None:
    """Let nothing more be written to a closed pipe, not even when Python ends."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


@contextmanager
def logging_to_stderr(*, verbose: bool) -> Iterator[None]:
    """Show what the library logs: warnings, and with `verbose` everything."""
    handler = _StderrHandler()
    logger = logging.getLogger("ltenet")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _StderrHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {record.getMessage()}")


def table(rows: Sequence[Sequence[object]], *, header: Sequence[str] | None = None) -> str:
    """Columns of plain text, as wide as they need to be whatever the terminal; numbers right."""
    texts = [[_cell(value) for value in row] for row in rows]
    lines = [list(header), *texts] if header else texts
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numeric = [
        all(isinstance(value, int | float) for value in column)
        for column in zip(*rows, strict=True)
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
