"""Gram matrices of neighbourhoods: inner products of the differences to the neighbours.

From the differences themselves, a block of rows at a time: gathering them from the products
f.f - f.n - f.n + n.n would be quicker but cancels, and a nearly singular G turns indefinite.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ltenet.method.graph import NeighborGraph

#: Floats of neighbour differences at a time.
_BLOCK_FLOATS = 1 << 20


def gram(source: Tensor, target: Tensor, graph: NeighborGraph) -> Tensor:
    """Gram matrices (R, K, K) of (R, D) sources and their neighbours among (C, D); no gradient."""
    matrix = source.new_empty((graph.rows, graph.k, graph.k))  # (R, K, K)
    for rows in _blocks(source, graph):
        differences = graph.gather(target, rows)  # (r, K, D)
        differences -= source[rows, None]
        torch.bmm(differences, differences.transpose(1, 2), out=matrix[rows])
    return matrix


def differentiable_gram(source: Tensor, target: Tensor, graph: NeighborGraph) -> Tensor:
    """`gram`, differentiable in source and target."""
    return _Gram.apply(source, target, graph)  # type: ignore[no-any-return,no-untyped-call]


class _Gram(torch.autograd.Function):
    """G_kl = d_k . d_l with d_k = n_k - f, and its gradient.

    With H = dG + dG^T, the gradient of d_k is ``sum_l H_kl d_l``.
    """

    @staticmethod
    def forward(ctx: Any, source: Tensor, target: Tensor, graph: NeighborGraph) -> Tensor:
        ctx.save_for_backward(source, target)
        ctx.graph = graph
        return gram(source, target, graph)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        source, target = ctx.saved_tensors
        graph: NeighborGraph = ctx.graph
        both = grad + grad.transpose(1, 2)  # (R, K, K): H
        grad_source, grad_target = torch.empty_like(source), torch.zeros_like(target)
        for rows in _blocks(source, graph):
            differences = graph.gather(target, rows) - source[rows, None]  # (r, K, D)
            pulled = torch.bmm(both[rows], differences)  # (r, K, D)
            grad_source[rows] = -pulled.sum(dim=1)
            grad_target.index_add_(0, graph.indices[rows].flatten(), pulled.flatten(0, 1))
        return grad_source, grad_target, None


def _blocks(source: Tensor, graph: NeighborGraph) -> list[slice]:
    """Rows in blocks whose differences stay in cache."""
    size = max(1, _BLOCK_FLOATS // (graph.k * source.shape[1]))
    return [slice(start, start + size) for start in range(0, graph.rows, size)]
