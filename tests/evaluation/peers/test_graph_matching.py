"""Spectral graph matching, Gromov-Wasserstein and Sinkhorn filters against known answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from known_shapes import shuffled, turned

from ltenet.errors import InputError
from ltenet.evaluation.peers.functional_maps import FunctionalMaps
from ltenet.evaluation.peers.gromov_wasserstein import GromovWasserstein, diffusion_distances
from ltenet.evaluation.peers.sinkhorn_filters import sinkhorn_kernel, sinkhorn_partners
from ltenet.evaluation.peers.spectral_matching import (
    SpectralMatching,
    matched_embeddings,
    modal_scores,
    signed_order,
)
from ltenet.evaluation.peers.spectrum import spectrum
from ltenet.shape import Shape


@pytest.mark.parametrize("kind", ["umeyama", "modal", "laplacian-em"])
@pytest.mark.parametrize("cloud", [False, True])
def test_spectral_matching_finds_a_moved_copy(lump: Shape, kind: str, cloud: bool) -> None:
    source = Shape(lump.points[::2]) if cloud else lump
    target, place = shuffled(turned(source, 100))
    found = SpectralMatching(kind=kind, modes=30)(source, target)
    assert (found.indices == place).mean() > 0.95


def test_signs_and_order_of_functions_are_found() -> None:
    rng = np.random.default_rng(0)
    first = np.stack([rng.exponential(size=400) - 1, rng.standard_normal(400) ** 3 / 3], axis=1)
    first[:, 1] += 0.3 * rng.exponential(size=400)
    second = np.stack([first[:, 1], -first[:, 0]], axis=1)[rng.permutation(400)]
    np.testing.assert_array_equal(signed_order(first, second), [[0, -1], [1, 0]])


def test_expectation_maximisation_finds_a_rotation_among_outliers() -> None:
    rng = np.random.default_rng(1)
    first = rng.standard_normal((200, 3)) * (1, 1.2, 0.8) + 0.2 * rng.exponential(size=(200, 3))
    matrix = np.linalg.qr(np.eye(3) + 0.1 * rng.standard_normal((3, 3)))[0]
    matrix = matrix * np.sign(np.diag(matrix))
    order = rng.permutation(200)
    second = np.concatenate([(first @ matrix)[order], rng.uniform(-4, 4, (20, 3))])
    found = matched_embeddings(first, second)
    assert (found == np.argsort(order)).mean() > 0.95


def test_modal_scores_do_not_see_signs() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((6, 4)), rng.standard_normal((7, 4))
    signs = np.array([1, -1, -1, 1])
    np.testing.assert_allclose(modal_scores(first, second), modal_scores(first * signs, second))
    expected = np.exp(-4 * (np.abs(first[2]) - np.abs(second[5])) ** 2).sum()
    assert modal_scores(first, second)[2, 5] == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["geodesic", "diffusion"])
def test_gromov_wasserstein_finds_a_moved_copy(lump: Shape, metric: str) -> None:
    pytest.importorskip("ot", reason="the extra baselines is not installed")
    source = Shape(lump.points[::4])
    target, place = shuffled(turned(source, 100))
    found = GromovWasserstein(metric=metric, modes=40)(source, target)
    assert (found.indices == place).mean() > 0.95


def test_diffusion_distances_are_those_of_the_heat_kernel(lump: Shape) -> None:
    """|k_t(x, .) - k_t(y, .)| in L2, from the kernel itself."""
    modes = spectrum(lump, 30)
    kernel = (modes.functions * np.exp(-0.02 * modes.values)) @ modes.functions.T  # (N, N)
    difference = kernel[3] - kernel[100]
    expected = np.sqrt((modes.masses * difference**2).sum())
    assert diffusion_distances(modes, time=0.02)[3, 100] == pytest.approx(expected, rel=1e-6)


def test_sinkhorn_filters_undo_a_permutation_and_share_targets() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(90, 5, generator=generator)
    order = torch.randperm(90, generator=generator)
    place = torch.argsort(order)
    torch.testing.assert_close(sinkhorn_partners(rows, rows[order]), place)
    # Shrunk rows all have the same nearest ones; equal masses spread them out.
    squeezed = 0.5 * rows
    nearest = torch.cdist(squeezed, rows).argmin(dim=1)
    shared = sinkhorn_partners(squeezed, rows)
    assert len(shared.unique()) > len(nearest.unique())


def test_the_sinkhorn_kernel_is_the_mean_of_both_directions() -> None:
    first, second = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [0.9], [2.0]])
    distances = torch.cdist(first, second).double()
    dense = torch.exp(-500 * distances / distances.max())
    np.testing.assert_allclose(sinkhorn_kernel(first, second).toarray(), dense, rtol=1e-4)


@pytest.mark.parametrize("cloud", [False, True])
def test_functional_maps_by_sinkhorn_filters(lump: Shape, cloud: bool) -> None:
    pytest.importorskip("pyFM", reason="the extra spectral is not installed")
    source = Shape(lump.points[::2]) if cloud else lump
    target, place = shuffled(turned(source, 100))
    found = FunctionalMaps(first_modes=20, last_modes=40, readoff="sinkhorn")(source, target)
    assert (found.indices == place).mean() > 0.95


def test_orientation_operators_prefer_the_shape_to_its_mirror_image(lump: Shape) -> None:
    """A copy is found; and a cloud has no orientation."""
    pytest.importorskip("pyFM", reason="the extra spectral is not installed")
    target, place = shuffled(turned(lump, 100))
    method = FunctionalMaps(first_modes=15, last_modes=30, orientation=1.0)
    assert (method(lump, target).indices == place).mean() > 0.9
    with pytest.raises(InputError, match=r"shape: got a cloud, expected a mesh, .*; try .* fmaps"):
        method(Shape(lump.points), target)
