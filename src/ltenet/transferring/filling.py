"""Missing values, filled from the nearest point along the surface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.surface_graph import nearest_along, surface_graph
from ltenet.shape import Shape

#: Spacings from its nearest neighbours up to which a point lies between others.
_BETWEEN = 1.5


class Filled(NamedTuple):
    """Values of all points, and which of them were filled.

    Attributes
    ----------
    values
        (N,) or (N, k), without NaN unless no point had a value.
    taken
        (N,) True for filled points.
    """

    values: FloatArray
    taken: NDArray[np.bool_]


def fill_from_neighbors(values: FloatArray, shape: Shape) -> Filled:
    """Replace (N,) or (N, k) values that are NaN by those of the nearest point with values.

    Nearest along the surface, so that no value crosses from a hand to the thigh it rests on; in
    space for components of the surface without any value.
    """
    empty = np.asarray(np.isnan(values.reshape(len(values), -1)).any(axis=1))  # (N,)
    known = np.flatnonzero(~empty)
    if not empty.any() or not len(known):
        return Filled(values, np.zeros(len(values), bool))
    nearest = nearest_along(surface_graph(shape.points, shape.faces), shape.points, known)  # (N,)
    apart = np.flatnonzero(nearest < 0)
    nearest[apart] = known[KDTree(shape.points[known]).query(shape.points[apart])[1]]
    result = values.copy()
    result[empty] = values[nearest[empty]]
    return Filled(result, empty)


def gap(positions: FloatArray) -> float:
    """Distance within which a point lies between (N, 3) positions, NaN for none, not beside them.

    That is 1.5 times their median spacing; 0 for fewer than two.
    """
    known = positions[np.isfinite(positions).all(axis=1)]  # (K, 3)
    known = np.unique(known, axis=0)
    if len(known) < 2:
        return 0.0
    return _BETWEEN * float(np.median(KDTree(known).query(known, k=2)[0][:, 1]))
