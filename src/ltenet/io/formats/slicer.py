"""Landmarks of 3D Slicer [Fedorov et al. 2012]: `.mrk.json` and the older `.fcsv`.

These files say which way their axes point: LPS (x to the patient's left, y to the back) or RAS (x
to the right, y to the front). Numbers are kept as they are together with that word, and written
with the same word. Where a file does not say, `.mrk.json` means LPS and `.fcsv` RAS.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.io.formats.documents import number, parse_json
from ltenet.io.formats.named_points import (
    Landmarks,
    Row,
    System,
    landmarks_of,
    row_of_remark,
    rows,
)
from ltenet.io.formats.tables import csv_rows
from ltenet.io.formats.text import failure, shown

logger = logging.getLogger(__name__)

_SYSTEMS: dict[str, System] = {"LPS": "LPS", "RAS": "RAS", "1": "LPS", "0": "RAS"}
_FCSV = [
    *("id", "x", "y", "z", "ow", "ox", "oy", "oz"),
    *("vis", "sel", "lock", "label", "desc", "associatedNodeID"),
]
_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/"
    "Schema/markups-schema-v1.0.3.json#"
)
_NOWHERE = (np.nan, np.nan, np.nan)


def read_json(path: Path, text: str) -> Landmarks:
    """Read the first list of control points of a markups file."""
    document = parse_json(text, path)
    try:
        lists = [markup for markup in document["markups"] if markup.get("controlPoints")]
        system = str(lists[0].get("coordinateSystem", "LPS"))
        found = [_control_point(point) for point in lists[0]["controlPoints"]]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise failure(
            path,
            None,
            f"got no readable control points ({type(error).__name__}: {shown(str(error))}), "
            "expected a markups file of 3D Slicer",
            "try saving the point list again",
        ) from None
    if len(lists) > 1:
        logger.warning("%s: %d lists of points; the first one is used", path, len(lists))
    return landmarks_of(found, _system(path, system))


def json_text(landmarks: Landmarks) -> str:
    """Return a markups file; a landmark without a place is marked as undefined."""
    system = landmarks.system or "LPS"
    sign = -1.0 if system == "LPS" else 1.0  # axes of the world, as Slicer writes them
    points: list[dict[str, Any]] = [
        {
            "id": str(place),
            "label": row.name,
            "description": row.remark,
            "associatedNodeID": "",
            "position": [0.0, 0.0, 0.0] if row.lost else list(row.point),
            "orientation": [sign, 0.0, 0.0, 0.0, sign, 0.0, 0.0, 0.0, 1.0],
            "selected": True,
            "locked": False,
            "visibility": True,
            "positionStatus": "undefined" if row.lost else "defined",
        }
        for place, row in enumerate(rows(landmarks), start=1)
    ]
    markup = {"type": "Fiducial", "coordinateSystem": system, "controlPoints": points}
    return json.dumps({"@schema": _SCHEMA, "markups": [markup]}, indent=4) + "\n"


def read_fcsv(path: Path, text: str) -> Landmarks:
    """Read the columns x, y, z, label and desc, which a comment may put in another order."""
    system, columns = "RAS", _FCSV
    found: list[Row] = []
    for line, cells in csv_rows(path, text):
        if cells[0].startswith("#"):
            key, _, value = ",".join(cells)[1:].partition("=")
            if key.strip() == "CoordinateSystem":
                system = value.strip()
            elif key.strip() == "columns":
                columns = [name.strip() for name in value.split(",")]
            continue
        named = dict(zip(columns, cells, strict=False))
        try:
            point = (float(named["x"]), float(named["y"]), float(named["z"]))
            if not np.isfinite(point).all():
                raise ValueError
        except (KeyError, ValueError):
            raise failure(
                path,
                line,
                f"got {shown(','.join(cells))}, expected the columns {shown(','.join(columns))}",
                "try correcting this line",
            ) from None
        found.append(row_of_remark(named.get("label", ""), point, named.get("desc", "")))
    if not found:
        raise failure(path, None, "got no landmark, expected one", "try saving the list again")
    return landmarks_of(found, _system(path, system))


def fcsv_text(landmarks: Landmarks) -> str:
    """Return a fiducial list; landmarks without a place are left out with a warning."""
    out = io.StringIO()
    out.write("# Markups fiducial file version = 4.11\n")
    out.write(f"# CoordinateSystem = {landmarks.system or 'LPS'}\n")
    out.write(f"# columns = {','.join(_FCSV)}\n")
    writer = csv.writer(out, lineterminator="\n")
    for place, row in enumerate(rows(landmarks), start=1):
        if row.lost:
            logger.warning("landmark %s has no place; .fcsv leaves it out", row.name)
            continue
        numbers = [repr(value) for value in row.point]
        writer.writerow([place, *numbers, 0, 0, 0, 1, 1, 1, 0, row.name, row.remark, ""])
    return out.getvalue()


def _control_point(point: dict[str, Any]) -> Row:
    place = _NOWHERE
    if point.get("positionStatus", "defined") == "defined":
        x, y, z = (number(value) for value in point["position"])
        place = (x, y, z)
    return row_of_remark(str(point.get("label", "")), place, str(point.get("description", "")))


def _system(path: Path, word: str) -> System:
    system = _SYSTEMS.get(word.upper())
    if system is None:
        raise failure(
            path,
            None,
            f"got the coordinate system {shown(word)}, expected LPS or RAS",
            "try saving the points in world coordinates",
        )
    return system
