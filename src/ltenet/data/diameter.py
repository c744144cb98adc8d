"""The largest distance among points, without comparing all with all.

The point farthest from p is the nearest neighbour of another point in a space of one dimension
more. With the origin anywhere and R the largest norm, lift every q to
``(q, sqrt(2 (R^2 - |q|^2)))``. Then

    |(-p, 0) - lifted q|^2 = |p + q|^2 + 2 R^2 - 2 |q|^2 = 2 |p|^2 + 2 R^2 - |p - q|^2,

so a k-d tree of the lifted points finds the farthest point of any p, and the largest distance known
so far bounds the search: most points need none at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from ltenet.shape import FloatArray

#: Walks to the farthest point that give the first bound; more hardly ever improve it.
_WALKS = 6
#: Bounds are widened by this much, so that rounding cannot hide the pair.
_SLACK = 1e-9
#: Points searched at a time, those farthest out first.
_BLOCK = 1024


def largest_distance(points: ArrayLike) -> float:
    """Largest distance between two of (N, 3) points, exactly; 0 for a single point."""
    centred = np.asarray(points, np.float64)
    centred = centred - (centred.min(axis=0) + centred.max(axis=0)) / 2  # (N, 3)
    norms = np.einsum("nd,nd->n", centred, centred)  # (N,) squared
    reach = float(norms.max())
    known = _first_bound(centred, int(norms.argmax()))
    lifted = np.column_stack([centred, np.sqrt(2 * np.maximum(reach - norms, 0))])  # (N, 4)
    # Both ends of a longer pair must lie this far out: only such points need to be searched.
    rows = np.flatnonzero(norms >= known**2 / 2 - reach - _SLACK * reach)  # (P,)
    rows = rows[np.argsort(-norms[rows])]
    tree = KDTree(lifted[rows])
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK]  # (b,)
        # Squared distance of the lifted neighbour that would make a pair as long as the longest.
        limit = 2 * norms[block[0]] + (2 + _SLACK) * reach - known**2
        if limit <= 0:
            break  # the points that are left lie further in
        mirrored = np.column_stack([-centred[block], np.zeros(len(block))])  # (b, 4)
        nearest = tree.query(mirrored, distance_upper_bound=np.sqrt(limit))[1]  # (b,)
        found = nearest < len(rows)  # (b,)
        ends = centred[rows[nearest[found]]]  # (f, 3)
        lengths = np.linalg.norm(centred[block[found]] - ends, axis=1)  # (f,)
        known = max(known, float(lengths.max(initial=0.0)))
    return known


def _first_bound(points: FloatArray, start: int) -> float:
    """Length of a pair that is found by walking from a point to the farthest one, and so on."""
    longest = 0.0
    for _ in range(_WALKS):
        lengths = np.linalg.norm(points - points[start], axis=1)  # (N,)
        start = int(lengths.argmax())
        if lengths[start] <= longest:
            break
        longest = float(lengths[start])
    return longest
