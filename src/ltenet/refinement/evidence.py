"""A map as features: whatever made it, a method that reads features can take it up.

Each target point is described by how near it is to a few hundred places on the target, and each
source point by what the map says about it and its neighbours. Cosines between the two fall with
the distance from where the map leads; single wrong matches are outvoted.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.neighbors import knn_graph
from ltenet.transport import spread_sample, squared_distances

#: Places that positions are described by, and widths of their bumps for shapes of radius 0.5.
_PLACES, _WIDTHS = 256, (0.1, 0.3)
#: Source points that vote on where one of them belongs.
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
    """Describe both shapes, (N, D) and (M, D), so that cosines say what a map says.

    Parameters
    ----------
    source, target
        (N, 3) and (M, 3)
    positions
        (N, 3) where the map leads; anything finite where it says nothing.
    trust
        (N,) how much each point may say, 0 where the map says nothing.

    Returns
    -------
    Unit vectors; zero for source points about which no neighbour knows anything.
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
    """Join features of both shapes so that cosines are those of the first and of the second, mixed.

    Parameters
    ----------
    first, second
        Features of source and target, (N, D) and (M, D), (N, E) and (M, E).
    share
        Of the second, from 0 to 1.
    """
    source, target = (
        torch.cat(
            [(1 - share) ** 0.5 * F.normalize(one, dim=1), share**0.5 * F.normalize(two, dim=1)],
            dim=1,
        )
        for one, two in zip(first, second, strict=True)
    )  # (N, D + E), (M, D + E)
    return source, target
