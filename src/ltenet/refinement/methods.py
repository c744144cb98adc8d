"""One table of methods, and one way to call them that never makes a map worse by its own score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

import torch
from torch import Tensor

from ltenet.coherence import CoherenceConfig
from ltenet.errors import UsageError
from ltenet.map_quality import MapScores
from ltenet.refinement.coherent import bend
from ltenet.refinement.linear import transform
from ltenet.refinement.mutual import keep_mutual
from ltenet.refinement.nearest import keep
from ltenet.refinement.optimal_transport import move
from ltenet.refinement.pair import EmbeddedPair, Options, Proposal, RefinedMap, Task, check_pair
from ltenet.refinement.soft import around, weighted_mean
from ltenet.refinement.zoomout import zoom_out

Method = Literal["coherent", "ot", "linear", "mutual", "spectral", "none"]

METHODS: Mapping[Method, Callable[[Task], Proposal]] = MappingProxyType(
    {
        "coherent": bend,
        "ot": move,
        "linear": transform,
        "mutual": keep_mutual,
        "spectral": zoom_out,
        "none": keep,
    }
)


@torch.no_grad()
def refine_pair(
    pair: EmbeddedPair,
    method: Method = "coherent",
    *,
    start: Tensor | None = None,
    one_to_one: bool | Literal["auto"] = "auto",
    fill: bool = True,
    neighbors: int = 10,
    temperature: float = 0.02,
    coherence: CoherenceConfig | None = None,
    reach: float | None = 0.03,
    dustbin: float | None = None,
) -> RefinedMap:
    """Match an embedded pair and refine the map.

    Parameters
    ----------
    pair
        Points and features of both shapes; see `EmbeddedPair`.
    method
        "coherent" bends the source smoothly onto the target; "ot" is optimal transport of
        features; "linear" the paper's linear map between embeddings, without the truth; "mutual"
        keeps matches that hold both ways; "spectral" is ZoomOut and needs the extra `spectral`;
        "none" is the paper's nearest neighbour.
    start
        (N,) int64 map to improve, -1 where it says nothing; nearest features by default. "linear",
        "mutual" and "spectral" begin with it. "coherent" and "ot" read features alone, and it
        counts only if they come out worse; `refine` gives them a map as features.
    one_to_one
        For "coherent" and "ot": True where both shapes hold the same points, so that the map is an
        exact assignment; "auto" tests that, for shapes of one size.
    fill
        For "mutual": give the other points a partner too; False leaves them at -1.
    neighbors
        Target points of the soft partner, at most.
    temperature
        What cosines are divided by in soft partners by features and in optimal transport.
    coherence
        Settings of "coherent"; by default some are tried and the energy decides.
    reach
        For "ot": how firmly every piece of surface must be used, see `sinkhorn`; None is strict.
    dustbin
        For "ot": cosine below which a point rather stays without a partner; for shapes that
        overlap in part.
    """
    if method not in METHODS:
        raise UsageError(
            f"refinement {method!r} was asked for; one of {', '.join(get_args(Method))} is needed; "
            "check the spelling"
        )
    options = Options(one_to_one, fill, neighbors, temperature, coherence, reach, dustbin)
    check_pair(pair, start, options)
    pair = _prepared(pair)
    task = Task(pair, None if start is None else start.to(pair.source_points.device), options)
    proposal = METHODS[method](task)
    scores = task.scores(proposal.indices)
    accepted = scores.energy <= task.start_scores.energy
    if not accepted:
        unmatched = proposal.unmatched  # what has no partner has none in the input either
        proposal, scores = keep(task)._replace(unmatched=unmatched), task.start_scores
    return _finished(task, proposal, scores, accepted=accepted)


def _prepared(pair: EmbeddedPair) -> EmbeddedPair:
    """Give features the type of the points, and leave gradients behind."""
    points = pair.source_points.detach()
    return pair._replace(
        source_points=points,
        target_points=pair.target_points.detach().to(points.dtype),
        source_features=pair.source_features.detach().to(points.dtype),
        target_features=pair.target_features.detach().to(points.dtype),
    )


def _finished(task: Task, proposal: Proposal, scores: MapScores, *, accepted: bool) -> RefinedMap:
    """Complete a proposal: positions from the soft partner, or the soft partner from positions."""
    target, indices, soft = task.pair.target_points, proposal.indices, proposal.soft
    positions = proposal.positions
    if positions is None:
        positions = target[indices] if soft is None else weighted_mean(target, soft)  # (N, 3)
    if soft is None:
        soft = around(positions, target, task.options.neighbors)  # (N, K) each
    confidence = proposal.confidence
    if confidence is None:
        confidence = task.confidence(indices)  # (N,)
    if proposal.unmatched is not None:
        indices = indices.masked_fill(proposal.unmatched, -1)
    return RefinedMap(
        indices,
        positions,
        confidence,
        soft.indices,
        soft.scores,
        energy=scores.energy,
        mirrored=scores.mirrored,
        accepted=accepted,
        same_points=proposal.same_points,
        input_energy=task.start_scores.energy,
    )
