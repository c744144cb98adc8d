"""One table of methods, and one way to call them that never raises the energy of a map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError, UsageError
from ltenet.refinement.coherent import refine_coherent
from ltenet.refinement.judge import MapScores, map_scores
from ltenet.refinement.linear import refine_linear
from ltenet.refinement.mutual import refine_mutual
from ltenet.refinement.nearest import keep, refine_nothing
from ltenet.refinement.optimal_transport import refine_by_transport
from ltenet.refinement.options import (
    Coherent,
    Linear,
    Method,
    Mutual,
    Nearest,
    Options,
    Spectral,
    Transport,
)
from ltenet.refinement.pair import Pair
from ltenet.refinement.proposal import Problem, Proposal, RefinedMap, Tell, silent
from ltenet.refinement.soft_partners import around, weighted_mean
from ltenet.refinement.threads import single_thread
from ltenet.refinement.zoomout import refine_spectral


class _Refinement(NamedTuple):
    """A method: its options and what runs it."""

    options: type[Options]
    run: Callable[[Problem, Any], Proposal]


REFINEMENTS: Mapping[Method, _Refinement] = MappingProxyType(
    {
        "coherent": _Refinement(Coherent, refine_coherent),
        "ot": _Refinement(Transport, refine_by_transport),
        "linear": _Refinement(Linear, refine_linear),
        "mutual": _Refinement(Mutual, refine_mutual),
        "spectral": _Refinement(Spectral, refine_spectral),
        "none": _Refinement(Nearest, refine_nothing),
    }
)


@torch.no_grad()
def refine_pair(
    pair: Pair,
    method: Method | Options = "coherent",
    *,
    start: Tensor | None = None,
    neighbors: int = 10,
    tell: Tell = silent,
) -> RefinedMap:
    """Match an embedded pair and refine the map.

    Parameters
    ----------
    pair
        Both shapes.
    method
        A name, for the default options, or options: "coherent" or `Coherent` bends both shapes
        smoothly onto each other; "ot" or `Transport` is optimal transport of features; "linear" or
        `Linear` the paper's linear map between embeddings, without the truth; "mutual" or `Mutual`
        keeps mutual nearest neighbours; "spectral" or `Spectral` is ZoomOut; "none" or `Nearest`
        the paper's nearest neighbour.
    start
        (N,) int64 map to improve, -1 where it is undefined; nearest features by default. "linear",
        "mutual" and "spectral" begin with it. "coherent" and "ot" read features alone and fall back
        on it if they raise the energy; `ltenet.refine` encodes a map as features for them.
    neighbors
        Target points of a soft partner, at most.
    tell
        Told how far the work is, where a method knows.
    """
    options = _options(method)
    if not neighbors > 0:
        raise InputError(
            f"refinement: got neighbors={neighbors}, expected a positive number; try 10"
        )
    if start is not None:
        _check_start(pair, start)
    indices = pair.best.indices  # (N,)
    if start is not None:
        start = start.to(indices.device)
        indices = torch.where(start >= 0, start, indices)
    scores = map_scores(pair, indices)
    problem = Problem(pair, indices, scores, start is not None, neighbors, tell)
    run = next(entry.run for entry in REFINEMENTS.values() if entry.options is type(options))
    with single_thread():
        proposal = run(problem, options)
        scores = map_scores(pair, proposal.indices)
        accepted = scores.energy <= problem.scores.energy
        if not accepted:
            # Points without a partner have none in the start either.
            proposal, scores = keep(problem)._replace(unmatched=proposal.unmatched), problem.scores
        return _finished(problem, proposal, scores, accepted=accepted)


def _options(method: Method | Options) -> Options:
    if not isinstance(method, str):
        return method
    if method not in REFINEMENTS:
        raise UsageError(
            f"got refinement {method!r}, expected one of {', '.join(REFINEMENTS)}; "
            "try checking the spelling"
        )
    return REFINEMENTS[method].options()


def _check_start(pair: Pair, start: Tensor) -> None:
    count, size = len(pair.source), len(pair.target)
    fits = start.shape == (count,) and not start.is_floating_point()
    if not fits or int(start.min()) < -1 or int(start.max()) >= size:
        raise InputError(
            f"got a start of shape {tuple(start.shape)}, expected one integer from -1 to "
            f"{size - 1} for each of {count} points; try the map that belongs to these shapes"
        )


def _finished(
    problem: Problem, proposal: Proposal, scores: MapScores, *, accepted: bool
) -> RefinedMap:
    """Complete a proposal: positions from soft partners, or soft partners from positions."""
    pair, target = problem.pair, problem.pair.target
    indices, positions, soft = proposal.indices, proposal.positions, proposal.soft
    if positions is None:
        positions = (  # (N, 3)
            target.points[indices] if soft is None else weighted_mean(target.points, soft)
        )
    if soft is None:
        near = target.nearest(positions, problem.neighbors).indices  # (N, K)
        soft = around(positions, target.points, near)  # (N, K) each
    confidence = proposal.confidence
    if confidence is None:
        own = torch.arange(len(indices), device=indices.device)  # (N,)
        confidence = pair.confidence(indices, pair.cosines_at(own, indices).clamp(0, 1))  # (N,)
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
        input_energy=problem.scores.energy,
    )
