"""BatchNorm statistics over edges and over processes, and their affine map in evaluation."""

from __future__ import annotations

from typing import Any

import torch
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
