from __future__ import annotations

import pytest
import torch

from ltenet.method import graph as graph_module
from ltenet.method.graph import (
    NeighborGraph,
    neighbor_dot,
    neighbor_graphs,
    neighbor_max,
    neighbor_sum,
)


def random_graph(rows: int = 12, columns: int = 9, k: int = 4) -> NeighborGraph:
    generator = torch.Generator().manual_seed(1)
    indices = torch.stack([torch.randperm(columns, generator=generator)[:k] for _ in range(rows)])
    return NeighborGraph(indices, columns)


def dense(graph: NeighborGraph, weights: torch.Tensor) -> torch.Tensor:
    matrix = torch.zeros(graph.rows, graph.columns, dtype=weights.dtype)
    return matrix.scatter_add(1, graph.indices, weights)


def test_sums_are_products_with_the_dense_matrix() -> None:
    graph = random_graph()
    weights = torch.randn(12, 4, dtype=torch.float64)
    columns = torch.randn(9, 5, dtype=torch.float64)
    rows = torch.randn(12, 5, dtype=torch.float64)
    torch.testing.assert_close(graph.sum(columns, weights), dense(graph, weights) @ columns)
    torch.testing.assert_close(graph.transposed_sum(rows, weights), dense(graph, weights).T @ rows)
    ones = dense(graph, torch.ones_like(weights))
    torch.testing.assert_close(graph.sum(columns), ones @ columns)
    torch.testing.assert_close(graph.transposed_sum(rows), ones.T @ rows)
    assert torch.equal(graph.in_degree, ones.sum(dim=0).long())


def test_columns_without_rows_receive_nothing() -> None:
    graph = NeighborGraph(torch.tensor([[1, 2], [1, 2]]), 5)
    received = graph.transposed_sum(torch.ones(2, 1))
    assert received[:, 0].tolist() == [0, 2, 2, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_maximum_and_its_argument(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(50, 40, 7)
    values = torch.randn(40, 11, dtype=dtype)
    expected = values[graph.indices].amax(dim=1)
    assert torch.equal(graph.max(values), expected)
    monkeypatch.setattr(graph_module, "_BLOCK_FLOATS", 100)
    maximum, argument = graph.argmax(values)
    assert torch.equal(maximum, expected)
    assert torch.equal(values.gather(0, argument), expected)
    assert (argument[:, :, None] == graph.indices[:, None]).any(dim=-1).all()


def test_packed_maximum_is_exact_for_every_kind_of_float() -> None:
    kinds = torch.tensor([0.0, -0.0, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 1.0, -1.0, 1 + 2**-23])
    graph = NeighborGraph(torch.arange(10)[:, None], 10)  # each row: one neighbour
    maximum, argument = graph.argmax(kinds[:, None])
    assert torch.equal(maximum[:, 0], kinds)
    assert torch.equal(argument[:, 0], torch.arange(10))


def test_blocks_without_a_sparse_product_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path that other devices take, forced on the CPU by leaving no bits to pack into."""
    graph = random_graph(30, 20, 5)
    values = torch.randn(20, 6)
    packed = graph.argmax(values)
    monkeypatch.setattr(graph_module, "_INDEX_BITS", 0)  # nothing can be packed any more
    blocked = graph.argmax(values)
    assert torch.equal(packed[0], blocked[0])
    assert torch.equal(packed[1], blocked[1])


def test_gradients() -> None:
    graph = random_graph()
    columns = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(12, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(12, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda c: neighbor_max(c, graph), (columns,))
    assert torch.autograd.gradcheck(lambda r, c: neighbor_dot(r, c, graph), (rows, columns))
    assert torch.autograd.gradcheck(lambda c, w: neighbor_sum(c, w, graph), (columns, weights))


def test_float32_gradient_of_the_maximum_goes_to_the_argument() -> None:
    graph = random_graph(50, 40, 7)
    values = torch.randn(40, 11, requires_grad=True)
    grad = torch.randn(50, 11)
    (ours,) = torch.autograd.grad(neighbor_max(values, graph), values, grad)
    (plain,) = torch.autograd.grad(values[graph.indices].amax(dim=1), values, grad)
    torch.testing.assert_close(ours, plain)


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    graph = random_graph()
    columns = torch.randn(9, 3, requires_grad=True)
    weights = torch.randn(12, 4, requires_grad=True)
    total = neighbor_sum(columns, weights, graph).square().sum()
    (first,) = torch.autograd.grad(total, columns, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_shapes_of_different_sizes_stay_apart() -> None:
    small, large = torch.randn(10, 3), torch.randn(25, 3) + 0.1
    (graph,) = neighbor_graphs([small, large], 5)
    assert graph.rows == graph.columns == 35
    assert (graph.indices[:10] < 10).all()
    assert (graph.indices[10:] >= 10).all()
    batch = NeighborGraph.of_batch(torch.tensor([[[0, 1]], [[1, 2]]]), 3)
    assert batch.indices.tolist() == [[0, 1], [4, 5]]
    assert batch.columns == 6
