"""The landmarks of a whole collection in one file each: `.csv`, `.tps` and `.npz`.

geomorph reads the `.tps` with `readland.tps(file, specID = "ID")`. The `.npz` holds the same
numbers for numpy, and for R through reticulate: `aperm(landmarks, c(2, 3, 1))` is geomorph's
p x k x n.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ltenet.collections.records import write_table
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray


def write_landmark_tables(
    folder: Path,
    stem: str,
    specimens: Sequence[str],
    names: Sequence[str],
    points: FloatArray,
    errors: FloatArray,
) -> list[Path]:
    """Write (n, L, 3) landmarks and their (n, L) error bars; return the three paths."""
    paths = [folder / f"{stem}{suffix}" for suffix in (".csv", ".tps", ".npz")]
    rows = [
        (specimen, name, *map(float, place), float(bar))
        for specimen, places, bars in zip(specimens, points, errors, strict=True)
        for name, place, bar in zip(names, places, bars, strict=True)
    ]
    write_table(paths[0], ("specimen", "landmark", "x", "y", "z", "error"), rows)
    lines = []
    for specimen, places in zip(specimens, points, strict=True):
        lines.append(f"LM3={len(places)}")
        lines += [" ".join(repr(float(value)) for value in place) for place in places]
        lines.append(f"ID={specimen}")
    with atomic_path(paths[1], force=True) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    with atomic_path(paths[2], force=True) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            landmarks=points,
            errors=errors,
            specimens=np.array(specimens),
            names=np.array(names),
        )
    return paths
