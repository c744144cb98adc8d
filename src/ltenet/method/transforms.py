"""Locally linear weights (Eq. 2 to 5): each source feature from its K nearest target features.

For source feature f and neighbours n_1..n_K the paper asks for weights that sum to one and
minimise ``|f - sum_k w_k n_k|^2 + gamma |w|^2``. Appendix A gives them in closed form,

    w = A^-1 1 / (1^T A^-1 1),    A = G + gamma I,    G_kl = (n_k - f) . (n_l - f).

The gradient is closed-form too, and needs the neighbours only through sums over them; see
`_LocallyLinear`. DPC's softmax weights are the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ltenet.errors import InputError
from ltenet.method.graph import NeighborGraph, neighbor_dot
from ltenet.method.neighbors import cosine_topk

#: Floats of neighbour differences at a time.
_BLOCK_FLOATS = 1 << 20


class Neighborhoods(NamedTuple):
    """Each source point as a weighted mean of target points.

    Attributes
    ----------
    indices
        (B, N, K) int64 neighbours in the target.
    weights
        (B, N, K), each row sums to one; LLE weights may be negative.
    """

    indices: Tensor
    weights: Tensor


@dataclass(frozen=True)
class TransformConfig:
    """How the weights are found; the defaults are the paper's.

    Attributes
    ----------
    kind
        "lle" for locally linear weights, "softmax" for DPC's: softmax of the cosine similarities.
    neighbors
        The paper's K.
    gamma
        Ridge that keeps the system regular.
    relative
        Multiply gamma by the trace of G, which makes the weights invariant to scaling, as
        scikit-learn does; the paper's gamma is absolute.
    normalized
        Solve with features of unit length instead of raw ones.
    simplex
        Project the weights onto the simplex, so that none is negative.
    """

    kind: Literal["lle", "softmax"] = "lle"
    neighbors: int = 10
    gamma: float = 1.0
    relative: bool = False
    normalized: bool = False
    simplex: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("lle", "softmax"):
            raise InputError(
                f"transform: got the kind {self.kind!r}, expected 'lle' or 'softmax'; "
                "try the paper's 'lle'"
            )
        if self.neighbors < 1 or not self.gamma > 0:
            raise InputError(
                f"transform: got {self.neighbors} neighbours and gamma {self.gamma}, expected "
                "positive numbers; try the paper's 10 and 1.0"
            )


def neighborhoods(
    source: Tensor,
    target: Tensor,
    config: TransformConfig | None = None,
    *,
    exclude_itself: bool = False,
    indices: Tensor | None = None,
) -> Neighborhoods:
    """Find the neighbours of every source feature in the target, and their weights.

    Parameters
    ----------
    source
        (B, N, D) features.
    target
        (B, M, D) features; the same tensor with `exclude_itself` for self-reconstruction.
    exclude_itself
        Point i may not be rebuilt from itself.
    indices
        (B, N, K) neighbours, if they are known already.
    """
    config = config or TransformConfig()
    if indices is None:
        indices = cosine_topk(
            source, target, config.neighbors, exclude_itself=exclude_itself
        ).indices  # (B, N, K)
    if config.kind == "softmax":
        weights = softmax_weights(source, target, indices)
    else:
        if config.normalized:
            source, target = F.normalize(source, dim=-1), F.normalize(target, dim=-1)
        weights = locally_linear_weights(
            source, target, indices, gamma=config.gamma, relative=config.relative
        )
    if config.simplex:
        weights = simplex_projection(weights)
    return Neighborhoods(indices, weights)


def locally_linear_weights(
    source: Tensor, target: Tensor, indices: Tensor, *, gamma: float = 1.0, relative: bool = False
) -> Tensor:
    """Weights (B, N, K) that rebuild (B, N, D) from the (B, M, D) at `indices` (B, N, K).

    Differentiable in source and target. Singular neighbourhoods (duplicates, collinear points)
    stay finite: where all neighbours coincide with the point, the weights are equal.
    """
    graph = NeighborGraph.of_batch(indices, target.shape[1])
    weights = _LocallyLinear.apply(  # (B * N, K)
        source.flatten(0, 1), target.flatten(0, 1), graph, gamma, relative
    )
    return weights.view(indices.shape)  # type: ignore[no-any-return]


def softmax_weights(source: Tensor, target: Tensor, indices: Tensor) -> Tensor:
    """DPC's weights (B, N, K): softmax of the cosine similarities, without a temperature."""
    graph = NeighborGraph.of_batch(indices, target.shape[1])
    similarity = neighbor_dot(  # (B * N, K)
        F.normalize(source, dim=-1).flatten(0, 1), F.normalize(target, dim=-1).flatten(0, 1), graph
    )
    return similarity.softmax(dim=-1).view(indices.shape)


