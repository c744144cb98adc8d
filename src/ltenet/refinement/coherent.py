"""Smooth deformation: one shape is bent onto the other, see `ltenet.coherence`.

How firmly it should bend depends on how far the features can be trusted, which nobody knows
beforehand. So several are tried, both ways round, and their agreement counts; see `consensus`.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ltenet.assignment import Likeness, assign, hold_same_points, inverse, matched_same_points
from ltenet.coherence import CoherenceConfig, refine_coherently
from ltenet.map_quality import Judge
from ltenet.polishing import follow, polish, polish_in_turns
from ltenet.refinement.consensus import Agreement, agree
from ltenet.refinement.nearest import keep
from ltenet.refinement.pair import Proposal, Task

#: Tried where nothing is given: weak features need a firm shape, good ones a soft one. Several maps
#: that agree need fewer steps each.
STIFFNESSES = (30.0, 3.0)
CONFIG = CoherenceConfig(coarse_steps=8, fine_steps=3)


def bend(task: Task) -> Proposal:
    """Bend both shapes onto each other; one to one where both hold the same points."""
    config = task.options.coherence
    stiffnesses = STIFFNESSES if config is None else (config.stiffness,)
    agreed = agree(task.pair, config or CONFIG, stiffnesses)
    if agreed is None:
        return keep(task)
    same, indices = match_one_to_one(task, agreed)
    if same and task.improves(indices):
        return Proposal(indices, confidence=agreed.confidence, same_points=True)
    return Proposal(agreed.indices, agreed.places, agreed.confidence)


def match_one_to_one(task: Task, agreed: Agreement) -> tuple[bool, Tensor]:
    """Whether both clouds hold the same points, and which is which (N,) if so.

    Parameters
    ----------
    task
        With "auto", shapes of one size are tested; see `assignment`.
    agreed
        Where the source belongs on the target.
    """
    pair, wanted = task.pair, task.options.one_to_one
    source, target = pair.source_points, pair.target_points
    if wanted is False or (wanted == "auto" and len(source) != len(target)):
        return False, task.start
    likeness = Likeness(pair.source_features, pair.target_features)
    if agreed.bent_target is None or len(source) != len(target):
        indices = assign(likeness, agreed.places, target)  # (N,)
    else:
        # Parts that touch on the one shape may lie apart on the other: what is right on the first
        # to within a hair's breadth may be wrong by a body's length on the second.
        indices = inverse(assign(likeness.turned(), agreed.bent_target, source))  # (N,)
    if wanted == "auto" and not hold_same_points(source, target[indices]):
        return False, task.start
    if len(source) != len(target):
        polished = polish(likeness, source, target, indices)  # (N,)
        return True, min(indices, polished, key=lambda found: task.scores(found).energy)

    back = Judge(target, source, features=(pair.target_features, pair.source_features))

    def energy(found: Tensor) -> float:
        return task.scores(found).energy + back.scores(inverse(found)).energy

    if agreed.bent_target is None:
        followed = follow(agreed.graph, target, indices)  # (N,)
    else:
        followed = inverse(follow(agreed.graph, source, inverse(indices)))  # (N,)
    start = min(indices, followed, key=energy)
    return True, polish_in_turns(likeness, source, target, start, energy=energy)


def holds_same_points(task: Task) -> bool:
    """Whether the map is to be one to one: as was asked for, or as a quick refinement shows."""
    pair, wanted = task.pair, task.options.one_to_one
    if wanted != "auto":
        return wanted
    if len(pair.source_points) != len(pair.target_points):
        return False
    config = replace(CONFIG, stiffness=10.0)  # one map between the firm and the soft will do
    bent = refine_coherently(*pair[:4], config, graph=pair.source_graph).deformed  # (N, 3)
    likeness = Likeness(pair.source_features, pair.target_features)
    return matched_same_points(likeness, pair.source_points, pair.target_points, bent) is not None
