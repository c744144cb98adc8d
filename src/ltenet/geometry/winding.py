"""Which side of a mesh is outside: signed volume and consistent orientation."""

from __future__ import annotations

import numpy as np

from ltenet.geometry.arrays import FloatArray, IntArray


def signed_volume(points: FloatArray, faces: IntArray) -> float:
    """Volume inside a closed mesh of (N, 3) points and (F, 3) faces, by the divergence theorem.

    Positive where the corners of a face run counter-clockwise seen from outside; negative where
    the mesh is turned inside out.
    """
    corners = points[faces] - points.mean(axis=0)  # (F, 3, 3), centred for the sake of rounding
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]  # (F, 3)
    return float(np.einsum("fd,fd->f", a, np.cross(b, c)).sum() / 6)


def is_closed(faces: IntArray) -> bool:
    """Whether every directed edge of (F, 3) faces has exactly one opposite.

    Then the surface has no boundary and neighbouring faces agree on which side is outside.
    """
    if not len(faces):
        return False
    edges = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)  # (3 F, 2)
    count = int(faces.max()) + 1
    there = np.sort(edges[:, 0] * count + edges[:, 1])  # (3 F,)
    back = np.sort(edges[:, 1] * count + edges[:, 0])
    return bool((there[1:] != there[:-1]).all() and (there == back).all())


def is_inside_out(points: FloatArray, faces: IntArray | None) -> bool:
    """Whether a mesh is closed and its faces look inwards; False where that cannot be told."""
    return faces is not None and is_closed(faces) and signed_volume(points, faces) < 0
