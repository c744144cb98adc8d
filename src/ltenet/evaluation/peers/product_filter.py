"""The product manifold filter [Vestner et al. 2017]: a map smoothed along both surfaces.

From a map p and geodesic distances D_X, D_Y, all points vote for partners near the images of their
neighbours,

    S = exp(-D_X^2 / 2 s^2) exp(-D_Y[:, p]^2 / 2 s^2)^T,

and the best assignment of S is the next map, while s falls.
"""

from __future__ import annotations

import numpy as np
import torch

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.refinement.assignment import best_assignment

#: First and last width, shares of the diameter.
_WIDE, _NARROW = 0.1, 0.02


def product_filter(
    indices: IntArray, source: FloatArray, target: FloatArray, *, rounds: int = 6
) -> IntArray:
    """(N,) smoothed map.

    Parameters
    ----------
    indices
        (N,) first map.
    source, target
        (N, N) and (M, M) geodesic distances.
    rounds
        Votes and assignments.
    """
    current = indices
    for share in np.geomspace(_WIDE, _NARROW, rounds):
        votes = votes_of(current, source / source.max(), target / target.max(), float(share))
        current = best_assignment(torch.from_numpy(votes)).numpy()  # (N,)
    return current


def votes_of(indices: IntArray, source: FloatArray, target: FloatArray, width: float) -> FloatArray:
    """(N, M) votes of all points for each pair; distances are shares of the diameters."""
    ours = np.exp(-np.square(source / width) / 2)  # (N, N)
    theirs = np.exp(-np.square(target[:, indices] / width) / 2)  # (M, N)
    votes: FloatArray = ours @ theirs.T  # (N, M)
    return votes
