"""A shape as it is matched: without outliers, reflected if asked for, and with an extent."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.matching.outliers import inliers, part_of
from ltenet.shape import Shape

#: Fewest points of a shape.
LEAST_POINTS = 50
#: Extent relative to the longest at which a shape is flat.
_FLAT = 1e-3


class Cleaned(NamedTuple):
    """A shape as it is matched.

    Attributes
    ----------
    given
        As it was given.
    inliers
        (n,) int64, its points that are not outliers, in ascending order.
    shape
        These, reflected if the shape is matched through the mirror.
    """

    given: Shape
    inliers: IntArray
    shape: Shape

    @property
    def outliers(self) -> int:
        """How many points are left out."""
        return len(self.given) - len(self.inliers)


def cleaned(shape: Shape, *, clean: bool, mirror: bool) -> Cleaned:
    """Leave out outliers and reflect the rest, each if asked for."""
    rows = inliers(shape) if clean else np.arange(len(shape))  # (n,)
    if len(rows) < LEAST_POINTS:
        few = f"{len(shape)} points" + (f", {len(rows)} on a surface" if len(shape) > 49 else "")
        raise InputError(
            f"{shape.name}: got {few}, expected at least {LEAST_POINTS}; "
            "try sampling the surface more densely"
        )
    part = part_of(shape, rows)
    return Cleaned(shape, rows, reflected(part) if mirror else part)


def reflected(shape: Shape) -> Shape:
    """Reflect a shape in the plane x = 0; faces still look outwards."""
    faces = None if shape.faces is None else shape.faces[:, ::-1]
    return replace(shape.transformed(np.diag([-1.0, 1.0, 1.0, 1.0])), faces=faces)


def check_extent(points: FloatArray, name: str) -> None:
    """Refuse (N, 3) points in few places, on a line or in a plane: they have no shape to match."""
    places = len(np.unique(points, axis=0))
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)  # (3,)
    flat = f"points on a {'line' if extents[1] <= _FLAT * extents[0] else 'plane'}"
    if places >= LEAST_POINTS and extents[2] > _FLAT * extents[0]:
        return
    found = flat if places >= LEAST_POINTS else f"{len(points)} points in {places} places"
    raise InputError(
        f"{name}: got {found}, expected the surface of a solid; "
        "try a file with three columns of coordinates"
    )
