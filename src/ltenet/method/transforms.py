"""Locally linear weights (Eq. 2 to 5): each source feature from its K nearest target features.

For source feature f and neighbours n_1..n_K the paper asks for weights that sum to one and
minimise ``|f - sum_k w_k n_k|^2 + gamma |w|^2``. Appendix A gives them in closed form,

    w = A^-1 1 / (1^T A^-1 1),    A = G + gamma I,    G_kl = (n_k - f) . (n_l - f).

The gradient is closed-form too, and needs the neighbours only through sums over them; see
`_LocallyLinear`. DPC's softmax weights are the baseline; what the paper leaves for later is in
`weight_variants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ltenet.errors import InputError
from ltenet.method.gram import differentiable_gram, gram
from ltenet.method.graph import NeighborGraph, neighbor_dot
from ltenet.method.neighbors import cosine_topk, geodesic_neighbors
from ltenet.method.weight_variants import elastic_net_weights, modified_weights


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
        "lle" for locally linear weights, "softmax" for DPC's: softmax of the cosine similarities,
        "mlle" for the mean weights of modified LLE.
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
    penalty
        Weight of an l1 penalty beside the ridge: the elastic net, for "lle".
    choice
        How neighbours are chosen: "cosine", the K most similar features; "geodesic", the most
        similar one and its K nearest points along the surface, as ISOLLE [Varini et al. 2005].
    """

    kind: Literal["lle", "softmax", "mlle"] = "lle"
    neighbors: int = 10
    gamma: float = 1.0
    relative: bool = False
    normalized: bool = False
    simplex: bool = False
    penalty: float = 0.0
    choice: Literal["cosine", "geodesic"] = "cosine"

    def __post_init__(self) -> None:
        if self.kind not in ("lle", "softmax", "mlle"):
            raise InputError(
                f"transform: got the kind {self.kind!r}, expected 'lle', 'softmax' or 'mlle'; "
                "try the paper's 'lle'"
            )
        if self.choice not in ("cosine", "geodesic"):
            raise InputError(
                f"transform: got the choice {self.choice!r}, expected 'cosine' or 'geodesic'; "
                "try the paper's 'cosine'"
            )
        if not self.penalty >= 0 or (self.penalty > 0 and self.kind != "lle"):
            raise InputError(
                f"transform: got a penalty of {self.penalty} with the kind {self.kind!r}, expected "
                "at least 0, and more with 'lle' only; try leaving it out"
            )
        if self.kind == "mlle" and self.neighbors < 3:
            raise InputError(
                f"transform: got {self.neighbors} neighbours for 'mlle', expected at least 3; "
                "try the paper's 10"
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
    surface: Tensor | None = None,
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
    surface
        (B, M, > K) points near each target point along its surface, itself first: what the
        "geodesic" choice needs; see `surface_neighbors`.
    """
    config = config or TransformConfig()
    if indices is None and config.choice == "geodesic":
        indices = geodesic_neighbors(  # (B, N, K)
            source, target, surface, config.neighbors, exclude_itself=exclude_itself
        )
    elif indices is None:
        indices = cosine_topk(
            source, target, config.neighbors, exclude_itself=exclude_itself
        ).indices  # (B, N, K)
    if config.kind == "softmax":
        weights = softmax_weights(source, target, indices)
    else:
        if config.normalized:
            source, target = F.normalize(source, dim=-1), F.normalize(target, dim=-1)
        weights = _weights(source, target, indices, config)  # (B, N, K)
    if config.simplex:
        weights = simplex_projection(weights)
    return Neighborhoods(indices, weights)


def _weights(source: Tensor, target: Tensor, indices: Tensor, config: TransformConfig) -> Tensor:
    """Weights (B, N, K) by any of the linear systems."""
    if config.penalty > 0:
        graph = NeighborGraph.of_batch(indices, target.shape[1])
        matrix = differentiable_gram(source.flatten(0, 1), target.flatten(0, 1), graph)  # (R, K, K)
        ridge = _ridge(matrix, config.gamma, relative=config.relative)  # (R, 1)
        return elastic_net_weights(matrix, ridge, config.penalty).view(indices.shape)
    weights = locally_linear_weights(
        source, target, indices, gamma=config.gamma, relative=config.relative
    )
    if config.kind == "mlle":
        graph = NeighborGraph.of_batch(indices, target.shape[1])
        with torch.no_grad():
            matrix = gram(source.flatten(0, 1), target.flatten(0, 1), graph)  # (R, K, K)
        return modified_weights(matrix.view(*indices.shape, -1), weights)
    return weights


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
        matrix = gram(source, target, graph)  # (R, K, K)
        ridge = _ridge(matrix, gamma, relative=relative)  # (R, 1)
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


def _ridge(matrix: Tensor, gamma: float, *, relative: bool) -> Tensor:
    """Gamma (R, 1) of each of (R, K, K) systems."""
    ridge = matrix.new_full((len(matrix), 1), gamma)  # (R, 1)
    if not relative:
        return ridge
    trace = matrix.diagonal(dim1=1, dim2=2).sum(dim=1, keepdim=True)  # (R, 1)
    return torch.where(trace > 0, gamma * trace, ridge)


def _solve(factor: Tensor, right: Tensor) -> Tensor:
    """Solve (R, K, K) systems, given their Cholesky factors, for (R, K) right-hand sides."""
    return torch.cholesky_solve(right[..., None], factor)[..., 0]
