from __future__ import annotations

import numpy as np
import pytest
import torch

from ltenet.errors import InputError
from ltenet.method import plain
from ltenet.method.divergence import DivergenceConfig
from ltenet.method.losses import ObjectiveConfig, objective, smoothness
from ltenet.method.neighbors import knn_graph
from ltenet.method.transforms import TransformConfig


def batch(count: int, columns: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, count, columns, generator=generator, dtype=torch.float64)


def test_smoothness_known_answer() -> None:
    points = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [3, 0, 0]]])
    rebuilt = torch.tensor([[[0.0, 0, 0], [0, 2, 0], [0, 3, 0]]])
    # Of the two nearest points one is the point itself, which does not count: 0-1, 1-0, 2-1.
    near, far = torch.exp(torch.tensor([-1 / 8, -4 / 8]))
    expected = (4 * near + 4 * near + 1 * far) / 3
    assert smoothness(points, rebuilt, k=2).item() == pytest.approx(expected.item())
    assert smoothness(points, torch.zeros_like(points), k=2).item() == 0


def test_smoothness_and_known_neighbors_agree_with_the_plain_version() -> None:
    points, rebuilt = batch(40, 3, 0), batch(40, 3, 1)
    expected = plain.smoothness(points, rebuilt)
    torch.testing.assert_close(smoothness(points, rebuilt), expected)
    neighbors = torch.stack([knn_graph(shape, 20) for shape in points])
    torch.testing.assert_close(smoothness(points, rebuilt, neighbors=neighbors), expected)


def test_objective_and_its_gradient_are_those_of_the_plain_version() -> None:
    source, target = batch(40, 3, 0), batch(40, 3, 1)
    features = [batch(40, 12, seed).requires_grad_() for seed in (2, 3)]
    config = DivergenceConfig(sigma=0.2)
    ours = objective(source, target, *features, measure=config)
    expected = plain.objective(source, target, *features, sigma=0.2)
    torch.testing.assert_close(ours.total, expected)
    for mine, other in zip(
        torch.autograd.grad(ours.total, features),
        torch.autograd.grad(expected, features),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-10)


def test_weights_of_the_terms() -> None:
    data = [batch(30, 3, 0), batch(35, 3, 1), batch(30, 8, 2), batch(35, 8, 3)]
    full = objective(*data, ObjectiveConfig(cross=2, itself=3, smoothness=5))
    torch.testing.assert_close(full.total, 2 * full.cross + 3 * full.itself + 5 * full.smoothness)
    only = objective(*data, ObjectiveConfig(cross=1, itself=0, smoothness=0))
    torch.testing.assert_close(only.total, full.cross)
    assert only.itself == only.smoothness == 0
    without_cross = objective(*data, ObjectiveConfig(cross=0, itself=1, smoothness=0))
    torch.testing.assert_close(without_cross.total, full.itself)


@pytest.mark.parametrize("kind", ["lle", "softmax"])
@pytest.mark.parametrize("measure", ["cauchy-schwarz", "chamfer", "emd"])
def test_every_combination_has_finite_gradients(kind: str, measure: str) -> None:
    features = [batch(24, 8, seed).float().requires_grad_() for seed in (2, 3)]
    terms = objective(
        batch(24, 3, 0).float(),
        batch(24, 3, 1).float(),
        *features,
        transform=TransformConfig(kind=kind, neighbors=5),  # type: ignore[arg-type]
        measure=DivergenceConfig(kind=measure),  # type: ignore[arg-type]
    )
    for grad in torch.autograd.grad(terms.total, features):
        assert torch.isfinite(grad).all()
        assert grad.abs().max() > 0


def test_smoothness_is_dpcs_mean_over_nine_neighbours() -> None:
    """Stated once more, point by point: DPC takes the 10 nearest and drops the point itself."""
    points, rebuilt = batch(30, 3, 4), batch(30, 3, 5)
    means = []
    for shape, image in zip(points.numpy(), rebuilt.numpy(), strict=True):
        terms = []
        for i, point in enumerate(shape):
            squares = ((shape - point) ** 2).sum(axis=1)  # (N,)
            squares[i] = np.inf
            for other in np.argsort(squares)[:9]:
                stretch = ((image[other] - image[i]) ** 2).sum()
                terms.append(np.exp(-squares[other] / 8) * stretch)
        means.append(np.mean(terms))
        assert len(terms) == 30 * 9
    np.testing.assert_allclose(smoothness(points, rebuilt).numpy(), means, rtol=1e-12)


def test_wrong_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"got weights -1, .* expected weights of at least 0"):
        ObjectiveConfig(cross=-1)
    with pytest.raises(InputError, match="got smoothness_neighbors 1, expected at least 2"):
        ObjectiveConfig(smoothness_neighbors=1)
