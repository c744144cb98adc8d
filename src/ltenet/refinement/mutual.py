"""Method "mutual": trust mutual nearest neighbours and interpolate smoothly between them."""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.refinement.deformation import Deformation, DeformationGraph
from ltenet.refinement.options import Mutual
from ltenet.refinement.point_sets import nearest_points
from ltenet.refinement.proposal import Problem, Proposal
from ltenet.refinement.soft_partners import by_similarity, weighted_mean

#: Control nodes and settings of the deformation that joins the kept matches.
_NODES, _STIFFNESS, _RIGIDITY, _ROUNDS = 200, 0.003, 0.1, 3
#: A match farther from the deformation than this multiple of the median is dropped.
_FAR = 3.0
#: Kept matches whose residual an interpolated point takes over, and the fewest that define a
#: deformation.
_AROUND, _FEWEST = 6, 12


def refine_mutual(problem: Problem, options: Mutual) -> Proposal:
    """Keep matches that are nearest both ways, and bend the source by them for all other points."""
    pair, start = problem.pair, problem.start
    source, target = pair.source.points, pair.target.points
    own = torch.arange(len(source), device=source.device)  # (N,)
    mutual = pair.best_back.indices[start] == own  # (N,)
    if int(mutual.sum()) < _FEWEST:
        return Proposal(start, unmatched=None if options.fill else ~mutual)
    images = target[start]  # (N, 3)
    if not problem.given:  # between points, where features say so
        images = weighted_mean(target, by_similarity(pair.nearest(problem.neighbors)))
    graph = DeformationGraph(source, _NODES, rigidity=_RIGIDITY)
    fitted = _fitted(graph, images, own[mutual], graph.frames())
    # A match can be mutual and wrong, for instance on the other leg.
    residual = (graph.apply(fitted) - images).norm(dim=1)  # (N,)
    kept = mutual & (residual <= _FAR * residual[mutual].median())  # (N,)
    rows = own[kept]  # (n,)
    bent = graph.apply(_fitted(graph, images, rows, fitted.frames))  # (N, 3)
    around = nearest_points(source, source[rows], min(_AROUND, len(rows)))  # (N, k)
    share = 1 / (around.squares + around.squares.mean() / 10)  # (N, k)
    share = share / share.sum(dim=1, keepdim=True)
    lacking = (images - bent)[rows][around.indices]  # (N, k, 3)
    bent = pair.target.project(bent + (share[..., None] * lacking).sum(dim=1))  # (N, 3)
    filled = pair.target.nearest(bent, 1).indices[:, 0]  # (N,)
    return Proposal(
        torch.where(kept, start, filled),
        torch.where(kept[:, None], images, bent),
        unmatched=None if options.fill else ~kept,
    )


def _fitted(graph: DeformationGraph, images: Tensor, rows: Tensor, frames: Tensor) -> Deformation:
    """Bend the shape so that the points at `rows` (n,) approach their images (N, 3)."""
    return graph.at(rows).fit(
        images[rows],
        torch.ones_like(images[rows, 0]),
        frames=frames,
        stiffness=_STIFFNESS,
        rounds=_ROUNDS,
    )
