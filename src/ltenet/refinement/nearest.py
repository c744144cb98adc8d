"""No refinement: the point with the most similar feature, as the paper tests it."""

from __future__ import annotations

from ltenet.refinement.pair import Proposal, Task
from ltenet.refinement.soft import by_likeness


def keep(task: Task) -> Proposal:
    """Target point with the largest cosine, or the map that was given."""
    if task.given:
        return Proposal(task.start)
    return Proposal(task.start, soft=by_likeness(task.nearest, task.options.temperature))
