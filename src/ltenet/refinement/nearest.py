"""Method "none": the target point with the most similar feature, as in the paper's test phase."""

from __future__ import annotations

from ltenet.refinement.options import Nearest
from ltenet.refinement.proposal import Problem, Proposal
from ltenet.refinement.soft_partners import by_similarity


def refine_nothing(problem: Problem, _options: Nearest) -> Proposal:
    """Return the start, with soft partners."""
    return keep(problem)


def keep(problem: Problem) -> Proposal:
    """Nearest features with their softmax as soft partners, or the map that was given."""
    if problem.given:
        return Proposal(problem.start)
    return Proposal(problem.start, soft=by_similarity(problem.pair.nearest(problem.neighbors)))
