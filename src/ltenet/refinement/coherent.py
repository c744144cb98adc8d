"""Method "coherent": the consensus of smooth deformations, one to one where the points are shared.

How stiffly a shape should bend depends on how reliable the features are, which is not known in
advance. So several stiffnesses are tried in both directions and combined; see `consensus`.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ltenet.refinement.assignment import assign, inverse
from ltenet.refinement.bending import Bender
from ltenet.refinement.consensus import Consensus, find_consensus
from ltenet.refinement.constellations import match_same_points
from ltenet.refinement.judge import map_scores
from ltenet.refinement.nearest import keep
from ltenet.refinement.options import BendingConfig, Coherent, OneToOne
from ltenet.refinement.pair import Pair
from ltenet.refinement.polishing import follow, polish, polish_both_ways
from ltenet.refinement.proposal import Problem, Proposal
from ltenet.refinement.sharpening import sharpen

#: Combined by default: weak features need a stiff shape, good ones a soft one. Several maps that
#: agree need fewer steps each.
STIFFNESSES = (30.0, 1.0)
CONFIG = BendingConfig(coarse_steps=8, fine_steps=3, nodes=150)
#: Stiffness of the single deformation that tests for shared points.
_TEST_STIFFNESS = 10.0


def refine_coherent(problem: Problem, options: Coherent) -> Proposal:
    """Bend both shapes onto each other and combine the maps."""
    pair, config = problem.pair, options.bending
    stiffnesses = STIFFNESSES if config is None else (config.stiffness,)
    config = config or CONFIG
    consensus = find_consensus(pair, config, stiffnesses, tell=problem.tell)
    if consensus is None:
        return keep(problem)
    exact = match_one_to_one(pair, consensus, options.one_to_one)  # (N,)
    if exact is not None and map_scores(pair, exact).energy <= problem.scores.energy:
        return Proposal(exact, confidence=consensus.confidence, same_points=True)
    sharp = sharpen(pair, consensus.places, consensus.spread) if options.sharpen else None  # (N, 3)
    if sharp is None:
        return Proposal(consensus.indices, consensus.places, consensus.confidence)
    indices = pair.target.nearest(sharp, 1).indices[:, 0]  # (N,)
    return Proposal(indices, sharp, consensus.confidence)


def match_one_to_one(pair: Pair, consensus: Consensus, one_to_one: OneToOne) -> Tensor | None:
    """Exact map (N,) if both clouds hold the same points, else None.

    Parameters
    ----------
    pair
        Both shapes.
    consensus
        Where the source belongs on the target.
    one_to_one
        Whether they hold the same points; "auto" tests this for shapes of equal size.
    """
    equal_sizes = len(pair.source) == len(pair.target)
    if one_to_one is False or (one_to_one == "auto" and not equal_sizes):
        return None
    target_bent = consensus.target_bent and equal_sizes
    bent_pair = pair.reversed() if target_bent else pair
    places = consensus.cheapest.points if target_bent else consensus.places  # (N, 3)
    # Parts that touch on one shape may lie apart on the other: a small error on the first can be a
    # large one on the second. So the assignment runs in the direction of the cheapest bending.
    if one_to_one == "auto":
        found = match_same_points(bent_pair, places, swapped=target_bent)  # (N,)
        if found is None:
            return None
        indices = found
    else:
        indices = assign(bent_pair, places)  # (N,)
    if not equal_sizes:
        polished = polish(pair, indices)  # (N,)
        return min(indices, polished, key=lambda found: map_scores(pair, found).energy)
    forth = inverse(indices) if target_bent else indices  # (N,)
    back = pair.reversed()

    def energy(found: Tensor) -> float:
        return map_scores(pair, found).energy + map_scores(back, inverse(found)).energy

    followed = follow(bent_pair, consensus.graph, consensus.cheapest.frames, indices)  # (N,)
    followed = inverse(followed) if target_bent else followed
    return polish_both_ways(pair, min(forth, followed, key=energy), energy=energy)


def holds_same_points(pair: Pair, one_to_one: OneToOne) -> bool:
    """Whether a map should be one to one: as requested, or by a quick test with one deformation."""
    if one_to_one != "auto":
        return one_to_one
    if len(pair.source) != len(pair.target):
        return False
    bender = Bender(pair, replace(CONFIG, stiffness=_TEST_STIFFNESS))
    deformed = bender.bend(_TEST_STIFFNESS).points  # (N, 3)
    return match_same_points(pair, deformed) is not None
