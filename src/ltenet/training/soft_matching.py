"""Cross-entropy between the softmax of similarities and a Gaussian around known positions.

For unit features a_i of the source and b_j of the target, with S = a b^T / temperature,

    loss = mean_i ( logsumexp_j S_ij - sum_j P_ij S_ij )  +  the same from target to source,

where ``P_i = softmax_j(-|t_i - y_j|^2 / (2 width^2))`` and t_i is the known position of source
point i on the target. The target's points need not contain t_i: whatever was drawn near it shares
its mass. Rows whose position is not known are left out of the mean.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


def soft_matching(
    source_features: Tensor,
    target_features: Tensor,
    source_targets: Tensor,
    target_targets: Tensor,
    *,
    temperature: float = 0.05,
) -> Tensor:
    """Cross-entropy of one pair in both directions, a scalar.

    Parameters
    ----------
    source_features, target_features
        (N, D) and (M, D), of any length.
    source_targets
        (N, M) what `soft_targets` made of the source's known positions.
    target_targets
        (M, N) the same for the target.
    temperature
        Cosine similarities are divided by it.
    """
    loss: Tensor = _SoftMatching.apply(  # type: ignore[no-untyped-call]
        F.normalize(source_features, dim=1),
        F.normalize(target_features, dim=1),
        source_targets,
        target_targets,
        temperature,
    )
    return loss


def soft_targets(positions: Tensor, known: Tensor, points: Tensor, *, width: float) -> Tensor:
    """Gaussians around known positions, over the points that were drawn; rows sum to one.

    Parameters
    ----------
    positions
        (N, 3) where each point lies on the other shape.
    known
        (N,) bool; rows that are not known are zero.
    points
        (M, 3) drawn points of the other shape.
    width
        Standard deviation of the Gaussian.
    """
    scale = 0.5**0.5 / width
    positions, points = positions * scale, points * scale
    # -|t - y|^2 without -|t|^2, which is the same along a row and cancels in the softmax.
    exponent = torch.addmm(-points.square().sum(dim=1), positions, points.T, alpha=2)  # (N, M)
    return exponent.softmax(dim=1) * known[:, None]


class _SoftMatching(torch.autograd.Function):
    """The loss and its gradient in one pass; one (N, M) matrix of similarities at a time.

    ``dS = (softmax_j S - P) / n`` on the n known rows, plus the same for the columns.
    """

    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,
        target: Tensor,
        source_targets: Tensor,
        target_targets: Tensor,
        temperature: float,
    ) -> Tensor:
        similarity = (source @ target.T).div_(temperature)  # (N, M)
        forth, grad = _cross_entropy(similarity, source_targets)
        back, grad_back = _cross_entropy(similarity.T, target_targets)
        grad.add_(grad_back.T).div_(temperature)  # (N, M)
        ctx.save_for_backward(
            grad @ target if ctx.needs_input_grad[0] else None,  # (N, D)
            grad.T @ source if ctx.needs_input_grad[1] else None,  # (M, D)
        )
        return forth + back

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        source, target = ctx.saved_tensors
        return (
            None if source is None else source * grad,
            None if target is None else target * grad,
            None,
            None,
            None,
        )


def _cross_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over the known rows of (N, M) logits, and its gradient (N, M)."""
    known = targets.sum(dim=1)  # (N,) one, or zero where not known
    count = known.sum().clamp_min(1)
    log_probabilities = logits.log_softmax(dim=1)  # (N, M)
    loss = -torch.dot(log_probabilities.flatten(), targets.flatten()) / count
    grad = log_probabilities.exp_().mul_(known[:, None]).sub_(targets).div_(count)  # (N, M)
    return loss, grad
