from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.manifold._locally_linear import barycenter_weights

from ltenet.errors import InputError
from ltenet.method import gram, plain
from ltenet.method.neighbors import cosine_topk
from ltenet.method.transforms import (
    TransformConfig,
    locally_linear_weights,
    neighborhoods,
    simplex_projection,
    softmax_weights,
)


def features(count: int, *, seed: int = 0, dimension: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, count, dimension, generator=generator, dtype=torch.float64)


def lagrange_weights(point: np.ndarray, neighbors: np.ndarray, ridge: float) -> np.ndarray:
    """Solve the conditions for a minimum under the constraint, as one linear system."""
    k = len(neighbors)
    gram = (neighbors - point) @ (neighbors - point).T + ridge * np.eye(k)
    system = np.block([[2 * gram, -np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(np.zeros(k), 1.0))[:k]


def test_weights_solve_the_lagrange_system() -> None:
    source, target = features(15), features(20, seed=1)
    indices = cosine_topk(source, target, 5).indices
    weights = locally_linear_weights(source, target, indices, gamma=0.7)
    for batch in range(2):
        for point in range(15):
            expected = lagrange_weights(
                source[batch, point].numpy(), target[batch, indices[batch, point]].numpy(), 0.7
            )
            np.testing.assert_allclose(weights[batch, point], expected, rtol=1e-9, atol=1e-12)


def test_relative_weights_are_those_of_scikit_learn() -> None:
    source, target = features(30), features(40, seed=1)
    indices = cosine_topk(source, target, 6).indices
    ours = locally_linear_weights(source, target, indices, gamma=1e-3, relative=True)
    for batch in range(2):
        theirs = barycenter_weights(
            source[batch].numpy(), target[batch].numpy(), indices[batch].numpy(), reg=1e-3
        )
        np.testing.assert_allclose(ours[batch], theirs, rtol=1e-8, atol=1e-10)


def test_weights_and_gradients_are_those_of_the_plain_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gram, "_BLOCK_FLOATS", 100)
    source, target = features(15).requires_grad_(), features(20, seed=1).requires_grad_()
    indices = cosine_topk(source, target, 5).indices
    grad = torch.randn(2, 15, 5, dtype=torch.float64)
    ours = locally_linear_weights(source, target, indices)
    expected = plain.locally_linear_weights(source, target, indices)
    torch.testing.assert_close(ours, expected)
    for mine, other in zip(
        torch.autograd.grad(ours, (source, target), grad),
        torch.autograd.grad(expected, (source, target), grad),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("itself", [False, True])
def test_gradcheck(relative: bool, itself: bool) -> None:
    source = features(6, dimension=4).requires_grad_()
    target = source if itself else features(8, seed=1, dimension=4).requires_grad_()
    indices = cosine_topk(source, target, 3, exclude_itself=itself).indices
    inputs = (source,) if itself else (source, target)

    def weights(first: torch.Tensor, second: torch.Tensor | None = None) -> torch.Tensor:
        second = first if second is None else second
        return locally_linear_weights(first, second, indices, gamma=0.3, relative=relative)

    assert torch.autograd.gradcheck(weights, inputs)


def test_softmax_gradcheck_and_known_answer() -> None:
    source = features(6, dimension=4).requires_grad_()
    target = features(8, seed=1, dimension=4).requires_grad_()
    best = cosine_topk(source, target, 3)
    assert torch.autograd.gradcheck(
        lambda a, b: softmax_weights(a, b, best.indices), (source, target)
    )
    torch.testing.assert_close(
        softmax_weights(source, target, best.indices), best.scores.softmax(dim=-1)
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-50, 50))
def test_relative_weights_survive_rotation_translation_and_scaling(
    seed: int, scale: float, shift: float
) -> None:
    source, target = features(10, seed=seed), features(12, seed=seed + 1)
    indices = cosine_topk(source, target, 4).indices
    rotation = torch.linalg.qr(features(7, seed=seed + 2)[0]).Q

    def move(x: torch.Tensor) -> torch.Tensor:
        return scale * (x @ rotation) + shift

    before = locally_linear_weights(source, target, indices, gamma=0.01, relative=True)
    after = locally_linear_weights(move(source), move(target), indices, gamma=0.01, relative=True)
    torch.testing.assert_close(before, after, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(before.sum(dim=-1), torch.ones(2, 10, dtype=torch.float64))


def test_absolute_gamma_survives_rotation_and_translation_only() -> None:
    source, target = features(10), features(12, seed=1)
    indices = cosine_topk(source, target, 4).indices
    before = locally_linear_weights(source, target, indices)
    torch.testing.assert_close(before, locally_linear_weights(source + 3, target + 3, indices))
    assert not torch.allclose(before, locally_linear_weights(2 * source, 2 * target, indices))


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_singular_neighborhoods_stay_finite(relative: bool, dtype: torch.dtype) -> None:
    line = torch.arange(8.0, dtype=dtype)[:, None] * torch.ones(3, dtype=dtype)  # collinear
    twins = torch.ones(8, 3, dtype=dtype)  # all the same
    for shape in (line, twins):
        batch = shape[None].clone().requires_grad_()
        indices = torch.arange(1, 6).expand(1, 8, 5)
        weights = locally_linear_weights(batch, batch, indices, gamma=1e-3, relative=relative)
        assert torch.isfinite(weights).all()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 8, dtype=dtype))
        (grad,) = torch.autograd.grad(weights[..., 0].sum(), batch)
        assert torch.isfinite(grad).all()
    torch.testing.assert_close(weights, torch.full_like(weights, 0.2))


