"""Spectral refinement: ZoomOut (Melzi and others 2019) on the Laplacian of mesh or cloud.

A map T from source to target carries functions of the target back to the source. Among the k
slowest functions of both, see `ltenet.spectral`, that is a matrix,

    C = functions_source^+ functions_target[T],

and it says where the points belong: T(x) is the y whose row of functions_target is nearest to that
of functions_source C. Few functions give a rough map, from which more can be matched: k grows.
C is made orthogonal, as it is for maps that keep areas. How small k should begin depends on how
rough the first map is and on how far the shapes are from isometric, so several are tried and the
energy decides.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.map_quality import Judge
from ltenet.neighbors import BLOCK_ENTRIES, TopK
from ltenet.refinement.pair import Proposal, Task
from ltenet.refinement.soft import weighted_mean
from ltenet.spectral import LaplacianBasis, laplacian_basis
from ltenet.transforms import locally_linear_weights, simplex_projection
from ltenet.transport import spread_sample

#: Functions of the steps, as far as the shapes have them, and those that are begun with.
STEPS = (4, 6, 8, 10, 13, 16, 20, 25, 30, 36, 43, 50, 60, 70, 80, 90, 100)
_BEGINNINGS = (4, 20, 50, 100)
#: Points of each shape that the steps work on, and share of them as functions.
_STEP_POINTS, _FUNCTION_SHARE = 2048, 0.25
#: First step that is scored; with fewer functions maps are too rough to be the best.
_SCORED = 20


class _Best(NamedTuple):
    """The best map so far: its energy, its number of functions, and the points at the rows (n,)."""

    energy: float
    functions: int
    indices: Tensor


def zoom_out(task: Task) -> Proposal:
    """Grow the number of functions, and keep the map with the lowest energy."""
    pair = task.pair
    most = int(_FUNCTION_SHARE * min(len(pair.source_points), len(pair.target_points)))
    steps = [step for step in STEPS if step <= most]
    if not steps:
        raise InputError(
            f"{len(pair.source_points)} and {len(pair.target_points)} points came; at least "
            f"{int(STEPS[0] / _FUNCTION_SHARE)} on each are needed for spectral refinement; "
            "use another method for shapes that small"
        )
    source = laplacian_basis(pair.source_points, steps[-1], faces=pair.source_faces)
    target = laplacian_basis(pair.target_points, steps[-1], faces=pair.target_faces)
    best = _best_step(task, source, target, steps)
    rows = spread_sample(pair.source_points, _STEP_POINTS)  # (n,)
    ours, theirs = aligned(source, target, best.indices, best.functions, rows=rows)  # (N, k), ...
    nearest = nearest_rows(ours, theirs, task.nearest.indices.shape[1])  # (N, K)
    weights = locally_linear_weights(
        ours[None], theirs[None], nearest.indices[None], gamma=0.1, relative=True
    )[0]  # (N, K)
    soft = TopK(nearest.indices, simplex_projection(weights).to(pair.target_points.dtype))
    return Proposal(nearest.indices[:, 0], weighted_mean(pair.target_points, soft), soft=soft)


def _best_step(
    task: Task, source: LaplacianBasis, target: LaplacianBasis, steps: list[int]
) -> _Best:
    """Zoom out from several beginnings, on samples of the points; score every step."""
    pair = task.pair
    rows = spread_sample(pair.source_points, _STEP_POINTS)  # (n,)
    columns = spread_sample(pair.target_points, _STEP_POINTS)  # (m,)
    features = pair.source_features[rows], pair.target_features  # (n, D), (M, D)
    judge = Judge(pair.source_points[rows], pair.target_points, features=features)
    best = _Best(math.inf, steps[-1], task.start[rows])
    for beginning in {min(beginning, steps[-1]): None for beginning in _BEGINNINGS}:
        current = task.start[rows]  # (n,)
        for step in (step for step in steps if step >= beginning):
            ours, theirs = aligned(source, target, current, step, rows=rows)  # (N, k), (M, k)
            current = columns[nearest_rows(ours[rows], theirs[columns], 1).indices[:, 0]]  # (n,)
            if step >= min(_SCORED, steps[-1]):
                energy = judge.scores(current).energy
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
    """Points of both shapes in one space (N, k), (M, k), by a map of the points at `rows`.

    Parameters
    ----------
    source, target
        Bases with at least k functions.
    indices
        (n,) target points of the source points at `rows`; all points by default.
    k
        How many functions.
    """
    ours, theirs = source.functions[:, :k], target.functions[:, :k]  # (N, k), (M, k)
    known = ours if rows is None else ours[rows]  # (n, k)
    matrix = torch.linalg.lstsq(known, theirs[indices]).solution  # (k, k): C
    left, _, right = torch.linalg.svd(matrix)
    return ours @ (left @ right), theirs


def nearest_rows(queries: Tensor, rows: Tensor, k: int) -> TopK:
    """Find the k nearest of (M, C) rows to each of (N, C) queries, with minus the squares."""
    squares = rows.square().sum(dim=1)  # (M,)
    indices, scores = [], []
    for block in queries.split(max(1, BLOCK_ENTRIES // len(rows))):
        distance = torch.addmm(squares, block, rows.T, alpha=-2)  # (b, M)
        best = distance.topk(k, dim=1, largest=False)
        indices.append(best.indices)
        scores.append(-(best.values + block.square().sum(dim=1, keepdim=True)))
    return TopK(torch.cat(indices), torch.cat(scores))
