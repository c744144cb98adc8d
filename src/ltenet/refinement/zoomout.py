"""Method "spectral": ZoomOut [Melzi et al. 2019] on the Laplacian of a mesh or a cloud.

A map T from source to target pulls functions of the target back to the source. In the first k
eigenfunctions of both, see `laplacian`, this is a functional map

    C = functions_source^+ functions_target[T],

which in turn gives a point map: T(x) is the y whose row of functions_target is nearest to that of
functions_source C. ZoomOut alternates between the two while k grows. C is made orthogonal, as it is
for maps that preserve area. The best initial k depends on how rough the first map is and how far
the shapes are from isometric, so several are tried and the energy decides.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.laplacian import LaplacianBasis, laplacian_basis
from ltenet.method.neighbors import BLOCK_ENTRIES, TopK
from ltenet.method.transforms import locally_linear_weights, simplex_projection
from ltenet.refinement.judge import map_scores
from ltenet.refinement.options import Spectral
from ltenet.refinement.pair import Pair
from ltenet.refinement.proposal import Problem, Proposal
from ltenet.refinement.soft_partners import weighted_mean

#: Numbers of eigenfunctions, as far as the shapes have them, and the initial ones.
STEPS = (4, 6, 8, 10, 13, 16, 20, 25, 30, 36, 43, 50, 60, 70, 80, 90, 100)
_BEGINNINGS = (4, 20, 50, 100)
#: Points of each shape that the steps work on, and eigenfunctions per point, at most.
_STEP_POINTS, _FUNCTION_SHARE = 2048, 0.25
#: First step that is scored; with fewer functions maps are too rough to win.
_SCORED = 20


class _Best(NamedTuple):
    """The best map so far: its energy, its number of functions, and the points at the rows (n,)."""

    energy: float
    functions: int
    indices: Tensor


def refine_spectral(problem: Problem, _options: Spectral) -> Proposal:
    """Grow the number of functions, and keep the map with the lowest energy."""
    pair = problem.pair
    most = int(_FUNCTION_SHARE * min(len(pair.source), len(pair.target)))
    steps = [step for step in STEPS if step <= most]
    if not steps:
        raise InputError(
            f"spectral refinement: got {len(pair.source)} and {len(pair.target)} points, expected "
            f"at least {int(STEPS[0] / _FUNCTION_SHARE)} on each; try another method"
        )
    source = laplacian_basis(pair.source.points, steps[-1], faces=pair.source.faces)
    target = laplacian_basis(pair.target.points, steps[-1], faces=pair.target.faces)
    rows = pair.source.spread(_STEP_POINTS)  # (n,)
    best = _best_step(pair, problem.start[rows], rows, (source, target), steps)
    ours, theirs = aligned(source, target, best.indices, best.functions, rows=rows)  # (N, k), ...
    nearest = euclidean_topk(ours, theirs, min(problem.neighbors, len(theirs)))  # (N, K)
    weights = locally_linear_weights(
        ours[None], theirs[None], nearest.indices[None], gamma=0.1, relative=True
    )[0]  # (N, K)
    soft = TopK(nearest.indices, simplex_projection(weights).to(pair.target.points.dtype))
    return Proposal(nearest.indices[:, 0], weighted_mean(pair.target.points, soft), soft=soft)


def _best_step(
    pair: Pair,
    start: Tensor,
    rows: Tensor,
    bases: tuple[LaplacianBasis, LaplacianBasis],
    steps: list[int],
) -> _Best:
    """Zoom out from several initial sizes on samples of the points; score every step.

    Parameters
    ----------
    pair
        Both shapes.
    start
        (n,) target points of the source points at `rows` (n,).
    bases
        Eigenfunctions of both shapes.
    steps
        Numbers of functions, ascending.
    """
    columns = pair.target.spread(_STEP_POINTS)  # (m,)
    sampled = Pair(pair.source.subset(rows), pair.target)
    best = _Best(math.inf, steps[-1], start)
    for first in {min(first, steps[-1]): None for first in _BEGINNINGS}:
        current = start  # (n,)
        for step in (step for step in steps if step >= first):
            ours, theirs = aligned(*bases, current, step, rows=rows)  # (N, k), (M, k)
            near = euclidean_topk(ours[rows], theirs[columns], 1).indices[:, 0]  # (n,)
            current = columns[near]  # (n,)
            if step >= min(_SCORED, steps[-1]):
                energy = map_scores(sampled, current).energy
                if energy < best.energy:
                    best = _Best(energy, step, current)
    return best


def aligned(
    source: LaplacianBasis,
    target: LaplacianBasis,
    indices: Tensor,
    k: int,
    *,
    rows: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Express both shapes in one space, (N, k) and (M, k), by a map of the points at `rows`.

    Parameters
    ----------
    source, target
        Bases with at least k functions.
    indices
        (n,) target points of the source points at `rows`; all points by default.
    k
        Number of functions.
    """
    ours, theirs = source.functions[:, :k], target.functions[:, :k]  # (N, k), (M, k)
    known = ours if rows is None else ours[rows]  # (n, k)
    matrix = torch.linalg.lstsq(known, theirs[indices]).solution  # (k, k): C
    left, _, right = torch.linalg.svd(matrix)
    return ours @ (left @ right), theirs


def euclidean_topk(queries: Tensor, rows: Tensor, k: int) -> TopK:
    """Find the k nearest of (M, C) rows to each of (N, C) queries; scores are minus the squares."""
    squares = rows.square().sum(dim=1)  # (M,)
    indices, scores = [], []
    for block in queries.split(max(1, BLOCK_ENTRIES // len(rows))):
        distance = torch.addmm(squares, block, rows.T, alpha=-2)  # (b, M)
        best = distance.topk(k, dim=1, largest=False)
        indices.append(best.indices)
        scores.append(-(best.values + block.square().sum(dim=1, keepdim=True)))
    return TopK(torch.cat(indices), torch.cat(scores))
