"""Weights that the paper leaves for later, each against an independent statement of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.errors import InputError
from ltenet.method.gram import differentiable_gram, gram
from ltenet.method.graph import NeighborGraph
from ltenet.method.neighbors import cosine_topk
from ltenet.method.transforms import TransformConfig, locally_linear_weights, neighborhoods
from ltenet.method.weight_variants import (
    _proximal_signs,
    _shrunk,
    _signs,
    elastic_net_weights,
    modified_weights,
)


def features(count: int, *, seed: int = 0, dimension: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, count, dimension, generator=generator, dtype=torch.float64)


def reflected_columns(differences: np.ndarray, size: int, usual: np.ndarray) -> np.ndarray:
    """Return all s weight vectors of modified LLE (K, s), with the reflection written out."""
    vectors = np.linalg.svd(differences @ differences.T)[0][:, ::-1]  # (K, K), smallest first
    null = vectors[:, :size]
    ones = np.ones(len(usual))
    share = np.linalg.norm(null.T @ ones) / np.sqrt(size)
    normal = share * np.ones(size) - null.T @ ones
    length = np.linalg.norm(normal)
    normal = normal / length if length > 1e-12 else 0 * normal
    reflection = np.eye(size) - 2 * np.outer(normal, normal)
    return null @ reflection + (1 - share) * usual[:, None]


def test_modified_weights_are_the_mean_of_the_reflected_columns() -> None:
    source, target = features(15, dimension=4), features(20, seed=1, dimension=4)
    found = neighborhoods(source, target, TransformConfig(kind="mlle", neighbors=6, gamma=0.3))
    usual = locally_linear_weights(source, target, found.indices, gamma=0.3)
    torch.testing.assert_close(found.weights.sum(dim=-1), torch.ones(2, 15, dtype=torch.float64))
    for batch in range(2):
        differences = [
            (target[batch, found.indices[batch, i]] - source[batch, i]).numpy() for i in range(15)
        ]
        values = [np.sort(np.linalg.svd(d @ d.T)[1]) for d in differences]  # ascending
        eta = np.median([own[:4].sum() / own[4:].sum() for own in values])
        sizes = set()
        for i, (own, usual_own) in enumerate(zip(values, usual[batch].numpy(), strict=True)):
            fitting = [s for s in range(1, 6) if own[:s].sum() / own[s:].sum() < eta]
            size = max(fitting, default=1)
            sizes.add(size)
            columns = reflected_columns(differences[i], size, usual_own)
            np.testing.assert_allclose(columns.sum(axis=0), 1.0, atol=1e-9)
            np.testing.assert_allclose(found.weights[batch, i], columns.mean(axis=1), atol=1e-8)
        assert len(sizes) > 1  # the size of the almost-null space differs from point to point


def test_modified_weights_pass_the_gradient_of_the_usual_ones_alone() -> None:
    matrices = torch.eye(5, dtype=torch.float64) + features(6, dimension=5)[:, :, :, None].square()
    matrices = (matrices @ matrices.transpose(-1, -2)).detach()  # (2, 6, 5, 5)
    weights = torch.rand(2, 6, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: modified_weights(matrices, w), (weights,))


@pytest.mark.parametrize("shape", ["same", "line"])
def test_modified_weights_of_degenerate_neighborhoods_are_finite(shape: str) -> None:
    cloud = torch.ones(1, 12, 3) * (1.0 if shape == "same" else torch.arange(12.0)[None, :, None])
    found = neighborhoods(cloud, cloud, TransformConfig(kind="mlle", neighbors=5))
    assert torch.isfinite(found.weights).all()
    torch.testing.assert_close(found.weights.sum(dim=-1), torch.ones(1, 12))


def best_of_all_signs(matrix: np.ndarray, penalty: float) -> np.ndarray:
    """Solve the optimality conditions for every pattern of signs; keep the cheapest solution."""
    k = len(matrix)
    best, least = None, np.inf
    for signs in product((-1, 0, 1), repeat=k):
        active = np.flatnonzero(signs)
        if len(active) == 0:
            continue
        own = np.asarray(signs)[active]
        n = len(active)
        system = np.block(
            [[2 * matrix[np.ix_(active, active)], -np.ones((n, 1))], [np.ones((1, n)), 0.0]]
        )
        weights = np.zeros(k)
        weights[active] = np.linalg.solve(system, np.append(-penalty * own, 1.0))[:n]
        cost = weights @ matrix @ weights + penalty * np.abs(weights).sum()
        if cost < least:
            best, least = weights, cost
    assert best is not None
    return best


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.001, 1.0))
def test_shrinking_keeps_the_sum_and_is_the_nearest(seed: int, threshold: float) -> None:
    """Optimality: v - w - tau is threshold times a subgradient of |w|_1, with one tau for all."""
    values = torch.from_numpy(np.random.default_rng(seed).normal(size=(1, 6)))
    weights = _shrunk(values, torch.full((1, 1), threshold, dtype=torch.float64))
    assert float(weights.sum()) == pytest.approx(1.0)
    rest = values - weights
    active = weights != 0
    multipliers = (rest - threshold * weights.sign())[active]
    tau = float(multipliers[0])
    torch.testing.assert_close(multipliers, torch.full_like(multipliers, tau))
    assert ((rest - tau).abs()[~active] <= threshold + 1e-9).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.5, 5.0]))
def test_the_elastic_net_is_the_best_of_all_patterns_of_signs(seed: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(4, 3)) + 0.7
    matrix = torch.from_numpy(differences @ differences.T)[None]
    ours = elastic_net_weights(matrix, 0.2, penalty)[0].numpy()
    system = matrix[0].numpy() + 0.2 * np.eye(4)

    def cost(weights: np.ndarray) -> float:
        return float(weights @ system @ weights + penalty * np.abs(weights).sum())

    expected = best_of_all_signs(system, penalty)
    assert ours.sum() == pytest.approx(1.0)
    assert cost(ours) == pytest.approx(cost(expected), rel=1e-6)
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_proximal_steps_alone_find_the_same_signs() -> None:
    differences = features(3, dimension=12)[0].view(3, 4, 3) + 0.7
    matrix = differences @ differences.transpose(1, 2) + 0.2 * torch.eye(4, dtype=torch.float64)
    for penalty in (0.05, 0.5):
        assert torch.equal(_proximal_signs(matrix, penalty), _signs(matrix, penalty))


def test_the_elastic_net_lies_between_the_ridge_and_the_simplex() -> None:
    source, target = features(30), features(40, seed=1)
    indices = cosine_topk(source, target, 6).indices
    ridge = neighborhoods(source, target, TransformConfig(neighbors=6, gamma=0.1)).weights
    negative = [
        float(
            neighborhoods(source, target, TransformConfig(neighbors=6, gamma=0.1, penalty=penalty))
            .weights.clamp_max(0)
            .sum()
        )
        for penalty in (1e-9, 1.0, 100.0)
    ]
    torch.testing.assert_close(
        neighborhoods(
            source, target, TransformConfig(neighbors=6, gamma=0.1, penalty=1e-9)
        ).weights,
        ridge,
        atol=1e-6,
        rtol=1e-6,
    )
    assert negative[0] < negative[1] < negative[2] == pytest.approx(0.0)
    assert indices.shape == ridge.shape


@pytest.mark.parametrize("relative", [False, True])
def test_gradients_of_the_elastic_net(relative: bool) -> None:
    source = features(3, dimension=3).requires_grad_()
    target = features(5, seed=1, dimension=3).requires_grad_()
    gamma = 0.003 if relative else 0.3
    config = TransformConfig(neighbors=4, gamma=gamma, relative=relative, penalty=0.4)
    indices = cosine_topk(source, target, 4).indices
    weights = neighborhoods(source, target, config, indices=indices).weights
    assert ((weights == 0).sum() > 0).item()  # some vanish: the gradient is that of the others
    assert torch.autograd.gradcheck(
        lambda a, b: neighborhoods(a, b, config, indices=indices).weights,
        (source, target),
        fast_mode=True,
    )


def test_the_gram_matrix_is_differentiable_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltenet.method.gram._BLOCK_FLOATS", 20)
    source = features(5, dimension=3)[0].requires_grad_()
    target = features(6, seed=1, dimension=3)[0].requires_grad_()
    graph = NeighborGraph(torch.randint(0, 6, (5, 4)), 6)
    differences = target[graph.indices] - source[:, None]
    expected = differences @ differences.transpose(1, 2)
    torch.testing.assert_close(differentiable_gram(source, target, graph), expected)
    found = gram(source.detach(), target.detach(), graph)
    torch.testing.assert_close(found, expected.detach())
    assert torch.autograd.gradcheck(lambda a, b: differentiable_gram(a, b, graph), (source, target))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "other"}, "got the kind 'other'"),
        ({"choice": "other"}, "got the choice 'other'"),
        ({"penalty": -1.0}, "got a penalty of -1.0"),
        ({"penalty": 1.0, "kind": "softmax"}, "with 'lle' only"),
        ({"kind": "mlle", "neighbors": 2}, "got 2 neighbours for 'mlle'"),
    ],
)
def test_impossible_variants_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TransformConfig(**options)  # type: ignore[arg-type]
