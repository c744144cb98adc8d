"""A linear transformation between the embeddings, found without ground truth.

The paper shows that embeddings of two shapes are related by one linear map, better than they agree
as they are, and finds it from the true correspondence: ``A = (F^+ P G)^T``. Here current matches
stand in for the truth: fit A to the mutual ones, match ``A f`` with g by cosine, fit again, as long
as the energy of the map falls. Hundreds of channels and as few matches would let A learn any match
by heart, so it is drawn to the identity,

    min_A  sum_i |A f_i - g_m(i)|^2 + ridge |A - I|^2,

and the ridge, too, is chosen by the energy.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.errors import InputError
from ltenet.neighbors import TopK, cosine_topk
from ltenet.refinement.pair import Proposal, Task
from ltenet.refinement.soft import by_likeness, weighted_mean

#: Ridges, relative to the mean eigenvalue of the features' covariance, and rounds for each.
RIDGES, _ROUNDS = (1e-3, 1e-1, 1.0, 10.0), 10


def transform(task: Task) -> Proposal:
    """Match after the linear map of the source's features that fits the matches best."""
    source = F.normalize(task.pair.source_features, dim=1)  # (N, D)
    target = F.normalize(task.pair.target_features, dim=1)  # (M, D)
    best, best_energy = task.nearest, task.start_scores.energy
    if task.given:
        best_energy = float("inf")  # the map that was given need not be that of the features
    for ridge in RIDGES:
        current, energy = task.start, float("inf")  # (N,)
        rows = _mutual(current, task.back)  # (n,)
        for _ in range(_ROUNDS):
            matrix = fit_linear(source[rows], target[current[rows]], ridge=ridge)  # (D, D)
            moved = source @ matrix.T  # (N, D)
            nearest = cosine_topk(moved, target, task.nearest.indices.shape[1])  # (N, K)
            current = nearest.indices[:, 0]  # (N,)
            found = task.scores(current).energy
            if found >= energy:
                break
            energy = found
            if energy < best_energy:
                best, best_energy = nearest, energy
            rows = _mutual(current, cosine_topk(target, moved, 1).indices[:, 0])  # (n,)
    soft = by_likeness(best, task.options.temperature)
    places = weighted_mean(task.pair.target_points, soft)  # (N, 3)
    return Proposal(best.indices[:, 0], places, soft=TopK(*soft))


def fit_linear(source: Tensor, target: Tensor, *, ridge: float) -> Tensor:
    """Linear map (D, D) of (n, D) features onto (n, D), drawn to the identity.

    Minimises ``sum_i |A f_i - g_i|^2 + c |A - I|^2`` where c is `ridge` times the mean eigenvalue
    of ``F^T F``. As the ridge goes to 0 this becomes the paper's, where F has full rank.
    """
    if source.shape != target.shape or source.ndim != 2 or len(source) == 0:
        raise InputError(
            f"features {tuple(source.shape)} and {tuple(target.shape)} came; two of one shape "
            "(n, D), one row for each match, are needed; take the rows of both at the matches"
        )
    dtype = source.dtype
    source, target = source.double(), target.double()  # (n, D), (n, D)
    system = source.T @ source  # (D, D)
    scale = ridge * system.diagonal().mean().clamp_min(torch.finfo(system.dtype).tiny)  # ()
    system.diagonal().add_(scale)
    right = source.T @ (target - source)  # (D, D); for A - I
    correction = torch.linalg.solve(system, right)  # (D, D)
    correction.diagonal().add_(1.0)
    matrix: Tensor = correction.T.to(dtype)  # (D, D)
    return matrix


def _mutual(indices: Tensor, back: Tensor) -> Tensor:
    """Rows (n,) whose matches (N,) lead back (M,) to them; all rows if there are hardly any."""
    own = torch.arange(len(indices), device=indices.device)  # (N,)
    rows = own[back[indices] == own]  # (n,)
    return rows if len(rows) >= 8 else own