def simplex_projection(weights: Tensor) -> Tensor:
    """Nearest point (..., K) of the simplex: non-negative weights that sum to one."""
    ordered = weights.sort(dim=-1, descending=True).values  # (..., K)
    count = torch.arange(1, weights.shape[-1] + 1, device=weights.device)  # (K,)
    excess = (ordered.cumsum(dim=-1) - 1) / count  # (..., K)
    support = (ordered > excess).sum(dim=-1, keepdim=True)  # (..., 1)
    return (weights - excess.gather(-1, support - 1)).clamp_min(0)


class _LocallyLinear(torch.autograd.Function):
    """w = A^-1 1 / s with s = 1^T A^-1 1, and its gradient without a (N, K, D) tensor.

    Let g be the gradient of w and ``q = A^-1 (g - (g.w) 1) / s``; then ``dA = -s q w^T``. Pulled
    back through G this leaves, with the residual ``p = sum_k w_k n_k - f`` and
    ``r = sum_k q_k n_k`` (q sums to zero, so f drops out of r),

        df = s r,    dn_k = -s (q_k p + w_k r).

    A gamma relative to the trace adds ``c (n_k - f)`` to dn_k, with ``c = -2 gamma s (q . w)``.
    """

    @staticmethod
    def forward(
        ctx: Any, source: Tensor, target: Tensor, graph: NeighborGraph, gamma: float, relative: bool
    ) -> Tensor:
        matrix = _gram(source, target, graph)  # (R, K, K)
        ridge = matrix.new_full((graph.rows, 1), gamma)  # (R, 1)
        if relative:
            trace = matrix.diagonal(dim1=1, dim2=2).sum(dim=1, keepdim=True)  # (R, 1)
            ridge = torch.where(trace > 0, gamma * trace, ridge)
        matrix.diagonal(dim1=1, dim2=2).add_(ridge)
        factor = torch.linalg.cholesky_ex(matrix).L  # (R, K, K)
        solution = _solve(factor, torch.ones_like(ridge).expand(-1, graph.k))  # (R, K): A^-1 1
        total = solution.sum(dim=1, keepdim=True)  # (R, 1): s
        weights = solution / total  # (R, K)
        ctx.save_for_backward(source, target, factor, total, weights)
        ctx.graph, ctx.gamma, ctx.relative = graph, gamma, relative
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        source, target, factor, total, weights = ctx.saved_tensors
        graph: NeighborGraph = ctx.graph
        inner = (grad * weights).sum(dim=1, keepdim=True)  # (R, 1)
        dual = _solve(factor, (grad - inner) / total)  # (R, K): q
        weighted = graph.sum(target, weights)  # (R, D)
        residual = (weighted - source).mul_(total)  # (R, D): s p
        direction = graph.sum(target, dual).mul_(total)  # (R, D): s r
        grad_target = graph.transposed_sum(residual, dual)  # (C, D)
        grad_target += graph.transposed_sum(direction, weights)
        grad_target.neg_()
        grad_source = direction
        if ctx.relative:
            pull = -2 * ctx.gamma * total * (dual * weights).sum(dim=1, keepdim=True)  # (R, 1): c
            spread = pull.expand(-1, graph.k).contiguous()  # (R, K)
            grad_source = grad_source - pull * (graph.sum(target) - graph.k * source)
            grad_target += target * graph.transposed_sum(pull) - graph.transposed_sum(
                source, spread
            )
        return grad_source, grad_target, None, None, None


def _gram(source: Tensor, target: Tensor, graph: NeighborGraph) -> Tensor:
    """Gram matrices (R, K, K) of the differences between each source and its neighbours.

    From the differences themselves, a block of rows at a time: gathering them from the products
    f.f - f.n - f.n + n.n would be quicker but cancels, and a nearly singular G turns indefinite.
    """
    rows = max(1, _BLOCK_FLOATS // (graph.k * source.shape[1]))
    matrix = source.new_empty((graph.rows, graph.k, graph.k))
    for start in range(0, graph.rows, rows):
        block = slice(start, start + rows)
        differences = target[graph.indices[block]]  # (r, K, D)
        differences -= source[block, None]
        torch.bmm(differences, differences.transpose(1, 2), out=matrix[block])
    return matrix


def _solve(factor: Tensor, right: Tensor) -> Tensor:
    """Solve (R, K, K) systems, given their Cholesky factors, for (R, K) right-hand sides."""
    return torch.cholesky_solve(right[..., None], factor)[..., 0]
