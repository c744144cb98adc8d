"""Landmarks to and from files: `.csv`, and 3D Slicer's `.mrk.json` and `.fcsv`.

Slicer's files say which way their axes point: LPS (x to the patient's left, y to the back) or RAS
(x to the right, y to the front). Numbers are kept as they are together with that word, and written
with the same word. Where a file does not say, `.mrk.json` means LPS and `.fcsv`, which is older,
RAS.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.formats.text import failure, read_bytes
from ltenet.shape import FloatArray, IntArray, Shape

logger = logging.getLogger(__name__)

System = Literal["LPS", "RAS"]

#: Endings of landmark files.
SUFFIXES = (".csv", ".mrk.json", ".fcsv")

_SYSTEMS: dict[str, System] = {"LPS": "LPS", "RAS": "RAS", "1": "LPS", "0": "RAS"}
_FCSV = [
    *("id", "x", "y", "z", "ow", "ox", "oy", "oz"),
    *("vis", "sel", "lock", "label", "desc", "associatedNodeID"),
]
_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/"
    "Schema/markups-schema-v1.0.3.json#"
)


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Named places on a shape.

    Attributes
    ----------
    names
        L names.
    points
        (L, 3) float64 places; NaN where there is none.
    system
        Which way the axes point, "LPS" or "RAS", where that is known.
    indices
        (L,) the points of the shape that the landmarks are, where they were given so.
    descriptions
        L remarks.
    """

    names: tuple[str, ...]
    points: FloatArray
    system: System | None = None
    indices: IntArray | None = None
    descriptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        points = np.array(self.points, dtype=np.float64)
        if points.shape != (len(self.names), 3):
            raise InputError(
                f"landmarks: points of shape {points.shape} came for {len(self.names)} names; "
                "one row with x, y and z for each is needed; check the columns"
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "names", tuple(self.names))
        blank = ("",) * len(self.names)
        object.__setattr__(self, "descriptions", tuple(self.descriptions) or blank)

    def __len__(self) -> int:
        return len(self.names)

    def converted(self, system: System) -> Landmarks:
        """Return the same places with axes that point as `system` says: two signs change."""
        if self.system in (system, None):
            return replace(self, system=system)
        return replace(self, points=self.points * (-1, -1, 1), system=system)


def read_landmarks(path: str | os.PathLike[str], shape: Shape | None = None) -> Landmarks:
    """Read landmarks; the shape is needed where a `.csv` names its points by number, from 0."""
    path = Path(path)
    reader = {".csv": _read_csv, ".mrk.json": _read_json, ".json": _read_json, ".fcsv": _read_fcsv}
    landmarks = reader[_ending(path)](path, _text(path))
    if landmarks.indices is None:
        return landmarks
    if shape is None:
        raise failure(
            path, None, "points came by number, the shape is needed", "pass the shape as well"
        )
    wrong = (landmarks.indices < 0) | (landmarks.indices >= len(shape))
    if wrong.any():
        first = int(wrong.argmax())
        raise failure(
            path,
            None,
            f"'{landmarks.names[first]}' is point {landmarks.indices[first]}, {shape.name} has "
            f"0 to {len(shape) - 1}",
            "count from 0, and check that landmarks and shape belong together",
        )
    return replace(landmarks, points=shape.points[landmarks.indices])


