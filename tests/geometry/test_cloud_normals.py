from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from ltenet.geometry.cloud_normals import cloud_normals, shape_normals


def sphere(count: int = 500) -> np.ndarray:
    heights = 1 - 2 * (np.arange(count) + 0.5) / count
    angles = np.pi * (1 + 5**0.5) * np.arange(count)
    radii = np.sqrt(1 - heights**2)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles), heights], axis=1)


def test_normals_of_a_sphere_are_its_points() -> None:
    points = sphere()
    normals = cloud_normals(3 * points + (1, 2, 3))
    assert (np.einsum("nd,nd->n", normals, points) > 0.99).all()


def test_normals_turn_with_the_cloud() -> None:
    points = sphere() * (1, 2, 0.5)
    matrix = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()
    turned = cloud_normals(points @ matrix.T)
    np.testing.assert_allclose(turned, cloud_normals(points) @ matrix.T, atol=1e-8)


def test_two_parts_each_look_outwards() -> None:
    points = np.concatenate([sphere(300), sphere(300) + np.array([10.0, 0, 0])])
    normals = cloud_normals(points)
    inward = np.einsum("nd,nd->n", normals[:300], points[:300])
    assert (inward > 0.98).all()
    assert (np.einsum("nd,nd->n", normals[300:], points[300:] - (10, 0, 0)) > 0.98).all()


def test_vertices_without_faces_have_normals_too() -> None:
    points = np.concatenate([sphere(200), [[0, 0, 1.02]]])
    faces = np.array([[0, 1, 2]])
    normals = shape_normals(points, faces)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1)
    assert normals[200] @ (0, 0, 1) > 0.9
