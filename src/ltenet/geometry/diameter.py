"""The diameter of a point set, its largest distance, without comparing all pairs.

Walks to the farthest point give a lower bound. Cells of a grid discard the points that cannot end a
longer pair, and a k-d tree searches the rest: the point farthest from p is a nearest neighbour in
four dimensions. With the origin anywhere and R the largest norm, lift every q to
``(q, sqrt(2 (R^2 - |q|^2)))``. Then

    |(-p, 0) - lifted q|^2 = |p + q|^2 + 2 R^2 - 2 |q|^2 = 2 |p|^2 + 2 R^2 - |p - q|^2,

so the smallest distance on the left is the largest |p - q|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ltenet.geometry.arrays import FloatArray

#: Walks to the farthest point that give the first bound; more rarely improve it.
_WALKS = 6
#: Relative slack of all bounds, so that rounding cannot hide the longest pair.
_SLACK = 1e-9
#: Cells along an edge of the bounding cube, coarse to fine, and the most that are compared.
_GRIDS = tuple(2**level for level in range(4, 16))
_MOST_CELLS = 4000
#: So few points are searched without a grid.
_FEW = 5000
#: Points searched at a time, the outermost first.
_BLOCK = 1024


def largest_distance(points: ArrayLike) -> float:
    """Largest distance between two of (N, 3) points, exactly; 0 for a single point."""
    given = np.asarray(points, np.float64)
    low, high = given.min(axis=0), given.max(axis=0)  # (3,) each
    extent = float((high - low).max())
    if extent == 0:
        return 0.0
    # At unit size no square underflows.
    centred = (given - (low + high) / 2) / extent  # (N, 3)
    norms = np.einsum("nd,nd->n", centred, centred)  # (N,) squared
    reach = float(norms.max())
    known = _first_bound(centred, int(norms.argmax()))
    # Both ends of a longer pair lie at least this far out.
    ends = _extremities(centred[norms >= known**2 / 2 - (1 + _SLACK) * reach], known)  # (n, 3)
    norms = np.einsum("nd,nd->n", ends, ends)  # (n,)
    order = np.argsort(-norms)
    ends, norms = ends[order], norms[order]
    lifts = np.sqrt(2 * np.maximum(reach - norms, 0))  # (n,)
    tree = KDTree(np.column_stack([ends, lifts]))
    for first in range(0, len(ends), _BLOCK):
        # Squared distance of a lifted neighbour that makes a pair as long as the longest so far.
        limit = 2 * norms[first] + (2 + _SLACK) * reach - known**2
        if limit <= 0:
            break  # the remaining points lie further in
        block = ends[first : first + _BLOCK]  # (b, 3)
        mirrored = np.column_stack([-block, np.zeros(len(block))])  # (b, 4)
        nearest = tree.query(mirrored, distance_upper_bound=np.sqrt(limit))[1]  # (b,)
        found = nearest < len(ends)  # (b,)
        lengths = np.linalg.norm(block[found] - ends[nearest[found]], axis=1)  # (f,)
        known = max(known, float(lengths.max(initial=0.0)))
    return known * extent


def _first_bound(points: FloatArray, start: int) -> float:
    """Length of a long pair, found by walking repeatedly to the farthest point."""
    longest = 0.0
    for _ in range(_WALKS):
        lengths = np.linalg.norm(points - points[start], axis=1)  # (N,)
        start = int(lengths.argmax())
        if lengths[start] <= longest:
            break
        longest = float(lengths[start])
    return longest


def _extremities(points: FloatArray, known: float) -> FloatArray:
    """(n, 3) those of (N, 3) points that may end a pair longer than `known`."""
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max())
    for grid in _GRIDS:
        if len(points) <= _FEW or extent == 0:
            break
        cells = np.minimum((points - low) * (grid / extent), grid - 1).astype(np.int64)  # (n, 3)
        _, first, own = np.unique(
            cells @ (grid**2, grid, 1), return_index=True, return_inverse=True
        )
        if len(first) > _MOST_CELLS:
            break
        middles = (cells[first] + 0.5) * (extent / grid)  # (c, 3)
        farthest = cdist(middles, middles).max(axis=1)  # (c,)
        # Two points are at most a cell's diagonal farther apart than the middles of their cells.
        kept = farthest + np.sqrt(3) * extent / grid >= (1 - _SLACK) * known  # (c,)
        points = points[kept[own]]
    return points
