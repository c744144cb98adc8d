"""Method "linear": match after a linear map between the embeddings, found without ground truth.

The paper shows that embeddings of two shapes agree better after one linear map, which it derives
from the true correspondence: ``A = (F^+ P G)^T``. Here current matches replace the truth: fit A to
the mutual ones, match ``A f`` with g by cosine, and repeat while the energy of the map falls. With
hundreds of channels and as few matches A could memorise any match, so a ridge ties it to the
identity,

    min_A  sum_i |A f_i - g_m(i)|^2 + ridge |A - I|^2,

and the energy also selects the ridge.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.neighbors import cosine_topk
from ltenet.refinement.judge import map_scores
from ltenet.refinement.options import Linear
from ltenet.refinement.proposal import Problem, Proposal
from ltenet.refinement.soft_partners import by_similarity, weighted_mean

#: Ridges, relative to the mean eigenvalue of the features' covariance, and rounds for each.
RIDGES, _ROUNDS = (1e-3, 1e-1, 1.0, 10.0), 10


def refine_linear(problem: Problem, _options: Linear) -> Proposal:
    """Match after the linear map of the source's features that best fits the matches."""
    pair = problem.pair
    source, target = pair.source.features, pair.target.features  # (N, D), (M, D)
    best, best_energy = pair.nearest(problem.neighbors), problem.scores.energy  # (N, K)
    if problem.given:
        best_energy = float("inf")  # the given map need not be that of the features
    for ridge in RIDGES:
        current, energy = problem.start, float("inf")  # (N,)
        rows = _mutual(current, pair.best_back.indices)  # (n,)
        for _ in range(_ROUNDS):
            matrix = fit_linear(source[rows], target[current[rows]], ridge=ridge)  # (D, D)
            moved = source @ matrix.T  # (N, D)
            nearest = cosine_topk(moved, target, best.indices.shape[1])  # (N, K)
            current = nearest.indices[:, 0]  # (N,)
            found = map_scores(pair, current).energy
            if found >= energy:
                break
            energy = found
            if energy < best_energy:
                best, best_energy = nearest, energy
            rows = _mutual(current, cosine_topk(target, moved, 1).indices[:, 0])  # (n,)
    soft = by_similarity(best)
    return Proposal(best.indices[:, 0], weighted_mean(pair.target.points, soft), soft=soft)


def fit_linear(source: Tensor, target: Tensor, *, ridge: float) -> Tensor:
    """Linear map (D, D) of (n, D) features onto (n, D), tied to the identity by a ridge.

    Minimises ``sum_i |A f_i - g_i|^2 + c |A - I|^2`` where c is `ridge` times the mean eigenvalue
    of ``F^T F``. As the ridge goes to 0 this becomes the paper's map, if F has full rank.
    """
    if source.shape != target.shape or source.ndim != 2 or len(source) == 0:
        raise InputError(
            f"got features {tuple(source.shape)} and {tuple(target.shape)}, expected (n, D) twice, "
            "one row for each match; try selecting the matched rows of both"
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
    """Rows (n,) whose matches (N,) lead back (M,) to them; all rows if these are fewer than 8."""
    own = torch.arange(len(indices), device=indices.device)  # (N,)
    rows = own[back[indices] == own]  # (n,)
    return rows if len(rows) >= 8 else own
