"""Polygons of any length, cut into triangles around their first corner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ltenet.shape import IntArray


def fan(polygons: Iterable[Sequence[int]]) -> IntArray:
    """(F, 3) triangles of polygons with three or more corners; order and winding are kept."""
    triangles = [
        (corners[0], corners[place], corners[place + 1])
        for corners in polygons
        for place in range(1, len(corners) - 1)
    ]
    return np.array(triangles, dtype=np.int64).reshape(-1, 3)
