"""Method "ot": optimal transport moves the source onto the target, guided by features.

Nearest features map many source points to some target points and none to others. Here the surface
of the source is transported onto that of the target so that matched features are most similar, with
entropic regularisation and relaxed marginals; see `sinkhorn`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.method.neighbors import TopK
from ltenet.refinement.assignment import DENSE_POINTS, best_assignment, shortlist_assignment
from ltenet.refinement.coherent import holds_same_points
from ltenet.refinement.judge import map_scores
from ltenet.refinement.options import Transport
from ltenet.refinement.pair import Pair
from ltenet.refinement.proposal import Problem, Proposal
from ltenet.refinement.sinkhorn import DenseKernel, Potentials, SparseKernel, sinkhorn_potentials
from ltenet.refinement.soft_partners import weighted_mean

#: Nearest features of each point, both ways, that larger shapes are matched among.
_SHORTLIST = 48


class _Moved(NamedTuple):
    """Where the mass of each source point goes.

    Attributes
    ----------
    best
        (N, K) target points that receive most, with their shares of what is not left out.
    left_out
        (N,) share of the point that goes nowhere.
    """

    best: TopK
    left_out: Tensor


def refine_by_transport(problem: Problem, options: Transport) -> Proposal:
    """Move the source onto the target; one to one where both hold the same points."""
    pair = problem.pair
    small = max(len(pair.source), len(pair.target)) <= DENSE_POINTS
    moved = (_dense_plan if small else _sparse_plan)(pair, options, problem.neighbors)
    unmatched = None if options.dustbin is None else moved.left_out > 0.5  # (N,)
    if holds_same_points(pair, options.one_to_one):
        indices = _assignment(pair, small=small)  # (N,)
        if map_scores(pair, indices).energy <= problem.scores.energy:
            return Proposal(indices, unmatched=unmatched, same_points=True)
    return Proposal(
        moved.best.indices[:, 0],
        weighted_mean(pair.target.points, moved.best),
        soft=moved.best,
        unmatched=unmatched,
    )


def _assignment(pair: Pair, *, small: bool) -> Tensor:
    """One-to-one map (N,) with the largest relative similarity."""
    if small:
        return best_assignment(pair.relative_matrix())
    rows, columns = _near_features(pair)  # (E,), (E,)
    scores = pair.relative_at(rows, columns)  # (E,)
    return shortlist_assignment(rows, columns, scores, rest=pair.best.indices)


def _dense_plan(pair: Pair, options: Transport, neighbors: int) -> _Moved:
    """Plan over all pairs."""
    a, b = (_masses(side.points, options) for side in (pair.source, pair.target))  # (N + 1,), ...
    size = len(pair.target)
    cosines = pair.cosine_block()  # (N, M)
    if options.dustbin is not None:
        cosines = F.pad(cosines, (0, 1, 0, 1), value=options.dustbin)  # (N + 1, M + 1)
    logarithms = (cosines - 1) / options.temperature
    potentials = _solve(DenseKernel(logarithms), a, b, options)  # (N + 1,), (M + 1,)
    rows = logarithms[: len(pair.source)] + potentials.columns  # (N, M + 1); the row's cancels
    shares = rows.softmax(dim=1)  # (N, M + 1)
    best = shares[:, :size].topk(min(neighbors, size), dim=1)  # (N, K)
    left_out = shares[:, size:].sum(dim=1)  # (N,)
    return _Moved(TopK(best.indices, _normalized(best.values)), left_out)


def _sparse_plan(pair: Pair, options: Transport, neighbors: int) -> _Moved:
    """Plan over the nearest features of each point."""
    a, b = (_masses(side.points, options) for side in (pair.source, pair.target))  # (N + 1,), ...
    count, size = len(pair.source), len(pair.target)
    rows, columns = _near_features(pair)  # (E,), (E,)
    logarithms = (pair.cosines_at(rows, columns) - 1) / options.temperature  # (E,)
    if options.dustbin is not None:
        own = torch.arange(count + 1, device=rows.device)  # (N + 1,)
        other = torch.arange(size, device=rows.device)  # (M,)
        rows = torch.cat([rows, own, torch.full_like(other, count)])  # (E + N + 1 + M,)
        columns = torch.cat([columns, torch.full_like(own, size), other])
        bin_score = (options.dustbin - 1) / options.temperature
        logarithms = F.pad(logarithms, (0, len(own) + len(other)), value=bin_score)
    kernel = SparseKernel(rows, columns, logarithms, (len(a), len(b)))
    potentials = _solve(kernel, a, b, options)
    # The best of each row within its own shortlist, which is symmetric: entries found only from the
    # other side are in it too.
    scores = logarithms + potentials.columns[columns]  # (E,)
    order = torch.argsort(scores, descending=True, stable=True)  # (E,)
    order = order[torch.argsort(rows[order], stable=True)]  # by row, best first
    counts = torch.bincount(rows, minlength=len(a))  # (N + 1,)
    first = counts.cumsum(0) - counts  # (N + 1,)
    k = min(neighbors, size) + (options.dustbin is not None)
    place = first[:count, None] + torch.arange(k, device=rows.device)  # (N, k)
    missing = torch.arange(k, device=rows.device) >= counts[:count, None]  # (N, k)
    chosen = order[place.clamp_max(len(order) - 1)]  # (N, k)
    shares = scores[chosen].masked_fill(missing, -torch.inf).softmax(dim=1)  # (N, k)
    indices = columns[chosen]  # (N, k)
    outside = indices == size  # (N, k)
    left_out = (shares * outside).sum(dim=1)  # (N,)
    inside = TopK(indices.masked_fill(outside, 0), shares.masked_fill(outside, 0))  # (N, k)
    best = inside.scores.topk(min(neighbors, size), dim=1)  # (N, K)
    return _Moved(TopK(inside.indices.gather(1, best.indices), _normalized(best.values)), left_out)


def _masses(points: Tensor, options: Transport) -> Tensor:
    """Equal masses (N,) that sum to one, and with a dustbin one more that could hold them all.

    Masses by surface area are no better: a crowded part of one shape is usually crowded on the
    other.
    """
    masses = points.new_full((len(points),), 1 / len(points))  # (N,)
    return masses if options.dustbin is None else F.pad(masses, (0, 1), value=1.0)


def _solve(
    kernel: DenseKernel | SparseKernel, a: Tensor, b: Tensor, options: Transport
) -> Potentials:
    """Potentials of rows and columns; with a dustbin the marginals are exact."""
    reach = None if options.dustbin is not None else options.reach
    return sinkhorn_potentials(kernel, a, b, temperature=options.temperature, reach=reach)


def _near_features(pair: Pair) -> tuple[Tensor, Tensor]:
    """Pairs (E,), (E,) of points with near features, from either side, none twice."""
    there = pair.nearest(_SHORTLIST).indices  # (N, k)
    back = pair.reversed().nearest(_SHORTLIST).indices  # (M, k)
    own = torch.arange(len(there), device=there.device)[:, None].expand_as(there)  # (N, k)
    other = torch.arange(len(back), device=there.device)[:, None].expand_as(back)  # (M, k)
    listed = own * len(back) + there, back * len(back) + other  # (N, k), (M, k)
    codes = torch.cat([codes.flatten() for codes in listed]).unique()  # (E,)
    return torch.div(codes, len(back), rounding_mode="floor"), codes % len(back)


def _normalized(shares: Tensor) -> Tensor:
    """Rows (N, K) that sum to one, uniform where nothing is left of them."""
    total = shares.sum(dim=1, keepdim=True)  # (N, 1)
    return torch.where(total > 0, shares / total, 1 / shares.shape[1])
