"""From a sample to every vertex: extend a map of few points over the surface.

Around each embedded point the map is locally affine. A vertex takes the weighted mean of where the
affine maps of the nearest embedded points send it, then finds the target vertices nearest to that
position. Everything is linear in the number of vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial import KDTree

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.refinement.soft_partners import convex_weights

#: Embedded points that move a vertex, and those that define the affine map of each.
_BLENDED, _AFFINE = 6, 12
#: Two embedded points whose distance grows by more than this factor belong to different parts, such
#: as a hand and the hip it touches.
_TORN = 3.0
#: Target vertices of a soft partner.
NEIGHBORS = 4
#: Vertices processed at a time.
BLOCK = 65536


class Carried(NamedTuple):
    """Where vertices belong on the target.

    Attributes
    ----------
    places
        (N, 3)
    values
        (N,) interpolated values of the embedded points, such as confidence.
    """

    places: FloatArray
    values: FloatArray


class Carrier:
    """The affine maps of the embedded points.

    Parameters
    ----------
    points
        (n, 3) embedded points of the source.
    places
        (n, 3) where they belong on the target.
    values
        (n,) to be interpolated.
    """

    def __init__(self, points: FloatArray, places: FloatArray, values: FloatArray) -> None:
        self.points, self.places, self.values = points, places, values
        self._tree = KDTree(points)
        self._maps = self._fit_affine()  # (n, 3, 3)

    def carry(self, vertices: FloatArray) -> Carried:
        """Map (N, 3) vertices of the source."""
        blocks = [self._carry(vertices[i : i + BLOCK]) for i in range(0, len(vertices), BLOCK)]
        return Carried(
            np.concatenate([block.places for block in blocks]),
            np.concatenate([block.values for block in blocks]),
        )

    def _carry(self, vertices: FloatArray) -> Carried:
        distance, near = nearest_neighbors(self._tree, vertices, _BLENDED)  # (N, k)
        reach = distance[:, -1:] * 1.01 + 1e-12  # (N, 1)
        shares = np.square(1 - distance / reach) * ~self._torn(near)  # (N, k)
        shares /= shares.sum(axis=1, keepdims=True)
        offsets = vertices[:, None] - self.points[near]  # (N, k, 3)
        guesses = self.places[near] + np.einsum("nkij,nkj->nki", self._maps[near], offsets)
        places = np.einsum("nk,nki->ni", shares, guesses)  # (N, 3)
        values = (shares * self.values[near]).sum(axis=1)  # (N,)
        # Rounding must not take a probability beyond 1.
        return Carried(places, np.clip(values, self.values.min(), self.values.max()))

    def _torn(self, near: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """(N, k) True where an embedded point belongs to another part than the nearest one."""
        first = near[:, :1]  # (N, 1)
        before = np.linalg.norm(self.points[near] - self.points[first], axis=2)  # (N, k)
        after = np.linalg.norm(self.places[near] - self.places[first], axis=2)  # (N, k)
        typical = np.median(before[before > 0]) if (before > 0).any() else 1.0
        torn: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = after > _TORN * (before + typical)
        return torn

    def _fit_affine(self) -> FloatArray:
        """(n, 3, 3) least-squares maps of the neighbourhoods, tied to the identity by a ridge.

        Neighbourhoods are nearly flat, so across the surface the ridge alone decides.
        """
        near = nearest_neighbors(self._tree, self.points, _AFFINE).indices  # (n, k)
        keep = ~self._torn(near)[..., None]  # (n, k, 1)
        before = (self.points[near] - self.points[:, None]) * keep  # (n, k, 3)
        after = (self.places[near] - self.places[:, None]) * keep  # (n, k, 3)
        moment = np.swapaxes(before, 1, 2) @ before  # (n, 3, 3)
        ridge = 0.1 * np.trace(moment, axis1=1, axis2=2) / 3 + 1e-12  # (n,)
        identity = ridge[:, None, None] * np.eye(3)  # (n, 3, 3)
        right = np.swapaxes(before, 1, 2) @ after + identity  # (n, 3, 3)
        maps: FloatArray = np.swapaxes(np.linalg.solve(moment + identity, right), 1, 2)
        return maps


class Landing(NamedTuple):
    """The target vertices at given positions.

    Attributes
    ----------
    indices
        (N,) the nearest one.
    neighbors
        (N, K) vertices around the position.
    weights
        (N, K) of these, non-negative, summing to 1.
    """

    indices: IntArray
    neighbors: IntArray
    weights: FloatArray


def land(places: FloatArray, target: FloatArray) -> Landing:
    """Find the (M, 3) target vertices nearest to (N, 3) places."""
    tree = KDTree(target)
    k = min(NEIGHBORS, len(target))
    neighbors = np.empty((len(places), k), dtype=np.int64)
    weights = np.empty((len(places), k))
    for start in range(0, len(places), BLOCK):
        block = slice(start, start + BLOCK)
        neighbors[block] = nearest_neighbors(tree, places[block], k).indices
        offsets = torch.from_numpy(target[neighbors[block]] - places[block][:, None])  # (B, K, 3)
        weights[block] = convex_weights(offsets).numpy()
    return Landing(neighbors[:, 0].copy(), neighbors, weights)
