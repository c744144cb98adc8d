"""Eigenfunctions of the Laplacian: the sphere's are known, and no unit or order changes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import trimesh

from ltenet.errors import InputError
from ltenet.method.laplacian import LaplacianBasis, laplacian_basis


def sphere(subdivisions: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    mesh = trimesh.creation.icosphere(subdivisions=subdivisions)
    return torch.tensor(np.array(mesh.vertices)), torch.tensor(np.array(mesh.faces))


def assert_orthonormal(basis: LaplacianBasis) -> None:
    k = len(basis.values)
    gram = basis.functions.T @ (basis.masses[:, None] * basis.functions)
    assert torch.allclose(gram, torch.eye(k, dtype=gram.dtype), atol=1e-6)
    assert basis.masses.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("as_cloud", [False, True])
def test_sphere_has_the_eigenvalues_of_its_harmonics(as_cloud: bool) -> None:
    points, faces = sphere()
    basis = laplacian_basis(points, 9, faces=None if as_cloud else faces)
    # l (l + 1) / r^2, 2 l + 1 times each; with area 1, 1 / r^2 is 4 pi.
    expected = 4 * math.pi * np.repeat([0.0, 2.0, 6.0], [1, 3, 5])
    assert basis.values.numpy() == pytest.approx(expected, rel=0.05, abs=1e-4)
    assert_orthonormal(basis)
    # The three functions of l = 1 are the coordinates, turned.
    fitted = basis.functions @ (basis.functions.T @ (basis.masses[:, None] * points))
    assert (fitted - points).abs().max() < 0.05


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_unit_and_place_do_not_matter(scale: float) -> None:
    points, faces = sphere(2)
    points = points * torch.tensor([1.0, 1.3, 1.7])  # no two eigenvalues alike
    first = laplacian_basis(points, 6, faces=faces)
    second = laplacian_basis(scale * (points + 5.0), 6, faces=faces)
    assert torch.allclose(first.values, second.values, rtol=1e-4, atol=1e-4)
    signs = (first.functions * second.functions).sum(dim=0).sign()
    assert torch.allclose(first.functions, second.functions * signs, atol=1e-3)


def test_small_shapes_are_solved_densely_and_agree() -> None:
    points, faces = sphere(1)  # 42 vertices
    basis = laplacian_basis(points, 42, faces=faces)
    assert_orthonormal(basis)
    assert basis.values[:4].numpy() == pytest.approx(
        laplacian_basis(points, 4, faces=faces).values.numpy(), abs=1e-6
    )


def test_two_parts_have_two_constant_functions() -> None:
    points, faces = sphere(2)
    both = torch.cat([points, points + 5.0])
    basis = laplacian_basis(both, 4, faces=torch.cat([faces, faces + len(points)]))
    assert basis.values[1] < 1e-4 < basis.values[2]


def test_vertices_without_faces_go_with_the_nearest() -> None:
    points, faces = sphere(2)
    alone = laplacian_basis(points, 5, faces=faces)
    basis = laplacian_basis(torch.cat([points[:1] * 3, points]), 5, faces=faces + 1)
    assert torch.equal(basis.functions[0], basis.functions[1])
    assert torch.equal(basis.functions[1:], alone.functions)
    assert basis.masses[0] == 0
    assert_orthonormal(basis)


def test_the_same_in_every_run() -> None:
    points, _ = sphere(3)
    first, second = (laplacian_basis(points.float(), 20) for _ in range(2))
    assert torch.equal(first.functions, second.functions)


def test_errors_say_what_to_do() -> None:
    points, faces = sphere(1)
    with pytest.raises(InputError, match="try fewer functions"):
        laplacian_basis(points, 43)
    with pytest.raises(InputError, match="at least 4"):
        laplacian_basis(points[:3], 2)
    with pytest.raises(InputError, match="all coincide"):
        laplacian_basis(torch.ones(10, 3), 2)
    with pytest.raises(InputError, match="leaving out the faces"):
        laplacian_basis(points, 3, faces=faces[:0])
