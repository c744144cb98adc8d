"""Optimal transport: every piece of the source goes somewhere, every piece of the target gets some.

Nearest features leave some target points to several and others to none. Here the surface of the
source is moved onto that of the target so that the likeness of features is largest, by entropic
transport; where it may be left over, see `sinkhorn`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.assignment import (
    DENSE_POINTS,
    Likeness,
    best_assignment,
    shortlist_assignment,
)
from ltenet.neighbors import TopK, cosine_topk
from ltenet.refinement.coherent import holds_same_points
from ltenet.refinement.pair import Options, Proposal, Task
from ltenet.refinement.sinkhorn import DenseKernel, SparseKernel, sinkhorn
from ltenet.refinement.soft import weighted_mean

#: Nearest features of each point, both ways, that larger shapes are matched among.
_SHORTLIST = 48


class _Plan(NamedTuple):
    """Where the mass of each source point goes.

    Attributes
    ----------
    best
        (N, K) target points that get most, with their shares of what is not left out.
    left_out
        (N,) share of the point that goes nowhere.
    """

    best: TopK
    left_out: Tensor


def move(task: Task) -> Proposal:
    """Move the source onto the target; one to one where both hold the same points."""
    pair, options = task.pair, task.options
    source, target = pair.source_points, pair.target_points
    features = F.normalize(pair.source_features, dim=1), F.normalize(pair.target_features, dim=1)
    small = max(len(source), len(target)) <= DENSE_POINTS
    plan = (_dense_plan if small else _sparse_plan)(*features, options)
    unmatched = None if options.dustbin is None else plan.left_out > 0.5  # (N,)
    if holds_same_points(task):
        indices = _assignment(task, small=small)  # (N,)
        if task.improves(indices):
            return Proposal(indices, unmatched=unmatched, same_points=True)
    return Proposal(
        plan.best.indices[:, 0],
        weighted_mean(target, plan.best),
        soft=plan.best,
        unmatched=unmatched,
    )


def _assignment(task: Task, *, small: bool) -> Tensor:
    """One-to-one map (N,) with the largest likeness."""
    likeness = Likeness(task.pair.source_features, task.pair.target_features)
    if small:
        return best_assignment(likeness.all_pairs())
    rows, columns = _near_features(likeness.source, likeness.target)  # (E,), (E,)
    scores = likeness.of_pairs(rows, columns)  # (E,)
    return shortlist_assignment(rows, columns, scores, rest=task.nearest.indices[:, 0])


def _dense_plan(source: Tensor, target: Tensor, options: Options) -> _Plan:
    """Plan over all pairs of (N, D) and (M, D) unit features."""
    a, b = _masses(source, options), _masses(target, options)  # (N + 1,), (M + 1,)
    cosines = source @ target.T  # (N, M)
    if options.dustbin is not None:
        cosines = F.pad(cosines, (0, 1, 0, 1), value=options.dustbin)  # (N + 1, M + 1)
    logarithms = (cosines - 1) / options.temperature
    potentials = _solve(DenseKernel(logarithms), a, b, options)  # (N + 1,), (M + 1,)
    rows = logarithms[: len(source)] + potentials[1]  # (N, M + 1); that of the row cancels
    shares = rows.softmax(dim=1)  # (N, M + 1)
    best = shares[:, : len(target)].topk(min(options.neighbors, len(target)), dim=1)  # (N, K)
    left_out = shares[:, len(target) :].sum(dim=1)  # (N,)
    return _Plan(TopK(best.indices, _normalized(best.values)), left_out)


def _sparse_plan(source: Tensor, target: Tensor, options: Options) -> _Plan:
    """Plan over the nearest features of each point."""
    a, b = _masses(source, options), _masses(target, options)  # (N + 1,), (M + 1,)
    count, size = len(source), len(target)
    rows, columns = _near_features(source, target)  # (E,), (E,)
    logarithms = torch.cat(
        [
            (source[r] * target[c]).sum(dim=1)
            for r, c in zip(rows.split(1 << 14), columns.split(1 << 14), strict=True)
        ]
    )  # (E,)
    logarithms = (logarithms - 1) / options.temperature
    if options.dustbin is not None:
        own = torch.arange(count + 1, device=rows.device)  # (N + 1,)
        other = torch.arange(size, device=rows.device)  # (M,)
        rows = torch.cat([rows, own, torch.full_like(other, count)])  # (E + N + 1 + M,)
        columns = torch.cat([columns, torch.full_like(own, size), other])
        bin_score = (options.dustbin - 1) / options.temperature
        logarithms = F.pad(logarithms, (0, len(own) + len(other)), value=bin_score)
    kernel = SparseKernel(rows, columns, logarithms, (len(a), len(b)))
    potentials = _solve(kernel, a, b, options)
    # The best of each row, over its own shortlist: what reaches it only from the other side is
    # there too, because the list holds both ways.
    scores = logarithms + potentials[1][columns]  # (E,)
    order = torch.argsort(scores, descending=True, stable=True)  # (E,)
    order = order[torch.argsort(rows[order], stable=True)]  # by row, best first
    counts = torch.bincount(rows, minlength=len(a))  # (N + 1,)
    first = counts.cumsum(0) - counts  # (N + 1,)
    k = min(options.neighbors, size) + (options.dustbin is not None)
    place = first[:count, None] + torch.arange(k, device=rows.device)  # (N, k)
    missing = torch.arange(k, device=rows.device) >= counts[:count, None]  # (N, k)
    chosen = order[place.clamp_max(len(order) - 1)]  # (N, k)
    shares = scores[chosen].masked_fill(missing, -torch.inf).softmax(dim=1)  # (N, k)
    indices = columns[chosen]  # (N, k)
    outside = indices == size  # (N, k)
    left_out = (shares * outside).sum(dim=1)  # (N,)
    inside = TopK(indices.masked_fill(outside, 0), shares.masked_fill(outside, 0))  # (N, k)
    best = inside.scores.topk(min(options.neighbors, size), dim=1)  # (N, K)
    return _Plan(TopK(inside.indices.gather(1, best.indices), _normalized(best.values)), left_out)


def _masses(features: Tensor, options: Options) -> Tensor:
    """Equal masses (N,) that sum to one, and with a dustbin one more that could hold them all.

    By surface instead of by point the figures are no better: a crowded part of one shape is
    usually crowded on the other.
    """
    masses = features.new_full((len(features),), 1 / len(features))  # (N,)
    return masses if options.dustbin is None else F.pad(masses, (0, 1), value=1.0)


def _solve(
    kernel: DenseKernel | SparseKernel, a: Tensor, b: Tensor, options: Options
) -> tuple[Tensor, Tensor]:
    """Logarithms of the factors of rows and columns; what goes into a bin is not wished for."""
    reach = None if options.dustbin is not None else options.reach
    return sinkhorn(kernel, a, b, temperature=options.temperature, reach=reach)


def _near_features(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs (E,), (E,) of (N, D) and (M, D) features, nearest from either side, none twice."""
    there = cosine_topk(source, target, min(_SHORTLIST, len(target))).indices  # (N, k)
    back = cosine_topk(target, source, min(_SHORTLIST, len(source))).indices  # (M, k)
    own = torch.arange(len(source), device=there.device)[:, None].expand_as(there)  # (N, k)
    other = torch.arange(len(target), device=there.device)[:, None].expand_as(back)  # (M, k)
    listed = own * len(target) + there, back * len(target) + other  # (N, k), (M, k)
    codes = torch.cat([codes.flatten() for codes in listed]).unique()  # (E,)
    return torch.div(codes, len(target), rounding_mode="floor"), codes % len(target)


def _normalized(shares: Tensor) -> Tensor:
    """Rows (N, K) that sum to one, equal where nothing is left of them."""
    total = shares.sum(dim=1, keepdim=True)  # (N, 1)
    return torch.where(total > 0, shares / total, 1 / shares.shape[1])
