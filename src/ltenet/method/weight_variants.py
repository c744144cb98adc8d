"""Weights of a neighbourhood beyond the paper's: modified LLE, and penalties other than a ridge.

All rest on the Gram matrix G of a neighbourhood and on ``A = G + gamma I``, see `transforms`.

- Modified LLE [Zhang & Wang 2006] takes several weight vectors a point, from the almost-null space
  of G: with V_s its s eigenvectors, ``W = V_s H + (1 - a) w 1^T``, where w are the usual weights,
  ``a = |V_s^T 1| / sqrt(s)`` and H reflects V_s^T 1 onto a 1. We rebuild a point by the mean of the
  s columns. As H is its own inverse, ``H 1 = V_s^T 1 / a``, and the mean is

      a p / (1^T p) + (1 - a) w,    p = V_s V_s^T 1,

  without the reflection. Eigenvectors are no smooth functions of the features: the gradient flows
  through w alone.
- The elastic net, after robust LLE [Winlaw et al. 2011], minimises ``w^T A w + penalty |w|_1`` over
  weights that sum to one. Proximal steps find which weights vanish and the signs of the others;
  these then solve a linear system, through which the gradient flows.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Dimension of a surface: so many eigenvalues of G are large where its points are dense.
_SURFACE = 2
#: Rounds of corrected signs, and proximal steps where they do not suffice.
_ROUNDS, _STEPS = 12, 200


def modified_weights(gram: Tensor, weights: Tensor) -> Tensor:
    """Mean over the weight vectors of modified LLE.

    Parameters
    ----------
    gram
        (B, N, K, K) Gram matrices.
    weights
        (B, N, K) the usual weights; the gradient flows through them.
    """
    with torch.no_grad():
        values, vectors = torch.linalg.eigh(gram)  # (B, N, K) ascending, (B, N, K, K)
        small = _null_space(values.clamp_min(0))  # (B, N, K) bool, the s smallest
        along = vectors.sum(dim=-2) * small  # (B, N, K): V_s^T 1
        size = small.sum(dim=-1, keepdim=True).to(gram.dtype)  # (B, N, 1): s
        projected = (vectors @ along[..., None])[..., 0]  # (B, N, K): p
        square = along.square().sum(dim=-1, keepdim=True)  # (B, N, 1): 1^T p = a^2 s
        share = (square / size).sqrt()  # (B, N, 1): a
        # Where 1 is orthogonal to the almost-null space, a = 0 and nothing is mixed in.
        mixed = share * projected / square.clamp_min(torch.finfo(gram.dtype).tiny)  # (B, N, K)
    mean: Tensor = mixed + (1 - share) * weights  # (B, N, K)
    return mean


def _null_space(values: Tensor) -> Tensor:
    """Which eigenvalues (B, N, K), ascending, belong to the almost-null space: at least one.

    The most, from below, whose sum relative to that of the others stays under eta, the median over
    the points of a shape of that ratio for all but the two largest.
    """
    k = values.shape[-1]
    sums = values.cumsum(dim=-1)  # (B, N, K)
    tiny = torch.finfo(values.dtype).tiny
    ratios = sums[..., :-1] / (sums[..., -1:] - sums[..., :-1]).clamp_min(tiny)  # (B, N, K - 1)
    split = max(1, k - _SURFACE)
    eta = ratios[..., split - 1].quantile(0.5, dim=-1)[:, None, None]  # (B, 1, 1)
    size = (ratios < eta).sum(dim=-1, keepdim=True).clamp_min(1)  # (B, N, 1)
    return torch.arange(k, device=values.device) < size  # (B, N, K)


def elastic_net_weights(gram: Tensor, gamma: Tensor | float, penalty: float) -> Tensor:
    """Weights (R, K) that minimise ``w^T (G + gamma I) w + penalty |w|_1`` and sum to one.

    Parameters
    ----------
    gram
        (R, K, K) Gram matrices; the result is differentiable in them.
    gamma
        Ridge, one for all or (R, 1).
    penalty
        Weight of the l1 norm. As the weights sum to one it costs negative ones only.
    """
    k = gram.shape[-1]
    ridge = torch.as_tensor(gamma, dtype=gram.dtype, device=gram.device).expand(len(gram), 1)
    matrix = gram + torch.diag_embed(ridge.expand(-1, k))  # (R, K, K)
    return _solved(matrix, _signs(matrix.detach(), penalty), penalty)[0]


def _solved(matrix: Tensor, signs: Tensor, penalty: float) -> tuple[Tensor, Tensor]:
    """Weights (R, K) for known signs (R, K), and half the multiplier nu (R, 1) of their sum.

    ``2 A w + penalty sign = nu 1`` on the active weights, w = 0 on the others, ``1^T w = 1``.
    """
    active = (signs != 0).to(matrix.dtype)  # (R, K)
    inside = active[:, :, None] * active[:, None, :] * matrix  # (R, K, K)
    system = inside + torch.diag_embed(1 - active)  # (R, K, K)
    right = torch.stack([active, -0.5 * penalty * signs], dim=-1)  # (R, K, 2)
    along, offset = torch.linalg.solve(system, right).unbind(dim=-1)  # (R, K) each
    level = (1 - offset.sum(dim=-1, keepdim=True)) / along.sum(dim=-1, keepdim=True)  # (R, 1)
    return level * along + offset, level


@torch.no_grad()
def _signs(matrix: Tensor, penalty: float) -> Tensor:
    """Signs (R, K) of the minimiser, zero where it vanishes.

    Solve for the signs at hand, and let a proximal step at the solution correct them: a semi-smooth
    Newton method, which ends after a few rounds. Where it does not, proximal steps alone decide.
    """
    rate = 0.5 / matrix.diagonal(dim1=1, dim2=2)  # (R, K)
    signs: Tensor = torch.linalg.solve(matrix, torch.ones_like(rate)).sign()  # no penalty yet
    changed = torch.ones(len(matrix), dtype=torch.bool, device=matrix.device)  # (R,)
    for _ in range(_ROUNDS):
        weights, level = _solved(matrix, signs, penalty)
        slope = 2 * ((matrix @ weights[..., None])[..., 0] - level)  # (R, K)
        after = _soft(weights - rate * slope, penalty * rate).sign()  # (R, K)
        largest = torch.zeros_like(after).scatter_(1, weights.argmax(dim=1, keepdim=True), 1.0)
        after = torch.where((after == 0).all(dim=1, keepdim=True), largest, after)
        changed = (after != signs).any(dim=1)  # (R,)
        signs = after
        if not changed.any():
            return signs
    signs[changed] = _proximal_signs(matrix[changed], penalty)
    return signs


def _proximal_signs(matrix: Tensor, penalty: float) -> Tensor:
    """Signs (R, K) of the minimiser by FISTA [Beck & Teboulle 2009]."""
    rate = 0.5 / torch.linalg.matrix_norm(matrix, ord=float("inf"))[:, None]  # (R, 1)
    weights = torch.full_like(matrix[..., 0], 1 / matrix.shape[-1])  # (R, K)
    ahead, momentum = weights, 1.0
    for _ in range(_STEPS):
        slope = 2 * (matrix @ ahead[..., None])[..., 0]  # (R, K)
        after = _shrunk(ahead - rate * slope, penalty * rate)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = after + (momentum - 1) / following * (after - weights)
        weights, momentum = after, following
    signs: Tensor = weights.sign()
    return signs


def _shrunk(values: Tensor, threshold: Tensor) -> Tensor:
    """Proximal map of threshold |w|_1 over weights that sum to one: (R, K), (R, 1) -> (R, K).

    It is soft thresholding of the values less a multiplier. Their sum falls with the multiplier,
    linearly between the 2 K places where a weight begins or ceases to vanish.
    """
    k = values.shape[-1]
    breaks = torch.cat([values - threshold, values + threshold], dim=-1).sort(dim=-1).values
    sums = _soft(values[:, None] - breaks[..., None], threshold[..., None]).sum(dim=-1)  # (R, 2 K)
    before = (sums >= 1).sum(dim=-1, keepdim=True) - 1  # (R, 1): -1 to the left of all places
    here = before.clamp(0, 2 * k - 2)  # (R, 1)
    low, high = breaks.gather(1, here), breaks.gather(1, here + 1)  # (R, 1) each
    first, second = sums.gather(1, here), sums.gather(1, here + 1)  # (R, 1) each
    share = (first - 1) / (first - second).clamp_min(torch.finfo(values.dtype).tiny)  # (R, 1)
    inside = low + share * (high - low)
    outside = breaks[:, :1] - (1 - sums[:, :1]) / k  # there every weight is positive
    return _soft(values - torch.where(before < 0, outside, inside), threshold)


def _soft(values: Tensor, threshold: Tensor) -> Tensor:
    return values.sign() * (values.abs() - threshold).clamp_min(0)
