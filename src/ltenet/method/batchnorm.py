"""BatchNorm over edges, points and processes, and its affine map in evaluation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class _SumOverProcesses(torch.autograd.Function):
    """Sum of a tensor over all processes; its gradient is summed likewise."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _SumOverProcesses.forward(ctx, grad)


def total_over_processes(values: Tensor, *, shared: bool) -> Tensor:
    """Sum over all processes if statistics are shared, else the values of this one."""
    return _SumOverProcesses.apply(values) if shared else values


@torch.no_grad()
def track_statistics(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor, count: Tensor) -> None:
    """Move the running statistics (C,) towards those of a batch of `count` values."""
    assert norm.momentum is not None
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.running_mean.lerp_(mean, norm.momentum)
    norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
    norm.num_batches_tracked.add_(1)


def folded_affine(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """Return scale (C,) and shift (C,) that BatchNorm amounts to in evaluation."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return scale, norm.bias - norm.running_mean * scale


def batch_norm(features: Tensor, norm: nn.BatchNorm1d, *, shared: bool) -> Tensor:
    """BatchNorm of (M, C) features with the statistics of the batch, over all processes if shared.

    Torch's own is shared on GPUs only.
    """
    if not shared:
        return norm(features)  # type: ignore[no-any-return]
    count = total_over_processes(
        features.new_tensor(len(features), dtype=torch.float64), shared=True
    )
    mean = total_over_processes(features.sum(dim=0), shared=True) / count  # (C,)
    features = features - mean
    variance = total_over_processes(features.square().sum(dim=0), shared=True) / count  # (C,)
    track_statistics(norm, mean, variance, count)
    scale = norm.weight * torch.rsqrt(variance + norm.eps)  # (C,)
    return torch.addcmul(norm.bias, features, scale)


class PointwiseLayer(nn.Module):
    """Linear map without bias, BatchNorm over all points, LeakyReLU: (M, C_in) -> (M, C_out).

    Attributes
    ----------
    shared
        Whether BatchNorm counts the points of all processes.
    """

    def __init__(self, inputs: int, outputs: int, *, slope: float, momentum: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.norm = nn.BatchNorm1d(outputs, momentum=momentum)
        self.slope, self.shared = slope, False

    def forward(self, features: Tensor) -> Tensor:
        """Apply the layer."""
        if self.training:
            features = batch_norm(self.linear(features), self.norm, shared=self.shared)
        else:
            scale, shift = folded_affine(self.norm)
            features = F.linear(features, self.linear.weight * scale[:, None], shift)
        return F.leaky_relu(features, self.slope)  # (M, C_out)
