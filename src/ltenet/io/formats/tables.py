"""Tables of numbers and rows of cells in text files; complaints name file and line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.text import Lines, failure, fields, shown, whole_number

#: Whole numbers up to this are exact as float64.
EXACT = 2**53

#: Lines that are split at a time: the words of a line take far more memory than its numbers.
_BLOCK = 4096


def table(
    lines: Lines, *, what: str, columns: int | None = None, finite: bool = True
) -> FloatArray:
    """Return the lines as numbers.

    Parameters
    ----------
    lines
        The lines of the table.
    what
        What a line holds, for messages, e.g. "a vertex".
    columns
        Numbers in a line; None takes the count of the first line for all.
    finite
        Refuse infinite and missing numbers.

    Returns
    -------
    (R, C) float64.
    """
    width = columns if columns is not None else len(fields(lines.texts[0])) if lines.texts else 0
    blocks = [np.zeros((0, width))]
    for start in range(0, len(lines.texts), _BLOCK):
        blocks.append(_block(lines.part(start, start + _BLOCK), what, width))
    values = np.concatenate(blocks)  # (R, C)
    good = np.isfinite(values).all(axis=1)
    if finite and not good.all():
        row = int(np.argmin(good))
        raise lines.failure(
            row,
            f"got {shown(lines.texts[row])}, not finite, expected finite numbers in {what}",
            "try removing the line, or exporting the file again without missing values",
        )
    return values


def whole_table(lines: Lines, *, what: str, columns: int) -> IntArray:
    """Return the lines as (R, C) int64; "7.0" passes for 7, as some programs write it."""
    return whole(lines, table(lines, what=what, columns=columns), what=what)


def whole(lines: Lines, values: FloatArray, *, what: str) -> IntArray:
    """Return (R, C) or (R,) numbers read from lines as int64, if all of them are whole."""
    rows = values.reshape(len(values), math.prod(values.shape[1:]))
    good = ((rows == np.round(rows)) & (np.abs(rows) <= EXACT)).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise lines.failure(
            row,
            f"got {shown(lines.texts[row])}, expected whole numbers up to 2^53 in {what}",
            "try correcting this line",
        )
    return values.astype(np.int64)


def typed(lines: Lines, values: FloatArray, code: str, *, what: str) -> NDArray[np.generic]:
    """Return (R,) numbers as the type that the file declares, if it can hold them."""
    dtype = np.dtype(code)
    if dtype.kind in "iu":
        values = whole(lines, values, what=what).astype(np.float64)
        limits = np.iinfo(dtype)
        low, high = float(limits.min), float(limits.max)
    else:
        high = float(np.finfo(dtype).max)
        low = -high
    good = (values >= low) & (values <= high)
    if not good.all():
        row = int(np.argmin(good))
        raise lines.failure(
            row,
            f"got {values[row]:g}, expected {dtype.name} in {what}, from {low:g} to {high:g}",
            "try correcting this line, or declaring a wider type",
        )
    return values.astype(dtype)


def counted(lines: Lines, index: int, words: list[str], *, what: str) -> list[int]:
    """Return the whole numbers of a list that begins with its own length."""
    size = whole_number(words[0]) if words else None
    numbers = None
    if size is not None and 0 <= size <= len(words) - 1:
        numbers = [whole_number(word) for word in words[1 : 1 + size]]
    if numbers is None or None in numbers:
        raise lines.failure(
            index,
            f"got {shown(lines.texts[index])}, expected {what}: a count and as many whole numbers",
            "try correcting this line",
        )
    return [number for number in numbers if number is not None]


def csv_rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and stripped cells of comma-separated rows; empty rows are left out."""
    # Programs of the classic Mac end lines with CR alone, which the csv module refuses.
    reader = csv.reader(io.StringIO(text, newline=None), skipinitialspace=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise failure(
                path,
                reader.line_num,
                f"got a line that is not CSV ({error}), expected cells between commas",
                "try closing open quotes, or exporting the file again",
            ) from None
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield reader.line_num, cells


def _block(lines: Lines, what: str, width: int) -> FloatArray:
    rows = [fields(text) for text in lines.texts]
    for index, row in enumerate(rows):
        if len(row) != width:
            raise lines.failure(
                index,
                f"got {len(row)} numbers, expected {width} in {what}",
                "try correcting this line or the one before it",
            )
    try:
        values = np.array([field for row in rows for field in row], dtype=np.float64)
    except ValueError:
        raise _first_non_number(lines, rows, what) from None
    return values.reshape(len(rows), width)  # (R, C)


def _first_non_number(lines: Lines, rows: list[list[str]], what: str) -> InputError:
    for index, row in enumerate(rows):
        for field in row:
            try:
                float(field)
            except ValueError:
                return lines.failure(
                    index,
                    f"got {shown(field)}, expected a number in {what}",
                    "try correcting this line",
                )
    return failure(lines.path, None, f"got text, expected numbers in {what}", "try another suffix")
