"""Landmarks to and from files: `.csv`, `.tps`, and 3D Slicer's `.mrk.json` and `.fcsv`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.io.formats.documents import DOCUMENT_LIMIT
from ltenet.io.formats.landmark_tables import csv_text, read_csv, read_tps, tps_text
from ltenet.io.formats.named_points import Landmarks, System
from ltenet.io.formats.slicer import fcsv_text, json_text, read_fcsv, read_json
from ltenet.io.formats.text import failure, read_text
from ltenet.shape import Shape

#: Endings of landmark files.
SUFFIXES = (".csv", ".tps", ".mrk.json", ".fcsv")

__all__ = ["SUFFIXES", "Landmarks", "System", "read_landmarks", "write_landmarks"]


class _Format(NamedTuple):
    read: Callable[[Path, str], Landmarks]
    text: Callable[[Landmarks], str]


_FORMATS = {
    ".csv": _Format(read_csv, csv_text),
    ".tps": _Format(read_tps, tps_text),
    ".mrk.json": _Format(read_json, json_text),
    ".json": _Format(read_json, json_text),
    ".fcsv": _Format(read_fcsv, fcsv_text),
}


def read_landmarks(path: str | os.PathLike[str], shape: Shape | None = None) -> Landmarks:
    """Read landmarks; a `.csv` that names points by number, from 0, needs the shape too."""
    path = Path(path)
    known = _format(path)
    try:
        landmarks = known.read(path, read_text(path, limit=DOCUMENT_LIMIT))
    except InputError as error:
        # Checks on the landmarks do not know the file; the user needs to.
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None
    if landmarks.indices is None:
        return landmarks
    if shape is None:
        raise failure(
            path, None, "got points by number, expected their shape too", "try passing the shape"
        )
    wrong = (landmarks.indices < 0) | (landmarks.indices >= len(shape))
    if wrong.any():
        first = int(wrong.argmax())
        raise failure(
            path,
            None,
            f"got '{landmarks.names[first]}' at point {landmarks.indices[first]}, expected 0 to "
            f"{len(shape) - 1} of {shape.name}",
            "try counting from 0, and the shape that the landmarks were made for",
        )
    return replace(landmarks, points=shape.points[landmarks.indices])


def write_landmarks(
    landmarks: Landmarks, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write landmarks; those without a place are marked so, or left out of `.fcsv`."""
    path = Path(path)
    text = _format(path).text(landmarks)
    with atomic_path(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _format(path: Path) -> _Format:
    for ending, known in _FORMATS.items():
        if path.name.lower().endswith(ending):
            return known
    raise UsageError(
        f"{path}: got the suffix '{path.suffix}', expected that of landmarks, one of "
        f"{', '.join(SUFFIXES)}; try converting the file"
    )