def test_raw_features_rebuild_where_normalized_ones_average() -> None:
    """The reason for solving with raw features: at gamma = 1 unit features give plain means."""
    raw = 20 + 4 * features(30)  # cosines near one, as embeddings have them
    target = raw + 0.5 * features(30, seed=1)
    chosen = neighborhoods(raw, target, TransformConfig(neighbors=5)).weights
    averaged = neighborhoods(raw, target, TransformConfig(neighbors=5, normalized=True)).weights
    assert (averaged - 0.2).abs().max() < 0.1 < (chosen - 0.2).abs().max()


def test_neighborhoods_choose_by_cosine_and_exclude_the_point_itself() -> None:
    source, target = features(10), features(12, seed=1)
    found = neighborhoods(source, target, TransformConfig(neighbors=3))
    assert torch.equal(found.indices, cosine_topk(source, target, 3).indices)
    own = neighborhoods(source, source, TransformConfig(neighbors=3), exclude_itself=True)
    assert (own.indices != torch.arange(10)[:, None]).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=7))
def test_simplex_projection_is_the_nearest_point_of_the_simplex(values: list[float]) -> None:
    point = torch.tensor(values, dtype=torch.float64)
    projected = simplex_projection(point)
    assert (projected >= 0).all()
    assert torch.isclose(projected.sum(), torch.ones((), dtype=torch.float64))
    # Nearest: the way back makes no acute angle with any corner of the simplex.
    corners = torch.eye(len(values), dtype=torch.float64)
    assert (((point - projected) * (corners - projected)).sum(dim=-1) <= 1e-9).all()


def test_simplex_option_removes_negative_weights() -> None:
    source, target = features(40), features(40, seed=1)
    free = neighborhoods(source, target, TransformConfig(gamma=1e-3)).weights
    bound = neighborhoods(source, target, TransformConfig(gamma=1e-3, simplex=True)).weights
    assert free.min() < 0 <= bound.min()


def test_wrong_configurations_are_refused() -> None:
    with pytest.raises(InputError, match="'lle', 'softmax' or 'mlle'"):
        TransformConfig(kind="mean")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected positive numbers"):
        TransformConfig(gamma=0)
