"""Sums and maxima over the neighbours of every point, forward and transposed.

`NeighborGraph` is a sparse (rows, columns) matrix with the same number of entries in each row.
All of the network and of the locally linear weights is built from the few products with it that
stand here, so that no (rows, k, channels) tensor is ever kept. The methods know nothing of
gradients; the functions at the end do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.autograd.function import once_differentiable

from ltenet.lazy import lazy
from ltenet.method.neighbors import knn_graph

#: Bits of a float64 that a float32 leaves empty, less the one that would round it up.
_INDEX_BITS = 28
#: Gathered floats at a time where the maximum is taken block by block: 1 MB stays in cache.
_BLOCK_FLOATS = 1 << 18


class NeighborGraph:
    """Each of `rows` points with its k neighbours among `columns` points.

    Parameters
    ----------
    indices
        (rows, k) int64 neighbours.
    columns
        Number of points that the indices point into.
    """

    def __init__(self, indices: Tensor, columns: int) -> None:
        self.indices = indices.contiguous()
        self.columns = columns

    @classmethod
    def of_batch(cls, indices: Tensor, columns: int) -> NeighborGraph:
        """Block-diagonal graph of (B, N, K) indices into B sets of `columns` points."""
        batch = indices.shape[0]
        offsets = torch.arange(batch, device=indices.device)[:, None, None] * columns  # (B, 1, 1)
        return cls((indices + offsets).flatten(0, 1), batch * columns)

    @property
    def k(self) -> int:
        """Neighbours per row."""
        return self.indices.shape[1]

    @property
    def rows(self) -> int:
        """Number of points that have neighbours."""
        return self.indices.shape[0]

    @lazy
    def in_degree(self) -> Tensor:
        """(columns,) int64: in how many neighbourhoods each point appears."""
        return torch.bincount(self.indices.flatten(), minlength=self.columns)

    @lazy
    def _transposed(self) -> tuple[Tensor, Tensor]:
        """Entries sorted by column: (rows * k,) positions and (columns + 1,) offsets."""
        flat = self.indices.flatten()  # (rows * k,)
        offsets = F.pad(self.in_degree.cumsum(0), (1, 0))  # (columns + 1,)
        if flat.device.type != "cpu":
            return flat.argsort(stable=True), offsets
        # scipy's counting sort is a hundred times faster than sorting.
        entries = np.arange(len(flat), dtype=np.int32)
        pointers = np.arange(0, len(flat) + 1, self.k, dtype=np.int32)
        matrix = csr_matrix(
            (entries, flat.numpy().astype(np.int32), pointers), shape=(self.rows, self.columns)
        )
        return torch.from_numpy(matrix.tocsc().data.astype(np.int64)), offsets

    def sum(self, values: Tensor, weights: Tensor | None = None) -> Tensor:
        """Sum over the neighbours of each row: (columns, C) values -> (rows, C).

        `weights` (rows, k) multiply the neighbours.
        """
        with torch.no_grad():
            return F.embedding_bag(self.indices, values, mode="sum", per_sample_weights=weights)

    def transposed_sum(self, values: Tensor, weights: Tensor | None = None) -> Tensor:
        """Sum over the rows in which each column appears: (rows, C) values -> (columns, C)."""
        order, offsets = self._transposed
        with torch.no_grad():
            return F.embedding_bag(
                torch.div(order, self.k, rounding_mode="floor"),
                values,
                offsets,
                mode="sum",
                per_sample_weights=None if weights is None else weights.flatten()[order],
                include_last_offset=True,
            )

    def gather(self, values: Tensor, rows: slice) -> Tensor:
        """Neighbours (r, k, C) of some rows among (columns, C) values; five times as fast as []."""
        chosen = self.indices[rows]  # (r, k)
        return values.index_select(0, chosen.flatten()).view(*chosen.shape, values.shape[1])

    def dot(self, row_values: Tensor, column_values: Tensor) -> Tensor:
        """Inner products of each row with its neighbours: -> (rows, k)."""
        with torch.no_grad():
            products = torch.empty(self.indices.shape, dtype=row_values.dtype).to(row_values)
            for rows in self._blocks(row_values.shape[1]):
                neighbors = self.gather(column_values, rows)  # (r, k, C)
                products[rows] = torch.bmm(neighbors, row_values[rows, :, None])[..., 0]
            return products

    def argmax(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Maximum (rows, C) and the column it comes from (rows, C) int64.

        On the CPU one sparse product yields both: a float32 fits into a float64 with 29 bits to
        spare, and these carry the column. Seven times faster than the product's own backward.
        """
        packable = values.dtype == torch.float32 and self.columns < 1 << _INDEX_BITS
        if values.device.type == "cpu" and packable:
            packed = values.detach().double()  # (columns, C)
            columns = torch.arange(self.columns)[:, None]  # (columns, 1)
            packed.view(torch.int64).bitwise_or_(columns)
            packed = torch.sparse.mm(
                self._matrix(torch.float64), packed, reduce="amax"
            )  # (rows, C)
            mask = (1 << _INDEX_BITS) - 1
            return packed.float(), packed.view(torch.int64).bitwise_and_(mask)
        maximum = values.new_empty((self.rows, values.shape[1]))
        argument = torch.empty_like(maximum, dtype=torch.int64)
        for rows in self._blocks(values.shape[1]):
            neighbors = self.indices[rows]  # (r, k)
            best = values.detach()[neighbors].max(dim=1)  # (r, C)
            maximum[rows] = best.values
            argument[rows] = neighbors.gather(1, best.indices)
        return maximum, argument

    def max(self, values: Tensor) -> Tensor:
        """Maximum over the neighbours of each row: (columns, C) -> (rows, C)."""
        with torch.no_grad():
            if values.device.type == "cpu":
                matrix = self._matrix(values.dtype)
                maximum: Tensor = torch.sparse.mm(matrix, values.contiguous(), reduce="amax")
                return maximum
            maximum = values.new_empty((self.rows, values.shape[1]))
            for rows in self._blocks(values.shape[1]):
                maximum[rows] = values[self.indices[rows]].amax(dim=1)
            return maximum

    def _matrix(self, dtype: torch.dtype) -> Tensor:
        """(rows, columns) sparse matrix of ones."""
        if dtype not in self._matrices:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
                self._matrices[dtype] = torch.sparse_csr_tensor(
                    torch.arange(0, self.indices.numel() + 1, self.k),
                    self.indices.flatten(),
                    torch.ones(self.indices.numel(), dtype=dtype),
                    size=(self.rows, self.columns),
                    check_invariants=False,
                )
        return self._matrices[dtype]

    @lazy
    def _matrices(self) -> dict[torch.dtype, Tensor]:
        return {}

    def _blocks(self, channels: int) -> list[slice]:
        """Rows in blocks whose gathered neighbours stay in cache."""
        size = max(1, _BLOCK_FLOATS // (self.k * channels))
        return [slice(start, start + size) for start in range(0, self.rows, size)]


def neighbor_graphs(
    shapes: Sequence[Tensor],
    k: int,
    dilations: Sequence[int] = (1,),
    along: Sequence[Tensor | None] | None = None,
) -> list[NeighborGraph]:
    """Graphs of near points within each of several shapes, one block-diagonal graph a dilation.

    Parameters
    ----------
    shapes
        (N_s, C) coordinates of each shape; sizes may differ.
    k
        Neighbours of each point, itself first.
    dilations
        With dilation d the neighbours are every d-th of the k d nearest points: as many, spread
        over a wider surrounding. Shapes with fewer than k d points are dilated less.
    along
        (N_s, L) coordinates along the surface of each shape, see `knn_graph`; None for shapes whose
        surface is not known, or for all.
    """
    blocks: dict[int, list[Tensor]] = {dilation: [] for dilation in dilations}
    start = 0
    for points, own in zip(shapes, along or [None] * len(shapes), strict=True):
        widest = max(1, len(points) // k)
        nearest = knn_graph(points, k * min(max(dilations), widest), own) + start  # (N_s, >= k)
        for dilation, parts in blocks.items():
            step = min(dilation, widest)
            parts.append(nearest[:, : k * step : step])  # (N_s, k)
        start += len(points)
    graphs = {
        dilation: NeighborGraph(torch.cat(parts), start) for dilation, parts in blocks.items()
    }
    return [graphs[dilation] for dilation in dilations]


class _NeighborMax(torch.autograd.Function):
    """Maximum over neighbours; the gradient goes to the neighbour that attained it."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, graph: NeighborGraph) -> Tensor:
        ctx.columns = graph.columns
        if not ctx.needs_input_grad[0]:
            return graph.max(values)
        maximum, argument = graph.argmax(values)
        ctx.save_for_backward(argument)
        return maximum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (argument,) = ctx.saved_tensors
        values = grad.new_zeros((ctx.columns, grad.shape[1]))
        return values.scatter_add_(0, argument, grad), None


class _NeighborDot(torch.autograd.Function):
    """Inner products of each row with its neighbours, differentiable in both."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, graph: NeighborGraph) -> Tensor:
        ctx.save_for_backward(rows, columns)
        ctx.graph = graph
        return graph.dot(rows, columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        rows, columns = ctx.saved_tensors
        return ctx.graph.sum(columns, grad), ctx.graph.transposed_sum(rows, grad), None


class _NeighborSum(torch.autograd.Function):
    """Weighted sum over neighbours, differentiable in values and weights."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor, graph: NeighborGraph) -> Tensor:
        ctx.save_for_backward(values, weights)
        ctx.graph = graph
        return graph.sum(values, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None]:
        values, weights = ctx.saved_tensors
        grad = grad.contiguous()
        grad_values = ctx.graph.transposed_sum(grad, weights) if ctx.needs_input_grad[0] else None
        return grad_values, ctx.graph.dot(grad, values), None


def neighbor_max(values: Tensor, graph: NeighborGraph) -> Tensor:
    """Maximum (rows, C) over the neighbours among (columns, C), channel by channel."""
    return _NeighborMax.apply(values, graph)  # type: ignore[no-any-return]


def neighbor_dot(rows: Tensor, columns: Tensor, graph: NeighborGraph) -> Tensor:
    """Inner products (rows, k) of (rows, C) with their neighbours among (columns, C)."""
    return _NeighborDot.apply(rows, columns, graph)  # type: ignore[no-any-return]


def neighbor_sum(values: Tensor, weights: Tensor, graph: NeighborGraph) -> Tensor:
    """Weighted sum (rows, C) of neighbours among (columns, C) with weights (rows, k)."""
    return _NeighborSum.apply(values, weights, graph)  # type: ignore[no-any-return]
