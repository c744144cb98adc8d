"""Inverse and composition of maps, on their arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence.soft_rows import SoftRows, inverse_distance_rows, product, transposed
from ltenet.geometry.arrays import FloatArray, IntArray

#: Index of a source point without a partner.
UNMATCHED = -1

#: Source points that an inverse may mix for one target point, at least.
_INVERSE_NEIGHBORS = 4


class MapArrays(NamedTuple):
    """The arrays of a `Correspondence`, see there."""

    indices: IntArray
    scores: FloatArray | None = None
    neighbors: IntArray | None = None
    weights: FloatArray | None = None

    @property
    def matched(self) -> NDArray[np.bool_]:
        """(N,) True where a point has a partner."""
        matched: NDArray[np.bool_] = self.indices != UNMATCHED
        return matched

    @property
    def soft(self) -> SoftRows:
        """Neighbours and weights, or the partners with weight 1; 0 for points with neither."""
        if self.neighbors is not None and self.weights is not None:
            return SoftRows(self.neighbors, self.weights)
        weights = self.matched.astype(np.float64)[:, None]  # (N, 1)
        return SoftRows(np.maximum(self.indices, 0)[:, None], weights)

    @property
    def strongest_neighbor(self) -> IntArray:
        """(N,) the neighbour with the largest weight."""
        strongest: IntArray = self.soft.columns[
            np.arange(len(self.indices)), self.soft.weights.argmax(axis=1)
        ]
        return strongest


class Filling(NamedTuple):
    """What an inverse needs to fill gaps.

    Attributes
    ----------
    positions
        (N, 3) where the source points lie on the target; unmatched ones are ignored.
    targets
        (M, 3) points of the target.
    reach
        Largest distance over which a source point fills a gap.
    """

    positions: FloatArray
    targets: FloatArray
    reach: float


def inverse_map(
    arrays: MapArrays,
    size: int,
    *,
    places: FloatArray | None = None,
    filling: Filling | None = None,
) -> MapArrays:
    """Arrays of the map from the `size` target points to the source, see `Correspondence.inverse`.

    Parameters
    ----------
    arrays
        The map of N source points.
    size
        Number M of target points.
    places
        (N, 3) points of the source, which break ties between the partners of a hard map.
    filling
        Fills gaps, if given.
    """
    soft, matched = arrays.neighbors is not None, arrays.matched
    k = max(arrays.soft.columns.shape[1], _INVERSE_NEIGHBORS) if soft else 1
    trust = matched.astype(np.float64)  # (N,)
    if arrays.scores is not None:
        trust = trust * np.maximum(arrays.scores, 1e-9)  # a score of 0 still makes a partner
    rows = transposed(arrays.soft, trust, count=size, k=k, places=None if soft else places)
    if filling is not None and matched.any():
        near = inverse_distance_rows(
            filling.positions[matched], filling.targets, k=k, reach=filling.reach
        )  # (M, k)
        rows = SoftRows(
            np.where(rows.empty, np.flatnonzero(matched)[near.columns], rows.columns),
            np.where(rows.empty, near.weights, rows.weights),
        )
    partners, reached = rows.columns[:, 0], ~rows.empty[:, 0]  # (M,), (M,)
    scores = None
    if arrays.scores is not None:
        scores = np.where(reached, arrays.scores[partners], 0.0)  # (M,)
    indices = np.where(reached, partners, UNMATCHED)  # (M,)
    return MapArrays(indices, scores, *(rows if soft else ()))


def composed_map(first: MapArrays, second: MapArrays) -> MapArrays:
    """Arrays of the first map followed by the second, see `Correspondence.compose`."""
    indices = np.where(first.matched, second.indices[first.indices], UNMATCHED)  # (N,)
    # Unmatched points keep a score: that of the partner they would have had.
    through = np.where(first.matched, first.indices, first.strongest_neighbor)  # (N,)
    scores = first.scores
    if second.scores is not None:
        onward = second.scores[through]  # (N,)
        scores = onward if scores is None else scores * onward
    if first.neighbors is None and second.neighbors is None:
        return MapArrays(indices, scores)
    k = max(first.soft.columns.shape[1], second.soft.columns.shape[1])
    rows = product(first.soft, second.soft, k=k)
    lost = rows.empty[:, 0] & (indices != UNMATCHED)  # (N,), rows of negative weights alone
    rows.columns[lost, 0], rows.weights[lost, 0] = indices[lost], 1.0
    return MapArrays(indices, scores, *rows)
