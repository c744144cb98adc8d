from __future__ import annotations

import torch

from ltenet.method import plain
from ltenet.method.reconstruction import reconstruct, reconstruct_pair, soft_correspondence
from ltenet.method.transforms import Neighborhoods, TransformConfig, neighborhoods

CONFIG = TransformConfig(neighbors=4)


def cloud(count: int, columns: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, count, columns, generator=generator, dtype=torch.float64)


def test_known_answer() -> None:
    points = torch.tensor([[[0.0, 0, 0], [2, 0, 0], [0, 4, 0]]])
    chosen = Neighborhoods(torch.tensor([[[1, 2]]]), torch.tensor([[[0.5, 0.5]]]))
    assert reconstruct(chosen, points).tolist() == [[[1, 2, 0]]]


def test_unequal_sizes_and_gradients_agree_with_the_plain_version() -> None:
    points = cloud(9, 3, 0).requires_grad_()
    found = neighborhoods(cloud(6, 5, 1), cloud(9, 5, 2), CONFIG)
    weights = found.weights.requires_grad_()
    ours = reconstruct(Neighborhoods(found.indices, weights), points)
    expected = plain.reconstruct(weights, found.indices, points)
    torch.testing.assert_close(ours, expected)
    grad = torch.randn_like(ours)
    for mine, other in zip(
        torch.autograd.grad(ours, (points, weights), grad),
        torch.autograd.grad(expected, (points, weights), grad),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


def test_the_same_features_rebuild_the_same_points() -> None:
    # More dimensions than neighbours, or other weights rebuild a feature just as well.
    points, features = cloud(20, 3, 0), 100 * cloud(20, 15, 1)
    rebuilt = soft_correspondence(features, features, points, TransformConfig(gamma=1e-6))
    torch.testing.assert_close(rebuilt, points, rtol=1e-4, atol=1e-4)


def test_features_linear_in_the_points_rebuild_them_from_their_neighbors() -> None:
    """Weights found in feature space hold in 3-D when features are a linear map of the points."""
    grid = torch.linspace(-1, 1, 8, dtype=torch.float64)
    points = torch.cartesian_prod(grid, grid, grid)[None]  # (1, 512, 3)
    lift = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    features = points @ lift + 10
    config = TransformConfig(neighbors=12, gamma=1e-6, relative=True)
    rebuilt = reconstruct(neighborhoods(features, features, config, exclude_itself=True), points)
    inside = points.abs().amax(dim=-1) < 0.9
    assert (rebuilt - points)[inside].norm(dim=-1).median() < 1e-3


def test_a_pair_is_rebuilt_in_both_directions_and_from_itself() -> None:
    source, target = cloud(10, 3, 0), cloud(13, 3, 1)
    source_features, target_features = cloud(10, 5, 2), cloud(13, 5, 3)
    rebuilt = reconstruct_pair(source, target, source_features, target_features, CONFIG)
    torch.testing.assert_close(
        rebuilt.target, soft_correspondence(source_features, target_features, target, CONFIG)
    )
    torch.testing.assert_close(
        rebuilt.source, soft_correspondence(target_features, source_features, source, CONFIG)
    )
    assert rebuilt.source_itself is not None
    assert rebuilt.target_itself is not None
    assert rebuilt.source_itself.shape == source.shape
    assert rebuilt.target_itself.shape == target.shape
    without = reconstruct_pair(
        source, target, source_features, target_features, CONFIG, itself=False
    )
    assert without.source_itself is None
    assert without.target_itself is None
