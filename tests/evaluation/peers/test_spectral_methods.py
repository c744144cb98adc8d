"""Spectra, descriptors, functional maps and geodesics against what theory says."""

from __future__ import annotations

import numpy as np
import pytest
from known_shapes import shuffled, turned

from ltenet.errors import InputError
from ltenet.evaluation.bench.geodesics import geodesic_distances, geodesic_error
from ltenet.evaluation.peers.descriptors import (
    NearestDescriptor,
    global_point_signature,
    heat_kernel_signature,
    nearest_descriptors,
    wave_kernel_signature,
)
from ltenet.evaluation.peers.functional_maps import FunctionalMaps
from ltenet.evaluation.peers.spectrum import Spectrum, spectrum
from ltenet.shape import Shape


@pytest.fixture(scope="module")
def sphere(lump: Shape) -> Shape:
    points = lump.points / np.linalg.norm(lump.points, axis=1, keepdims=True)
    return Shape(3 * points, faces=lump.faces, name="sphere")


@pytest.fixture(scope="module")
def modes(lump: Shape) -> Spectrum:
    return spectrum(lump, 60)


@pytest.mark.parametrize("cloud", [False, True])
def test_the_spectrum_of_a_sphere(sphere: Shape, cloud: bool) -> None:
    own = Shape(sphere.points) if cloud else sphere
    values = spectrum(own, 9).values
    # Area 1: eigenvalue 4 pi l (l + 1), each 2 l + 1 times.
    expected = 4 * np.pi * np.repeat([0, 2, 6], [1, 3, 5])
    np.testing.assert_allclose(values, expected, rtol=0.05, atol=1e-6)


def test_eigenfunctions_are_orthonormal_and_always_the_same(lump: Shape, modes: Spectrum) -> None:
    products = modes.functions.T @ (modes.masses[:, None] * modes.functions)
    np.testing.assert_allclose(products, np.eye(60), atol=1e-6)
    assert modes.masses.sum() == pytest.approx(1)
    np.testing.assert_array_equal(spectrum(lump, 60).functions, modes.functions)


def test_the_spectrum_knows_neither_place_nor_size(lump: Shape, modes: Spectrum) -> None:
    moved = turned(Shape(7 * lump.points, faces=lump.faces), 70)
    np.testing.assert_allclose(spectrum(moved, 60).values, modes.values, rtol=1e-5, atol=1e-5)


def test_few_points() -> None:
    with pytest.raises(InputError, match=r"points \(3, 3\), expected .* at least 4 points"):
        spectrum(Shape(np.eye(3)), 3)


def test_signatures_have_their_means(modes: Spectrum) -> None:
    # Orthonormal functions: the mean of phi^2 over the surface is 1, so weighted means are too.
    for signature in (heat_kernel_signature(modes), wave_kernel_signature(modes)):
        np.testing.assert_allclose(modes.masses @ signature, 1, atol=1e-6)
    squares = modes.masses @ np.square(global_point_signature(modes, modes_used=10))
    np.testing.assert_allclose(squares, 1 / modes.values[1:11], rtol=1e-6)


def test_heat_of_one_mode() -> None:
    one = Spectrum(np.array([0.0, 2.0]), np.array([[1.0, 1.5], [1, -0.5]]), np.full(2, 0.5))
    np.testing.assert_allclose(heat_kernel_signature(one, times=3), [[2.25] * 3, [0.25] * 3])


@pytest.mark.parametrize("cloud", [False, True])
@pytest.mark.parametrize("kind", ["hks", "wks", "gps"])
def test_descriptors_find_a_moved_copy(lump: Shape, kind: str, cloud: bool) -> None:
    source = Shape(lump.points) if cloud else lump
    target, place = shuffled(turned(source, 100))
    found = NearestDescriptor(kind=kind, modes=40)(source, target)
    assert (found.indices == place).mean() > 0.95


def test_nearest_rows_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    queries, rows = rng.standard_normal((70, 5)) + 50, rng.standard_normal((90, 5)) + 50
    distances = np.linalg.norm(queries[:, None] - rows, axis=2)
    np.testing.assert_array_equal(nearest_descriptors(queries, rows), distances.argmin(axis=1))


@pytest.mark.parametrize("cloud", [False, True])
def test_functional_maps_find_a_moved_copy(lump: Shape, cloud: bool) -> None:
    pytest.importorskip("pyFM", reason="the extra spectral is not installed")
    source = Shape(lump.points) if cloud else lump
    target, place = shuffled(turned(source, 100))
    found = FunctionalMaps(first_modes=20, last_modes=60)(source, target)
    assert (found.indices == place).mean() > 0.95


def test_geodesics_on_a_sphere(sphere: Shape) -> None:
    pytest.importorskip("potpourri3d", reason="the extra spectral is not installed")
    starts, ends = np.array([0, 0, 5, 100, 7]), np.array([599, 300, 400, 250, 7])
    cosines = np.einsum("pd,pd->p", sphere.points[starts], sphere.points[ends]) / 9
    expected = 3 * np.arccos(np.clip(cosines, -1, 1))
    found = geodesic_distances(sphere, starts, ends)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=1e-9)
    area = 4 * np.pi * 9
    error = geodesic_error(sphere, ends, starts)
    assert error == pytest.approx(100 * expected.mean() / np.sqrt(area), rel=0.05)


def test_geodesics_between_parts_that_are_not_connected() -> None:
    pytest.importorskip("potpourri3d", reason="the extra spectral is not installed")
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    both = Shape(np.concatenate([corners, corners + 5]), faces=np.concatenate([faces, faces + 4]))
    assert np.isinf(geodesic_distances(both, np.array([0]), np.array([4])))[0]
    far = geodesic_error(both, np.array([4]), np.array([0]))
    area = 2 * (1.5 + np.sqrt(3) / 2)
    assert far == pytest.approx(100 * np.sqrt(75) / np.sqrt(area))


def test_geodesics_need_faces(body: Shape) -> None:
    with pytest.raises(InputError, match=r"body: got a cloud, expected .* need faces; try whole"):
        geodesic_distances(body, np.array([0]), np.array([1]))