def write_landmarks(
    landmarks: Landmarks, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write landmarks; those without a place are marked so, or left out of `.fcsv`."""
    path = Path(path)
    writer = {".csv": _csv_text, ".mrk.json": _json_text, ".json": _json_text, ".fcsv": _fcsv_text}
    text = writer[_ending(path)](landmarks)
    with atomic_path(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _ending(path: Path) -> str:
    name = path.name.lower()
    for ending in (*SUFFIXES, ".json"):
        if name.endswith(ending):
            return ending
    raise UsageError(
        f"{path}: '{path.suffix}' is no suffix of landmarks; one of {', '.join(SUFFIXES)} is "
        "needed; convert the file"
    )


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise failure(
            path, None, "the bytes are no text, a text file is needed", "check the suffix"
        ) from None


def _read_csv(path: Path, text: str) -> Landmarks:
    """Rows of name,x,y,z or name,index, with or without that header."""
    names: list[str] = []
    values: list[list[float]] = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        lost = len(cells) == 4 and not any(cells[1:])
        try:
            numbers = [np.nan] * 3 if lost else [float(cell) for cell in cells[1:]]
        except ValueError:
            if not names and len(cells) in (2, 4):
                continue  # the header
            numbers = []
        width = len(values[0]) if values else len(numbers)
        if len(numbers) not in (1, 3) or len(numbers) != width:
            raise failure(
                path,
                number,
                f"'{','.join(row)}' came, name,x,y,z or name,index are needed in every line",
                "look at this line",
            )
        names.append(cells[0])
        values.append(numbers)
    if not names:
        raise failure(path, None, "no landmark came, one is needed", "export the file again")
    table = np.array(values)  # (L, 3 or 1)
    if table.shape[1] == 3:
        return Landmarks(tuple(names), table)
    if not (table == np.round(table)).all():
        raise failure(path, None, "an index came that is not whole", "look at the second column")
    return Landmarks(
        tuple(names), np.full((len(names), 3), np.nan), indices=table[:, 0].astype(np.int64)
    )


def _csv_text(landmarks: Landmarks) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if landmarks.indices is not None:
        writer.writerow(["name", "index"])
        writer.writerows(zip(landmarks.names, landmarks.indices.tolist(), strict=True))
        return out.getvalue()
    writer.writerow(["name", "x", "y", "z"])
    for name, point in zip(landmarks.names, landmarks.points.tolist(), strict=True):
        writer.writerow([name, *("" if value != value else repr(value) for value in point)])
    return out.getvalue()


def _read_json(path: Path, text: str) -> Landmarks:
    try:
        markups = json.loads(text)["markups"]
        lists = [markup for markup in markups if markup.get("controlPoints")]
        system = lists[0].get("coordinateSystem", "LPS")
        rows = [
            (
                str(point.get("label", "")),
                [float(value) for value in point["position"]]
                if point.get("positionStatus", "defined") == "defined"
                else [np.nan] * 3,
                str(point.get("description", "")),
            )
            for point in lists[0]["controlPoints"]
        ]
        if any(len(position) != 3 for _, position, _ in rows):
            raise ValueError("a position has three numbers")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise failure(
            path,
            None,
            f"no control points could be read ({type(error).__name__}: {error}), a markups file "
            "of 3D Slicer is needed",
            "save the point list again",
        ) from None
    if len(lists) > 1:
        logger.warning("%s: %d lists of points; the first one is used", path, len(lists))
    names, points, descriptions = zip(*rows, strict=True)
    return Landmarks(names, np.array(points), _system(path, str(system)), None, descriptions)


def _json_text(landmarks: Landmarks) -> str:
    system = landmarks.system or "LPS"
    sign = -1.0 if system == "LPS" else 1.0  # axes of the world, as Slicer writes them
    points: list[dict[str, Any]] = []
    rows = zip(landmarks.names, landmarks.points.tolist(), landmarks.descriptions, strict=True)
    for number, (name, point, description) in enumerate(rows, start=1):
        lost = point[0] != point[0]
        points.append(
            {
                "id": str(number),
                "label": name,
                "description": description,
                "associatedNodeID": "",
                "position": [0.0, 0.0, 0.0] if lost else point,
                "orientation": [sign, 0.0, 0.0, 0.0, sign, 0.0, 0.0, 0.0, 1.0],
                "selected": True,
                "locked": False,
                "visibility": True,
                "positionStatus": "undefined" if lost else "defined",
            }
        )
    markup = {
        "type": "Fiducial",
        "coordinateSystem": system,
        "controlPoints": points,
    }
    return json.dumps({"@schema": _SCHEMA, "markups": [markup]}, indent=4) + "\n"


def _read_fcsv(path: Path, text: str) -> Landmarks:
    system, columns = "RAS", _FCSV
    rows: list[tuple[str, list[float], str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.strip() == "CoordinateSystem":
                system = value.strip()
            elif key.strip() == "columns":
                columns = [name.strip() for name in value.split(",")]
        elif line.strip():
            cells = dict(zip(columns, next(csv.reader([line])), strict=False))
            try:
                position = [float(cells[axis]) for axis in "xyz"]
            except (KeyError, ValueError):
                raise failure(
                    path,
                    number,
                    f"'{line}' came, the columns {','.join(columns)} are needed",
                    "look at this line",
                ) from None
            rows.append((cells.get("label", ""), position, cells.get("desc", "")))
    if not rows:
        raise failure(path, None, "no landmark came, one is needed", "save the list again")
    names, points, descriptions = zip(*rows, strict=True)
    return Landmarks(names, np.array(points), _system(path, system), None, descriptions)


def _fcsv_text(landmarks: Landmarks) -> str:
    out = io.StringIO()
    out.write("# Markups fiducial file version = 4.11\n")
    out.write(f"# CoordinateSystem = {landmarks.system or 'LPS'}\n")
    out.write(f"# columns = {','.join(_FCSV)}\n")
    writer = csv.writer(out, lineterminator="\n")
    rows = zip(landmarks.names, landmarks.points.tolist(), landmarks.descriptions, strict=True)
    for number, (name, point, description) in enumerate(rows, start=1):
        if point[0] != point[0]:
            logger.warning("landmark %s has no place and is left out: .fcsv cannot say so", name)
            continue
        numbers = [repr(value) for value in point]
        writer.writerow([number, *numbers, 0, 0, 0, 1, 1, 1, 0, name, description, ""])
    return out.getvalue()


def _system(path: Path, word: str) -> System:
    system = _SYSTEMS.get(word.upper())
    if system is None:
        raise failure(
            path,
            None,
            f"the coordinate system {word} came, LPS or RAS is needed",
            "save the points in world coordinates",
        )
    return system
