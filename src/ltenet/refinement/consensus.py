"""The consensus of several deformations: of the source onto the target, and the other way round.

A shape can be bent more or less stiffly, and either of the two can be bent. The resulting maps err
in different ways, so their geometric median is closer to the truth than the best of them; a map
with a high cost has little weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.refinement.bending import Bender, Bent
from ltenet.refinement.deformation import DeformationGraph
from ltenet.refinement.judge import map_scores
from ltenet.refinement.options import BendingConfig
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import nearest_points
from ltenet.refinement.proposal import Tell, silent
from ltenet.refinement.soft_partners import around, weighted_mean
from ltenet.refinement.threads import side_by_side

#: Extra weight of the missed part of the target: a shape that is too stiff typically fails to reach
#: the end of a limb.
_MISSED = 2.0
#: Excess cost over the best map at which the weight of a map drops to 1/e.
_EXCESS = 0.1
#: Points between which a map is inverted.
_NEIGHBORS = 10
#: Weiszfeld iterations, and the distance below which maps count as equally close.
_ROUNDS, _CLOSE = 10, 1e-3


class BendingVote(NamedTuple):
    """One deformation read as a map of the source.

    Attributes
    ----------
    places
        (N, 3) where the source points belong.
    cost
        Energy of the map in the direction of bending, with extra weight on what it missed.
    bent
        The bent shape: the source, or the target.
    """

    places: Tensor
    cost: float
    bent: Bent


class Consensus(NamedTuple):
    """What the deformations agree on.

    Attributes
    ----------
    places
        (N, 3) where the source points belong.
    indices
        (N,) target points.
    confidence
        (N,) from 0, nothing on the target fits, to 1.
    spread
        (N,) how far the deformations disagree: root mean square distance from `places`.
    cheapest
        The deformation with the lowest cost.
    graph
        Its control nodes.
    target_bent
        Whether it bends the target onto the source.
    """

    places: Tensor
    indices: Tensor
    confidence: Tensor
    spread: Tensor
    cheapest: Bent
    graph: DeformationGraph
    target_bent: bool


def find_consensus(
    pair: Pair, config: BendingConfig, stiffnesses: Sequence[float], *, tell: Tell = silent
) -> Consensus | None:
    """Bend both shapes with each stiffness and combine the maps; None if none is finite.

    Parameters
    ----------
    pair
        Both shapes.
    config
        How they are bent, apart from the stiffness.
    stiffnesses
        Weights of the bending energy.
    tell
        Told how far the work is.
    """
    _ = pair.best  # both directions ask for it
    forth, back = side_by_side(
        partial(Bender, pair, config), partial(Bender, pair.reversed(), config)
    )
    done: list[float] = []

    def vote(
        vote_with: Callable[[Bender, float], BendingVote | None], bender: Bender, stiffness: float
    ) -> BendingVote | None:
        found = vote_with(bender, stiffness)
        done.append(stiffness)
        tell(len(done) / (2 * len(stiffnesses) + 1))
        return found

    # The way back takes longer, as its maps are inverted: first, it leaves no core idle at the end.
    found = side_by_side(
        *(partial(vote, vote_back, back, stiffness) for stiffness in stiffnesses),
        *(partial(vote, vote_forth, forth, stiffness) for stiffness in stiffnesses),
    )
    inverted, there = (
        [vote for vote in side if vote is not None]
        for side in (found[: len(stiffnesses)], found[len(stiffnesses) :])
    )
    votes = [*there, *inverted]
    if not votes:
        return None
    places = geometric_median(votes)  # (N, 3)
    spread = disagreement(votes, places)  # (N,)
    first = min(range(len(votes)), key=lambda number: votes[number].cost)
    target_bent = first >= len(there)
    graph = back.graph if target_bent else forth.graph
    indices, confidence = forth.assign(places)
    return Consensus(places, indices, confidence, spread, votes[first].bent, graph, target_bent)


def vote_forth(bender: Bender, stiffness: float) -> BendingVote | None:
    """Bend the source onto the target; None if the result is not finite."""
    bent = bender.bend(stiffness)
    if not torch.isfinite(bent.points).all():
        return None
    return BendingVote(bent.points, _cost(bender, bent.points), bent)


def vote_back(bender: Bender, stiffness: float) -> BendingVote | None:
    """Bend the target onto the source, with the bender of the reversed pair, and invert the map."""
    bent = bender.bend(stiffness)
    if not torch.isfinite(bent.points).all():
        return None
    target, source = bender.pair.source.points, bender.pair.target.points  # (M, 3), (N, 3)
    k = min(_NEIGHBORS, len(target))
    near = nearest_points(source, bent.points, k).indices  # (N, k)
    places = weighted_mean(target, around(source, bent.points, near))  # (N, 3)
    return BendingVote(places, _cost(bender, bent.points), bent)


def geometric_median(votes: Sequence[BendingVote]) -> Tensor:
    """(N, 3) positions with the least weighted distance from those of all maps [Weiszfeld 1937]."""
    places = torch.stack([vote.places for vote in votes])  # (m, N, 3)
    prior = _prior(votes).to(places)  # (m, 1)
    weights = prior.expand(places.shape[:2])  # (m, N)
    for _ in range(_ROUNDS):
        median = (weights[..., None] * places).sum(dim=0) / weights.sum(dim=0)[:, None]  # (N, 3)
        weights = prior / ((places - median).norm(dim=2) + _CLOSE)  # (m, N)
    return median


def disagreement(votes: Sequence[BendingVote], places: Tensor) -> Tensor:
    """(N,) root mean square distance of the maps from (N, 3) places."""
    squares = torch.stack([(vote.places - places).square().sum(dim=1) for vote in votes])  # (m, N)
    prior = _prior(votes).to(squares)  # (m, 1)
    return ((prior * squares).sum(dim=0) / prior.sum()).sqrt()


def _prior(votes: Sequence[BendingVote]) -> Tensor:
    """(m, 1) weights of maps, by their costs."""
    costs = torch.tensor([vote.cost for vote in votes])  # (m,)
    return torch.exp((costs.min() - costs) / _EXCESS)[:, None]


def _cost(bender: Bender, deformed: Tensor) -> float:
    """Cost of the map that a bent shape stands for."""
    indices, _ = bender.assign(deformed)
    scores = map_scores(bender.pair, indices)
    return scores.energy + _MISSED * scores.missed
