"""A map encoded as features, so that methods that read features can refine a map of any origin.

Each target point is described by its distances to a few hundred places on the target, and each
source point by where the map sends it and its neighbours. Cosines between the two fall with the
distance from the mapped position; single wrong matches are outvoted.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.method.neighbors import knn_graph
from ltenet.refinement.point_sets import spread_sample, squared_distances

#: Places that describe positions, and widths of their Gaussians for shapes of radius 0.5.
_PLACES, _WIDTHS = 256, (0.1, 0.3)
#: Neighbours, the point itself included, that vote on where a point belongs.
_VOTERS = 10


def position_features(positions: Tensor, target: Tensor) -> Tensor:
    """Describe (n, 3) positions on a target (M, 3) by unit vectors (n, D).

    Cosines are above 0.9 within 0.03 and below 0.2 from 0.8 on, for shapes of radius 0.5.
    """
    places = target[spread_sample(target, _PLACES)]  # (p, 3)
    squares = squared_distances(positions, places)  # (n, p)
    bumps = [F.normalize(torch.exp(squares / (-2 * width**2)), dim=1) for width in _WIDTHS]
    return F.normalize(torch.cat(bumps, dim=1), dim=1)  # (n, 2 p)


def map_features(
    source: Tensor, target: Tensor, positions: Tensor, trust: Tensor
) -> tuple[Tensor, Tensor]:
    """Describe both shapes, (N, D) and (M, D), so that cosines encode a map.

    Parameters
    ----------
    source, target
        (N, 3) and (M, 3)
    positions
        (N, 3) images of the source points; any finite values where the map is undefined.
    trust
        (N,) weight of each point, 0 where the map is undefined.

    Returns
    -------
    Unit vectors; zero for source points none of whose neighbours is mapped.
    """
    own = position_features(positions, target) * trust[:, None]  # (N, D)
    neighbors = knn_graph(source, min(_VOTERS, len(source)))  # (N, k)
    votes = torch.zeros_like(own)  # (N, D)
    for neighbor in neighbors.T:  # (N, k, D) at once would be large
        votes += own[neighbor]
    return F.normalize(votes, dim=1), position_features(target, target)


def joined(
    first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], *, share: float
) -> tuple[Tensor, Tensor]:
    """Concatenate two kinds of features so that cosines are weighted means of those of both.

    Parameters
    ----------
    first, second
        Features of source and target, (N, D) and (M, D), (N, E) and (M, E).
    share
        Weight of the second, from 0 to 1.
    """
    source, target = (
        torch.cat(
            [(1 - share) ** 0.5 * F.normalize(one, dim=1), share**0.5 * F.normalize(two, dim=1)],
            dim=1,
        )
        for one, two in zip(first, second, strict=True)
    )  # (N, D + E), (M, D + E)
    return source, target
