"""Smooth deformation: the source is bent onto the target, see `ltenet.coherence`.

How firmly it should bend depends on how far the features can be trusted, which nobody knows
beforehand. So several are tried, and the energy of the map decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ltenet.assignment import Likeness, assign, matched_same_points, polish
from ltenet.coherence import CoherenceConfig, CoherentMap, refine_with_each
from ltenet.refinement.nearest import keep
from ltenet.refinement.pair import EmbeddedPair, Options, Proposal, Task
from ltenet.transport import spread_sample

#: Tried where nothing is given: weak features need a firm shape, good ones a soft one.
STIFFNESSES = (100.0, 10.0, 1.0)
#: What is missed counts this much more than in the energy when they are compared: the way in which
#: a shape that is too firm fails is that it does not reach the end of a limb.
_UNREACHED = 2.0
#: Larger shapes choose on samples of this size.
_TRIAL_POINTS = 2048


def bend(task: Task) -> Proposal:
    """Bend the source onto the target; one to one where both hold the same points."""
    pair, options = task.pair, task.options
    best = _firmest(pair, options)
    same, indices = match_one_to_one(task, best.deformed)
    if same and task.improves(indices):
        return Proposal(indices, confidence=best.confidence, same_points=True)
    if not best.accepted:
        return keep(task)
    return Proposal(best.indices, best.positions, best.confidence)


def match_one_to_one(task: Task, deformed: Tensor) -> tuple[bool, Tensor]:
    """Whether both clouds hold the same points, and which is which (N,) if so.

    Parameters
    ----------
    task
        With "auto", shapes of one size are tested; see `assignment`.
    deformed
        (N, 3) the source bent onto the target.
    """
    pair, wanted = task.pair, task.options.one_to_one
    source, target = pair.source_points, pair.target_points
    if wanted is False or (wanted == "auto" and len(source) != len(target)):
        return False, task.start
    likeness = Likeness(pair.source_features, pair.target_features)
    if wanted == "auto":
        found = matched_same_points(likeness, source, target, deformed)
        if found is None:
            return False, task.start
        indices = found  # (N,)
    else:
        indices = assign(likeness, deformed, target, sigma=0.02)  # (N,)
    polished = polish(likeness, source, target, indices)  # (N,)
    return True, min(indices, polished, key=lambda found: task.scores(found).energy)


def holds_same_points(task: Task) -> bool:
    """Whether the map is to be one to one: as was asked for, or as a quick refinement shows."""
    pair, wanted = task.pair, task.options.one_to_one
    if wanted != "auto":
        return wanted
    if len(pair.source_points) != len(pair.target_points):
        return False
    bent = _refined(pair, CoherenceConfig(), STIFFNESSES[1:2])[0].deformed  # (N, 3)
    likeness = Likeness(pair.source_features, pair.target_features)
    return matched_same_points(likeness, pair.source_points, pair.target_points, bent) is not None


def _firmest(pair: EmbeddedPair, options: Options) -> CoherentMap:
    """Refine with the stiffness whose map costs least."""
    config = options.coherence or CoherenceConfig()
    stiffnesses = STIFFNESSES if options.coherence is None else (config.stiffness,)
    large = max(len(pair.source_points), len(pair.target_points)) > _TRIAL_POINTS
    if large and len(stiffnesses) > 1:
        trials = _refined(_sample(pair), config, stiffnesses)
        stiffnesses = (min(zip(stiffnesses, trials, strict=True), key=lambda t: _cost(t[1]))[0],)
    return min(_refined(pair, config, stiffnesses), key=_cost)


def _sample(pair: EmbeddedPair) -> EmbeddedPair:
    """Spread points of both shapes, enough to choose on."""
    rows = spread_sample(pair.source_points, _TRIAL_POINTS)  # (n,)
    columns = spread_sample(pair.target_points, _TRIAL_POINTS)  # (m,)
    return EmbeddedPair(
        pair.source_points[rows],
        pair.target_points[columns],
        pair.source_features[rows],
        pair.target_features[columns],
    )


def _refined(
    pair: EmbeddedPair, config: CoherenceConfig, stiffnesses: Sequence[float]
) -> list[CoherentMap]:
    return refine_with_each(
        pair.source_points,
        pair.target_points,
        pair.source_features,
        pair.target_features,
        config,
        stiffnesses=stiffnesses,
        graph=pair.source_graph,
    )


def _cost(result: CoherentMap) -> float:
    if not torch.isfinite(result.deformed).all():
        return float("inf")
    return result.scores.energy + _UNREACHED * result.scores.missed
