"""What several deformations agree on: of the source onto the target, and the other way round.

A shape can be bent onto another more or less firmly, and either of the two can be bent. The maps
err in different ways, so their geometric median is nearer to the truth than the best of them; a map
that costs much by its energy has little to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.coherence import CoherenceConfig, Solver
from ltenet.deformation import DeformationGraph
from ltenet.refinement.pair import EmbeddedPair
from ltenet.refinement.soft import around, weighted_mean

#: What is missed counts this much more than in the energy: the way in which a shape that is too
#: firm fails is that it does not reach the end of a limb.
_UNREACHED = 2.0
#: What a map may cost more than the best one before its say falls to a third.
_DEARER = 0.1
#: Neighbours between which a map is turned round.
_NEIGHBORS = 10
#: Rounds towards the geometric median, and the distance below which maps count as equally near.
_ROUNDS, _NEAR = 10, 1e-3


class Bent(NamedTuple):
    """One deformation as a map of the source.

    Attributes
    ----------
    places
        (N, 3) where the source points belong.
    cost
        Energy of the map in the direction in which it was bent, and more for what it missed.
    bent
        (N, 3) or (M, 3) the shape that was bent.
    """

    places: Tensor
    cost: float
    bent: Tensor


class Agreement(NamedTuple):
    """What the deformations agree on.

    Attributes
    ----------
    places
        (N, 3) where the source points belong.
    indices
        (N,) target points.
    confidence
        (N,) from 0, nothing on the target fits, to 1.
    bent_target
        (M, 3) the target bent onto the source, where that cost less than the other way; else None.
    graph
        Control nodes of the shape that cost less to bend.
    """

    places: Tensor
    indices: Tensor
    confidence: Tensor
    bent_target: Tensor | None
    graph: DeformationGraph


def agree(
    pair: EmbeddedPair, config: CoherenceConfig, stiffnesses: Sequence[float]
) -> Agreement | None:
    """Bend both shapes, with each stiffness, and find the agreement; None if nothing was finite.

    Parameters
    ----------
    pair
        Points and features of both shapes.
    config
        How they are bent, but for the stiffness.
    stiffnesses
        How firmly.
    """
    forth, back = solvers(pair, config)
    there = [bent for s in stiffnesses if (bent := bent_forth(forth, s)) is not None]
    back_here = [bent for s in stiffnesses if (bent := bent_back(back, s)) is not None]
    maps = there + back_here
    if not maps:
        return None
    places = geometric_median(maps)  # (N, 3)
    cheapest = min(maps, key=lambda bent: bent.cost)
    turned = any(cheapest is bent for bent in back_here)
    bent_target, graph = (cheapest.bent, back.graph) if turned else (None, forth.graph)
    return Agreement(places, *forth.assign(places), bent_target, graph)


def solvers(pair: EmbeddedPair, config: CoherenceConfig) -> tuple[Solver, Solver]:
    """Prepare to bend the source onto the target, and the target onto the source."""
    points = pair.source_points, pair.target_points  # (N, 3), (M, 3)
    features = pair.source_features, pair.target_features  # (N, D), (M, D)
    return (
        Solver(points, features, config, graph=pair.source_graph),
        Solver(points[::-1], features[::-1], config, graph=pair.target_graph),
    )


def bent_forth(solver: Solver, stiffness: float) -> Bent | None:
    """Bend the source onto the target; None if that is not finite."""
    bent = solver.solve(stiffness)  # (N, 3)
    return Bent(bent, _cost(solver, bent), bent) if torch.isfinite(bent).all() else None


def bent_back(solver: Solver, stiffness: float) -> Bent | None:
    """Bend the target onto the source, and read off where the source belongs."""
    bent = solver.solve(stiffness)  # (M, 3)
    if not torch.isfinite(bent).all():
        return None
    soft = around(solver.target, bent, _NEIGHBORS)  # (N, k)
    return Bent(weighted_mean(solver.source, soft), _cost(solver, bent), bent)


def geometric_median(maps: Sequence[Bent]) -> Tensor:
    """(N, 3) the places whose distances from those of all maps, weighted by cost, are least."""
    places = torch.stack([bent.places for bent in maps])  # (m, N, 3)
    costs = torch.tensor([bent.cost for bent in maps]).to(places)  # (m,)
    say = torch.exp((costs.min() - costs) / _DEARER)[:, None]  # (m, 1)
    weights = say.expand(places.shape[:2])  # (m, N)
    for _ in range(_ROUNDS):  # by Weiszfeld
        median = (weights[..., None] * places).sum(dim=0) / weights.sum(dim=0)[:, None]  # (N, 3)
        weights = say / ((places - median).norm(dim=2) + _NEAR)  # (m, N)
    return median


def _cost(solver: Solver, bent: Tensor) -> float:
    """Cost of the map that the solver makes of a bent shape."""
    indices, _ = solver.assign(bent)
    scores = solver.judge.scores(indices)
    return scores.energy + _UNREACHED * scores.missed
