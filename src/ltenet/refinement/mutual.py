"""Mutual nearest neighbours: trust the matches that hold both ways, fill in the others smoothly."""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.deformation import DeformationGraph
from ltenet.refinement.pair import Proposal, Task
from ltenet.refinement.soft import by_likeness, weighted_mean
from ltenet.transport import nearest_points, project_onto

#: Control nodes and stiffness of the deformation that joins the kept matches.
_NODES, _STIFFNESS, _RIGIDITY, _ROUNDS = 200, 0.003, 0.1, 3
#: A match that is this many times as far from the deformation as the median is dropped.
_FAR = 3.0
#: Kept matches whose residual a filled point takes over, and the fewest that make a deformation.
_AROUND, _FEWEST = 6, 12


def keep_mutual(task: Task) -> Proposal:
    """Keep matches that are nearest both ways; bend the source by them for all other points.

    With `fill=False` the other points have no partner.
    """
    source, target = task.pair.source_points, task.pair.target_points
    own = torch.arange(len(source), device=source.device)  # (N,)
    mutual = task.back[task.start] == own  # (N,)
    if int(mutual.sum()) < _FEWEST:
        return Proposal(task.start, unmatched=None if task.options.fill else ~mutual)
    rows = own[mutual]  # (n,)
    images = target[task.start]  # (N, 3)
    if not task.given:  # between points, where features say so
        images = weighted_mean(target, by_likeness(task.nearest, task.options.temperature))
    graph = DeformationGraph(source, _NODES, rigidity=_RIGIDITY)
    bent = _fitted(graph, images, rows)  # (N, 3)
    # A match can hold both ways and be wrong, for instance on the other leg.
    residual = (bent - images).norm(dim=1)  # (N,)
    kept = mutual & (residual <= _FAR * residual[rows].median())  # (N,)
    rows = own[kept]  # (n,)
    bent = _fitted(graph, images, rows)  # (N, 3)
    around = nearest_points(source, source[rows], min(_AROUND, len(rows)))  # (N, k)
    share = 1 / (around.squares + around.squares.mean() / 10)  # (N, k)
    share = share / share.sum(dim=1, keepdim=True)
    lacking = (images - bent)[rows][around.indices]  # (N, k, 3)
    bent = project_onto(target, bent + (share[..., None] * lacking).sum(dim=1))  # (N, 3)
    filled = nearest_points(bent, target, 1).indices[:, 0]  # (N,)
    return Proposal(
        torch.where(kept, task.start, filled),
        torch.where(kept[:, None], images, bent),
        unmatched=None if task.options.fill else ~kept,
    )


def _fitted(graph: DeformationGraph, images: Tensor, rows: Tensor) -> Tensor:
    """Bend all points (N, 3) so that those at `rows` come to their images."""
    weights = torch.ones_like(images[rows, 0])  # (n,)
    return graph.fit(images[rows], weights, rows=rows, stiffness=_STIFFNESS, rounds=_ROUNDS)
