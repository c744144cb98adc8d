"""Functional maps of copies, DiffusionNet's parts, and the pool of decomposed shapes."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
import torch
from known_shapes import shuffled, turned

from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.diffusion import (
    DiffusionBlock,
    DiffusionNet,
    Surface,
    gradient_arrays,
    tangent_axes,
)
from ltenet.evaluation.peers.learned.functional_layer import (
    functional_map,
    projected,
    regularized_map,
    soft_map,
    true_map,
)
from ltenet.evaluation.peers.learned.partner_rows import PartnerRows
from ltenet.evaluation.peers.learned.spectral_shapes import (
    Needs,
    ShapeTensors,
    SpectralPool,
    spectral_arrays,
)
from ltenet.evaluation.peers.product_filter import product_filter, votes_of
from ltenet.evaluation.peers.surface_descriptors import all_geodesics
from ltenet.geometry.cloud_normals import shape_normals
from ltenet.shape import Shape

NEEDS = Needs(12, gradients=True, descriptors=True, geodesics=True)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tensors(shape: Shape, needs: Needs = NEEDS) -> ShapeTensors:
    points = torch.tensor(shape.points)
    return ShapeTensors.of(points, spectral_arrays(shape, needs), dtype=torch.float64)


@pytest.mark.parametrize("cloud", [False, True])
def test_the_map_of_a_permuted_copy_is_a_signed_identity(lump: Shape, cloud: bool) -> None:
    source = Shape(lump.points) if cloud else lump
    target, place = shuffled(turned(source, 60))
    first, second = tensors(source), tensors(target)
    assert first.descriptors is not None
    assert second.descriptors is not None
    a = projected(first.functions, first.masses, first.descriptors)
    b = projected(second.functions, second.masses, second.descriptors)
    partners = PartnerRows(
        torch.arange(len(source)), torch.tensor(place)[:, None], torch.ones(len(source), 1).double()
    )
    maps = {
        "plain": functional_map(a, b, ridge=1e-9),
        "regularized": regularized_map(a, b, first.values, second.values, weight=1e-6),
        "true": true_map(first.functions, second.functions, partners),
    }
    for name, found in maps.items():
        expected = torch.diag(found.diagonal().sign())
        assert float((found - expected).abs().max()) < 0.05, name


def test_maps_solve_their_least_squares() -> None:
    a, b = random(6, 20), random(6, 20, seed=1)
    expected = np.linalg.lstsq(a.numpy().T, b.numpy().T, rcond=None)[0].T
    np.testing.assert_allclose(functional_map(a, b, ridge=1e-12).numpy(), expected, atol=1e-8)
    nu, mu = random(6, seed=2).abs(), random(6, seed=3).abs()
    found = regularized_map(a, b, nu, mu, weight=0.7).requires_grad_()
    energy = (found @ a - b).square().sum()
    energy = energy + 0.7 * (found * (mu[:, None] - nu)).square().sum()
    (slope,) = torch.autograd.grad(energy, found)
    torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-9, rtol=0)
    inputs = [random(3, 7).requires_grad_(), random(3, 7, seed=1).requires_grad_()]
    assert torch.autograd.gradcheck(functional_map, inputs)
    assert torch.autograd.gradcheck(
        lambda x, y: regularized_map(x, y, nu[:3], mu[:3], weight=0.1), inputs
    )


def test_columns_of_a_soft_map_have_unit_length(lump: Shape) -> None:
    own = tensors(lump)
    soft = soft_map(own.functions, own.masses, own.functions, torch.eye(12).double())
    torch.testing.assert_close(soft.norm(dim=0), torch.ones(600).double())
    assert (soft.argmax(dim=0) == torch.arange(600)).double().mean() > 0.1


def test_gradients_of_a_linear_function_lie_in_the_tangent_plane(lump: Shape) -> None:
    points, direction = lump.points, np.array([0.3, -1.0, 0.5])
    normals = shape_normals(points, lump.faces)
    indices, weights = gradient_arrays(points, normals)
    values = points @ direction
    found = np.einsum("nki,nk->ni", weights, values[indices])
    expected = np.einsum("nij,j->ni", tangent_axes(normals), direction)
    assert np.abs(found - expected).mean() < 0.1
    constant = np.einsum("nki,nk->ni", weights, np.ones(600)[indices])
    np.testing.assert_allclose(constant, 0, atol=1e-9)


def test_diffusion_is_the_heat_equation(lump: Shape) -> None:
    own = tensors(lump)
    block = DiffusionBlock(3, 0.0).double()
    with torch.no_grad():
        block.times.copy_(torch.tensor([0.0, 0.01, 1e3]))
    features = own.functions[:, 2:5] + 2.0
    spread = block.diffused(features, own.surface())
    torch.testing.assert_close(spread[:, 0], features[:, 0], atol=1e-3, rtol=0)
    fading = torch.exp(-0.01 * own.values[3]) * own.functions[:, 3] + 2
    torch.testing.assert_close(spread[:, 1], fading, atol=1e-3, rtol=0)
    torch.testing.assert_close(spread[:, 2], torch.full((600,), 2.0).double(), atol=0.01, rtol=0)


def test_features_do_not_depend_on_the_tangent_axes() -> None:
    """Turning the axes of every point leaves Re(conj(g) A g) as it is."""
    torch.manual_seed(0)
    count = 20
    indices = torch.randint(count, (count, 5))
    weights = random(count, 5, 2)
    basis = random(count, 6).abs(), torch.linalg.qr(random(count, 6))[0], torch.ones(count).double()
    angle = random(count, seed=4)
    turn = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], 1).view(-1, 2, 2)
    net = DiffusionNet(3, 4, width=8, blocks=2, dropout=0.0).double().eval()
    values = basis[0][0]
    with torch.no_grad():
        for block in net.blocks:
            block.times.fill_(0.1)  # type: ignore[union-attr,operator]
    first = Surface(values, *basis[1:], indices, weights)
    second = first._replace(weights=torch.einsum("nij,nkj->nki", turn, weights))
    features = random(count, 3, seed=5)
    torch.testing.assert_close(net(features, first), net(features, second))
    inputs = features.requires_grad_()
    assert torch.autograd.gradcheck(lambda f: net(f, first), inputs)


def test_the_pool_knows_which_point_is_which() -> None:
    config = PairConfig(what="animal", sampling="independent", points=(200, 200), radius=0.5)
    describe = partial(spectral_arrays, needs=Needs(6))
    pool = SpectralPool(TrainingPairs(config, 0), 6, describe, seed=1)
    fresh = pickle.dumps(pool)
    for index in range(4):
        pair = pool.draw(index)
        again = pickle.loads(fresh).draw(index)  # as a worker process gets it
        np.testing.assert_array_equal(pair.source, again.source)
        assert pair.source_arrays is not None
        assert again.source_arrays is not None
        np.testing.assert_array_equal(pair.source_arrays.functions, again.source_arrays.functions)
        assert not np.array_equal(pair.source, pair.target)
        assert pair.source_known.all()
    # Two shapes of one base pair: their own truth is the oracle.
    base = TrainingPairs(config, 0).draw(0)
    joined = pool._joined(0, 1)
    error = np.linalg.norm(joined.source_truth - base.source_truth, axis=1)
    spacing = np.sort(np.linalg.norm(base.target[:, None] - base.target, axis=2))[:, 1].mean()
    assert np.median(error) < spacing
    with pytest.raises(InputError, match=r"got a pool of 1 shapes, expected at least 2"):
        SpectralPool(TrainingPairs(config, 0), 1, describe)


def test_the_product_filter_repairs_single_points(lump: Shape) -> None:
    target, place = shuffled(lump)
    source_lengths = all_geodesics(lump.points, lump.faces)
    target_lengths = all_geodesics(target.points, target.faces)
    noisy = place.copy()
    rng = np.random.default_rng(0)
    wrong = rng.choice(600, 120, replace=False)
    noisy[wrong] = rng.integers(600, size=120)
    found = product_filter(noisy, source_lengths, target_lengths, rounds=4)
    assert (found == place).mean() > 0.95
    votes = votes_of(np.array([1, 0]), np.array([[0.0, 1], [1, 0]]), np.eye(2) * 0 + 0.3, 0.5)
    near, far = np.exp(-0.18), np.exp(-2)
    np.testing.assert_allclose(votes, np.full((2, 2), near * (1 + far)))
