"""Landmarks as tables: `.csv` with names, and the `.tps` of geometric morphometrics [Rohlf 2015].

A `.tps` numbers its landmarks. Their names and probabilities are kept in `COMMENT=` lines, which
other programs skip. Several specimens may stand in one file; the first is read.
"""

from __future__ import annotations

import csv
import io
import logging
from pathlib import Path

import numpy as np

from ltenet.io.formats.named_points import Landmarks, Row, landmarks_of, rows
from ltenet.io.formats.tables import EXACT, csv_rows, table
from ltenet.io.formats.text import failure, fields, shown, split_lines, whole_number

logger = logging.getLogger(__name__)

_MISSING = ("na", "nan")
#: Cells of a row without a header: a name, then an index, or x, y and z and perhaps a probability.
_COLUMNS: tuple[int, ...] = (2, 4, 5)


def read_csv(path: Path, text: str) -> Landmarks:
    """Read rows of name,x,y,z or name,index, with or without that header.

    A further column holds probabilities.
    """
    names: list[str] = []
    columns = _COLUMNS
    values: list[list[float]] = []
    for number, cells in csv_rows(path, text):
        if cells[0].startswith("#"):
            continue
        numbers = _numbers(cells[1:])
        if numbers is None and not names and len(cells) in (*columns, 3):
            columns = (len(cells),)  # those of the header
            continue
        width = len(values[0]) if values else len(numbers or [])
        if numbers is None or len(cells) not in columns or len(numbers) != width:
            raise failure(
                path,
                number,
                f"got {shown(','.join(cells))}, expected name,x,y,z or name,index in every line",
                "try correcting this line",
            )
        names.append(cells[0])
        values.append(numbers)
    if not names:
        raise failure(path, None, "got no landmark, expected one", "try exporting the file again")
    table = np.array(values)  # (L, 1 to 4)
    probabilities = table[:, -1] if table.shape[1] in (2, 4) else None
    if table.shape[1] > 2:
        return Landmarks(tuple(names), table[:, :3], probabilities=probabilities)
    numbered = table[:, 0]  # (L,)
    if not ((numbered == np.round(numbered)) & (np.abs(numbered) <= EXACT)).all():
        raise failure(
            path,
            None,
            "got an index that is not whole, expected numbers of points, from 0",
            "try correcting the second column",
        )
    places = np.full((len(names), 3), np.nan)
    indices = numbered.astype(np.int64)
    return Landmarks(tuple(names), places, indices=indices, probabilities=probabilities)


def csv_text(landmarks: Landmarks) -> str:
    """Return name,x,y,z, with the probability where it is known, or name,index."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    known = landmarks.probabilities is not None
    axes = ["x", "y", "z"] if landmarks.indices is None else ["index"]
    writer.writerow(["name", *axes, *(["probability"] if known else [])])
    for place, row in enumerate(rows(landmarks)):
        where = row.point if landmarks.indices is None else [int(landmarks.indices[place])]
        numbers = [*where, *([row.probability] if known else [])]
        writer.writerow([row.name, *("" if value != value else repr(value) for value in numbers)])
    return out.getvalue()


def read_tps(path: Path, text: str) -> Landmarks:
    """Read the three-dimensional landmarks of the first specimen."""
    lines = split_lines(path, text)
    starts = [i for i, line in enumerate(lines.texts) if line.upper().startswith(("LM=", "LM3="))]
    count = whole_number(lines.texts[starts[0]].partition("=")[2].strip()) if starts else None
    if count is None or not 1 <= count <= len(lines.texts):
        raise failure(
            path,
            None,
            "got no landmark, expected 'LM3=' and their number",
            "try exporting it again",
        )
    end = starts[1] if len(starts) > 1 else None
    if end is not None:
        logger.warning("%s: %d specimens; the first one is used", path, len(starts))
    part = lines.part(starts[0] + 1, end)
    given = part.part(0, count)
    numbers = [
        " ".join("nan" if word.lower() in _MISSING else word for word in fields(line))
        for line in given.texts
    ]
    points = table(given._replace(texts=numbers), what="a landmark", columns=3, finite=False)
    if len(points) < count:
        raise part.failure(
            len(points), f"got {len(points)} landmarks, expected {count}", "try copying it again"
        )
    keys = [line.partition("=") for line in part.texts[count:]]
    scale = next((_numbers([value]) for key, _, value in keys if key.upper() == "SCALE"), [1.0])
    comments = {
        value.partition("=")[0].strip(): value.partition("=")[2]
        for key, _, value in keys
        if key.upper() == "COMMENT"
    }
    names = _cells(path, comments.get("names", ""), count) or [str(i + 1) for i in range(count)]
    likely = _numbers(_cells(path, comments.get("probabilities", ""), count) or [""] * count)
    if scale is None or likely is None or not np.isfinite(scale).all():
        raise failure(
            path,
            None,
            "got a scale or a probability that is not a number, expected numbers",
            "try removing these lines",
        )
    places = [(x, y, z) for x, y, z in (points * scale[0]).tolist()]
    return landmarks_of([Row(n, p, "", q) for n, p, q in zip(names, places, likely, strict=True)])


def tps_text(landmarks: Landmarks) -> str:
    """Return one specimen; a landmark without a place is written as NA."""
    found = rows(landmarks)
    lines = [f"LM3={len(found)}"]
    lines += ["NA NA NA" if row.lost else " ".join(map(repr, row.point)) for row in found]
    lines += ["ID=0", f"COMMENT=names={_row(landmarks.names)}"]
    if landmarks.probabilities is not None:
        known = [
            "" if row.probability != row.probability else repr(row.probability) for row in found
        ]
        lines.append(f"COMMENT=probabilities={_row(known)}")
    return "\n".join(lines) + "\n"


def _numbers(cells: list[str]) -> list[float] | None:
    """Return cells as numbers, empty ones as NaN; None if one of them is something else."""
    try:
        return [float(cell) if cell else np.nan for cell in cells]
    except ValueError:
        return None


def _cells(path: Path, text: str, count: int) -> list[str] | None:
    """Cells of a line of CSV, if there are `count` of them."""
    cells = [cell for _, row in csv_rows(path, text) for cell in row]
    return cells if len(cells) == count else None


def _row(cells: list[str] | tuple[str, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([" ".join(cell.split()) for cell in cells])
    return out.getvalue()
