"""Nearest neighbours in space, by a k-d tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.geometry.arrays import FloatArray, IntArray


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first.

    Attributes
    ----------
    distances
        (Q, K)
    indices
        (Q, K) int64 rows of the points.
    """

    distances: FloatArray
    indices: IntArray


def nearest_neighbors(
    points: NDArray[np.floating] | KDTree, queries: NDArray[np.floating], k: int
) -> Neighbors:
    """Find the k nearest points of each query, or all points if there are fewer.

    Parameters
    ----------
    points
        (N, 3), or their tree if it answers more than one call.
    queries
        (Q, 3)
    k
        At least 1.
    """
    tree = points if isinstance(points, KDTree) else KDTree(points)
    # scipy drops the second axis for k = 1, but not for a list of ranks.
    ranks = np.arange(1, min(k, tree.n) + 1)  # (K,)
    return Neighbors(*tree.query(queries, k=ranks))
