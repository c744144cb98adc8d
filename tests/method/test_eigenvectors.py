"""Lowest eigenvectors of sparse matrices: dense decomposition is the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.sparse import csr_matrix, diags, random_array

from ltenet.method import eigenvectors
from ltenet.method.eigenvectors import NotConverged, lowest_eigenvectors


def graph_laplacian(points: int, seed: int) -> Any:
    """Weights of a ring, so that it is connected, and of random edges."""
    rng = np.random.default_rng(seed)
    ring = csr_matrix(
        (rng.uniform(0.5, 2.0, points), (np.arange(points), np.roll(np.arange(points), 1))),
        shape=(points, points),
    )
    edges = ring + random_array((points, points), density=4 / points, rng=rng)
    edges = edges + edges.T
    return csr_matrix(diags(np.asarray(edges.sum(axis=1)).ravel()) - edges)


def dense(stiffness: Any, masses: Any, k: int) -> Any:
    return eigh(stiffness.toarray(), np.diag(masses), subset_by_index=(0, k - 1))[0]


def blobs(count: int) -> tuple[Any, Any]:
    """Laplacian and masses of equal ellipsoids."""
    import robust_laplacian

    one = trimesh.creation.icosphere(subdivisions=2)
    vertices, faces = np.array(one.vertices) * [1.0, 1.2, 1.5], np.array(one.faces)
    every = np.vstack([vertices + np.array([4.0, 0.0, 0.0]) * number for number in range(count)])
    corners = np.vstack([faces + len(vertices) * number for number in range(count)])
    stiffness, mass = robust_laplacian.mesh_laplacian(every, corners)
    return stiffness, mass.diagonal()


@settings(max_examples=20, deadline=None)
@given(st.integers(80, 300), st.integers(1, 20), st.integers(0, 1000))
def test_agrees_with_dense_decomposition(points: int, k: int, seed: int) -> None:
    stiffness = graph_laplacian(points, seed)
    masses = np.random.default_rng(seed).uniform(0.2, 3.0, points)
    values, vectors = lowest_eigenvectors(stiffness, masses, k)
    expected = dense(stiffness, masses, k)
    assert values == pytest.approx(expected, abs=1e-6 * expected[-1] + 1e-10)
    assert vectors.T @ (masses[:, None] * vectors) == pytest.approx(np.eye(k), abs=1e-8)
    residual = stiffness @ vectors - masses[:, None] * vectors * values
    assert np.abs(residual).max() < 0.02 * max(1.0, expected[-1])


@pytest.mark.parametrize("count", [1, 3, 12])
def test_every_copy_of_an_eigenvalue_is_found(count: int) -> None:
    stiffness, masses = blobs(count)
    k = min(60, 40 * count)
    values, _ = lowest_eigenvectors(stiffness, masses, k)
    assert values == pytest.approx(dense(stiffness, masses, k), rel=1e-5, abs=1e-9)
    assert (values[:count] == 0.0).all()


def test_fewer_functions_than_parts() -> None:
    stiffness, masses = blobs(5)
    values, vectors = lowest_eigenvectors(stiffness, masses, 3)
    assert (values == 0.0).all()
    assert np.abs(stiffness @ vectors).max() < 1e-9


def test_identical_in_every_run() -> None:
    stiffness, masses = blobs(2)
    first, second = (lowest_eigenvectors(stiffness, masses, 30)[1] for _ in range(2))
    assert (first == second).all()


def test_says_so_when_it_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigenvectors, "_TOLERANCE", 0.0)
    stiffness, masses = blobs(1)
    with pytest.raises(NotConverged, match="not enough for 9 eigenvectors"):
        lowest_eigenvectors(stiffness, masses, 10)
