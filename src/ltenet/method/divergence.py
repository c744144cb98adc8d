"""Divergence of a rebuilt shape from the real one: Cauchy-Schwarz (Eq. 8 to 10), Chamfer, EMD.

All have one signature, (B, N, 3) and (B, M, 3) -> (B,), are differentiable in the first shape and
in the second, take unequal sizes, and keep no (N, M, 3) tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree
from torch import Tensor
from torch.autograd.function import once_differentiable

from ltenet.errors import InputError

#: Kernel values at a time, per shape of the batch: half a megabyte stays in cache.
_BLOCK_ENTRIES = 1 << 17
#: Exponents below the largest by this much add nothing, even a billion of them, even in float64.
#: Left as they are they underflow, which is thirty times slower than the exponential itself.
_NEGLIGIBLE = -80.0
#: Largest number of points whose assignment is solved exactly.
EXACT_ASSIGNMENT = 1024


@dataclass(frozen=True)
class DivergenceConfig:
    """Which divergence, and its parameters.

    Attributes
    ----------
    kind
        "cauchy-schwarz" (the paper's), "chamfer" or "emd".
    sigma
        Bandwidth of the densities of Cauchy-Schwarz, in the unit of the normalised shapes.
    relative
        Give sigma in units of the target's mean nearest-neighbour spacing instead.
    """

    kind: Literal["cauchy-schwarz", "chamfer", "emd"] = "cauchy-schwarz"
    sigma: float = 0.01
    relative: bool = False

    def __post_init__(self) -> None:
        if self.kind not in DIVERGENCES:
            raise InputError(
                f"divergence: got {self.kind!r}, expected one of {', '.join(DIVERGENCES)}; "
                "try the paper's cauchy-schwarz"
            )
        if not self.sigma > 0:
            raise InputError(
                f"divergence: got sigma {self.sigma}, expected a positive bandwidth; "
                "try the paper's 0.01"
            )


def divergence(rebuilt: Tensor, real: Tensor, config: DivergenceConfig | None = None) -> Tensor:
    """Divergence (B,) between (B, N, 3) rebuilt and (B, M, 3) real points."""
    config = config or DivergenceConfig()
    if rebuilt.ndim != 3 or real.ndim != 3 or len(rebuilt) != len(real):
        raise InputError(
            f"divergence: got tensors of shape {tuple(rebuilt.shape)} and {tuple(real.shape)}, "
            "expected (B, N, 3) and (B, M, 3) with the same B; try adding a batch axis with [None]"
        )
    return DIVERGENCES[config.kind](rebuilt, real, config)


# --- Cauchy-Schwarz -----------------------------------------------------------------------------


def cauchy_schwarz(rebuilt: Tensor, real: Tensor, sigma: float | Tensor = 0.01) -> Tensor:
    """Cauchy-Schwarz divergence (B,) of the two kernel densities, the paper's objective.

    With L(a, b) = log sum_ij exp(-|a_i - b_j|^2 / (4 sigma^2)) it is
    ``-L(rebuilt, real) + (L(rebuilt, rebuilt) + L(real, real)) / 2``: zero for equal sets, never
    negative, symmetric. The kernels' normalisers and the numbers of points cancel, also for N != M.

    Parameters
    ----------
    rebuilt, real
        (B, N, 3) and (B, M, 3).
    sigma
        Bandwidth, one for all or (B,).
    """
    sums = log_kernel_sums(rebuilt, real, sigma)
    return 0.5 * (sums.first + sums.second) - sums.between


class LogKernelSums(NamedTuple):
    """L(a, b), L(a, a) and L(b, b) of two point sets, (B,) each; see `cauchy_schwarz`."""

    between: Tensor
    first: Tensor
    second: Tensor


def log_kernel_sums(first: Tensor, second: Tensor, sigma: float | Tensor) -> LogKernelSums:
    """Logarithms of the kernel sums between and within (B, N, 3) and (B, M, 3) points."""
    sigma = torch.as_tensor(sigma, dtype=second.dtype, device=second.device).expand(len(second))
    scale = (0.5 / sigma)[:, None, None]  # (B, 1, 1): kernels become exp(-|a - b|^2)
    first, second = first * scale, second * scale
    return LogKernelSums(
        _LogSumBetween.apply(first, second),
        _LogSumWithin.apply(first),
        _LogSumWithin.apply(second),
    )


class _LogSumBetween(torch.autograd.Function):
    """log sum_ij exp(-|a_i - b_j|^2) of (B, N, 3) and (B, M, 3), with its gradient in one pass.

    Row blocks with a running maximum, so that far-apart shapes do not underflow. Distances are
    direct differences: |a|^2 + |b|^2 - 2ab loses them far from the origin.
    """

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        peak = first.new_full((len(first), 1, 1), -math.inf)  # largest exponent so far
        total = first.new_zeros((len(first), 1, 1))  # sum of exp(exponent - peak)
        grads = [torch.zeros_like(first), torch.zeros_like(second)]
        step = max(1, _BLOCK_ENTRIES // second.shape[1])
        for start in range(0, first.shape[1], step):
            part = first[:, start : start + step]  # (B, r, 3)
            exponent = _negative_squares(part, second)  # (B, r, M)
            higher = torch.maximum(peak, exponent.amax(dim=(1, 2), keepdim=True))  # (B, 1, 1)
            rescale, peak = torch.exp(peak - higher), higher
            kernel = exponent.sub_(peak).clamp_min_(_NEGLIGIBLE).exp_()  # (B, r, M)
            total = total * rescale + kernel.sum(dim=(1, 2), keepdim=True)
            if ctx.needs_input_grad[0]:
                grads[0][:, :start] *= rescale
                grads[0][:, start : start + step] = _pull(kernel, part, second)
            if ctx.needs_input_grad[1]:
                grads[1] *= rescale
                grads[1] += _pull(kernel.transpose(1, 2), second, part)
        ctx.save_for_backward(*(grad.mul_(2 / total) for grad in grads))
        return (peak + total.log())[:, 0, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        first, second = ctx.saved_tensors
        return first * grad[:, None, None], second * grad[:, None, None]


class _LogSumWithin(torch.autograd.Function):
    """log sum_ij exp(-|a_i - a_j|^2) of (B, N, 3), over the upper triangle of blocks.

    The diagonal holds ones, so nothing underflows and no running maximum is needed.
    """

    @staticmethod
    def forward(ctx: Any, points: Tensor) -> Tensor:
        total = points.new_zeros((len(points), 1, 1))
        grad = torch.zeros_like(points)
        step = max(1, _BLOCK_ENTRIES // points.shape[1])
        for start in range(0, points.shape[1], step):
            part, rest = points[:, start : start + step], points[:, start:]
            kernel = _negative_squares(part, rest).clamp_min_(_NEGLIGIBLE).exp_()  # (B, r, rest)
            beyond = kernel[:, :, part.shape[1] :]  # (B, r, rest - r): stands for its mirror too
            total += kernel.sum(dim=(1, 2), keepdim=True) + beyond.sum(dim=(1, 2), keepdim=True)
            if ctx.needs_input_grad[0]:
                grad[:, start : start + step] += _pull(kernel, part, rest)
                later = rest[:, part.shape[1] :]  # (B, rest - r, 3)
                grad[:, start + step :] += _pull(beyond.transpose(1, 2), later, part)
        # Each point is on both sides of the sum, hence twice the 2 of `_LogSumBetween`.
        ctx.save_for_backward(grad.mul_(4 / total))
        return total.log()[:, 0, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (saved,) = ctx.saved_tensors
        return saved * grad[:, None, None]  # type: ignore[no-any-return]


def _pull(kernel: Tensor, points: Tensor, others: Tensor) -> Tensor:
    """Sum over j of kernel_ij (b_j - a_i): (B, N, M), (B, N, 3), (B, M, 3) -> (B, N, 3).

    Relative to a point nearby, so that the difference survives far from the origin.
    """
    anchor = others[:, :1]  # (B, 1, 3)
    mass = kernel.sum(dim=2, keepdim=True)  # (B, N, 1)
    return kernel @ (others - anchor) - mass * (points - anchor)


def _negative_squares(first: Tensor, second: Tensor) -> Tensor:
    """Negative squared distances (B, N, M), one coordinate at a time."""
    columns = second.transpose(1, 2)  # (B, 3, M)
    difference = first[..., :1] - columns[:, :1]  # (B, N, M)
    squares = difference.square().neg_()  # (B, N, M)
    for axis in range(1, first.shape[-1]):
        torch.sub(first[..., axis : axis + 1], columns[:, axis : axis + 1], out=difference)
        squares.addcmul_(difference, difference, value=-1)
    return squares


# --- Chamfer ------------------------------------------------------------------------------------


def chamfer(rebuilt: Tensor, real: Tensor) -> Tensor:
    """Chamfer distance (B,): mean squared distance to the nearest point, both ways."""
    there = (rebuilt - _nearest(rebuilt, real)).square().sum(dim=-1)  # (B, N)
    back = (real - _nearest(real, rebuilt)).square().sum(dim=-1)  # (B, M)
    return there.mean(dim=1) + back.mean(dim=1)


def _nearest(queries: Tensor, points: Tensor) -> Tensor:
    """For each of (B, N, 3) queries the nearest of (B, M, 3) points, differentiable in these."""
    indices = torch.stack(
        [_nearest_indices(q.detach(), p.detach()) for q, p in zip(queries, points, strict=True)]
    )
    return points.gather(1, indices[..., None].expand(-1, -1, points.shape[-1]))  # (B, N, 3)


def _nearest_indices(queries: Tensor, points: Tensor) -> Tensor:
    """(N,) int64 index of the nearest point."""
    if queries.device.type == "cpu":
        return torch.from_numpy(KDTree(points.numpy()).query(queries.numpy())[1])
    step = max(1, _BLOCK_ENTRIES // len(points))
    blocks = queries.split(step)
    return torch.cat([_negative_squares(b[None], points[None])[0].argmax(dim=1) for b in blocks])


# --- Earth mover's ------------------------------------------------------------------------------


class TransportPlan(NamedTuple):
    """How mass moves from N points to M points, and which solver said so.

    Attributes
    ----------
    solver
        "assignment" (exact) or "sinkhorn" (entropic).
    plan
        (N, M) masses that sum to one, or None for an assignment.
    partner
        (N,) int64 partner of each point for an assignment, else None.
    """

    solver: Literal["assignment", "sinkhorn"]
    plan: Tensor | None
    partner: Tensor | None


def earth_mover(rebuilt: Tensor, real: Tensor) -> Tensor:
    """Earth mover's distance (B,): mean Euclidean length of the cheapest transport.

    Exact assignment for equal sizes up to `EXACT_ASSIGNMENT` points, Sinkhorn beyond and for
    unequal sizes; `transport_plan` names the solver. The plan is held fixed in the gradient,
    which is exact for the assignment.
    """
    costs = []
    for first, second in zip(rebuilt, real, strict=True):
        solved = transport_plan(first.detach(), second.detach())
        if solved.partner is not None:
            costs.append(_length(first - second[solved.partner]).mean())
        else:
            assert solved.plan is not None
            costs.append((solved.plan * _length(first[:, None] - second)).sum())
    return torch.stack(costs)


def transport_plan(first: Tensor, second: Tensor) -> TransportPlan:
    """Cheapest transport between (N, 3) and (M, 3) points of equal total mass."""
    cost = _negative_squares(first[None], second[None])[0].neg_().sqrt_()  # (N, M)
    if len(first) == len(second) <= EXACT_ASSIGNMENT:
        columns = linear_sum_assignment(cost.cpu().numpy())[1]
        partner = torch.from_numpy(columns).to(first.device)  # (N,)
        return TransportPlan("assignment", None, partner)
    return TransportPlan("sinkhorn", entropic_plan(cost), None)


def entropic_plan(cost: Tensor, *, sharpness: float = 500.0, iterations: int = 300) -> Tensor:
    """Entropic transport plan (N, M) between uniform masses: Sinkhorn in the logarithmic domain.

    The regularisation falls from coarse to `mean cost / sharpness` over the first half of the
    iterations, which reaches the sharp plan in far fewer of them.
    """
    rows, columns = cost.shape
    log_row, log_column = -math.log(rows), -math.log(columns)
    potential = cost.new_zeros(columns)  # (M,)
    scale = float(cost.mean().clamp_min(torch.finfo(cost.dtype).tiny))
    sharp = scale / sharpness
    for iteration in range(iterations):
        progress = min(1.0, 2 * (iteration + 1) / iterations)
        epsilon = scale * (sharp / scale) ** progress
        dual = epsilon * (log_row - torch.logsumexp((potential - cost) / epsilon, dim=1))  # (N,)
        potential = epsilon * (  # (M,)
            log_column - torch.logsumexp((dual[:, None] - cost) / epsilon, dim=0)
        )
    return torch.exp((dual[:, None] + potential - cost) / sharp)


def _length(vectors: Tensor) -> Tensor:
    """Euclidean norm over the last axis, with gradient zero at zero."""
    square = vectors.square().sum(dim=-1)
    moved = square > 0
    return torch.where(moved, torch.where(moved, square, 1).sqrt(), 0)


# --- One table ----------------------------------------------------------------------------------


def mean_spacing(points: Tensor) -> Tensor:
    """Mean distance (B,) from each of (B, N, 3) points to its nearest other point."""
    spacings = []
    for shape in points.detach():
        distances = KDTree(shape.cpu().numpy()).query(shape.cpu().numpy(), k=2)[0][:, 1]  # (N,)
        spacings.append(torch.as_tensor(distances, dtype=shape.dtype).mean())
    return torch.stack(spacings).to(points.device)


def _cauchy_schwarz_by_config(rebuilt: Tensor, real: Tensor, config: DivergenceConfig) -> Tensor:
    sigma = config.sigma * mean_spacing(real) if config.relative else config.sigma
    return cauchy_schwarz(rebuilt, real, sigma)


DIVERGENCES: dict[str, Callable[[Tensor, Tensor, DivergenceConfig], Tensor]] = {
    "cauchy-schwarz": _cauchy_schwarz_by_config,
    "chamfer": lambda rebuilt, real, config: chamfer(rebuilt, real),
    "emd": lambda rebuilt, real, config: earth_mover(rebuilt, real),
}
