"""Normals and areas, against numpy's cross product and known solids."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from ltenet.geometry.normals import (
    face_areas,
    face_normals,
    unit_vectors,
    vertex_areas,
    vertex_normals,
)

# Two triangles in the plane z = 0 with areas 0.5 and 1.5, one without area, and a lone vertex.
POINTS = np.array(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [4, 0, 0], [4, 1, 0], [1, 0, 0], [9, 9, 9]], float
)
FACES = np.array([[1, 5, 1], [0, 1, 2], [1, 3, 4]])


def sphere(count: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit sphere, and the faces of their hull, all outwards."""
    points = np.random.default_rng(0).normal(size=(count, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    faces = ConvexHull(points).simplices.astype(np.int64)
    inwards = np.linalg.det(points[faces]) < 0
    faces[inwards] = faces[inwards][:, ::-1]
    return points, faces


def test_known_areas() -> None:
    np.testing.assert_allclose(face_areas(POINTS, FACES), [0.0, 0.5, 1.5])
    shares = [1 / 6, 2 / 3, 1 / 6, 0.5, 0.5, 0, 0]
    np.testing.assert_allclose(vertex_areas(POINTS, FACES), shares)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_face_normals_are_cross_products(dtype: type) -> None:
    points, faces = sphere(300)
    points = points.astype(dtype)
    first, second, third = points[faces].transpose(1, 0, 2)
    oracle = np.cross(second - first, third - first)
    found = face_normals(points, faces)
    np.testing.assert_allclose(found, oracle, atol=1e-6)
    areas = face_areas(points, faces)
    assert areas.dtype == dtype
    np.testing.assert_allclose(2 * areas, np.linalg.norm(oracle, axis=1), rtol=1e-4)


def test_a_sphere() -> None:
    points, faces = sphere()
    assert face_areas(points, faces).sum() == pytest.approx(4 * np.pi, rel=0.01)
    assert vertex_areas(points, faces).sum() == pytest.approx(face_areas(points, faces).sum())
    normals = vertex_normals(points, faces)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0)
    assert np.sum(normals * points, axis=1).min() > 0.95


def test_vertex_normals_count_faces_by_area() -> None:
    # A corner of a box: a face of area 2 looks along x, one of area 1/2 along z.
    points = np.array([[0, 0, 0], [0, 2, 0], [0, 0, 2], [1, 0, 0], [0, 1, 0]], float)
    normals = vertex_normals(points, np.array([[0, 1, 2], [0, 3, 4]]))
    np.testing.assert_allclose(normals[0], np.array([4, 0, 1]) / np.sqrt(17))


def test_lone_vertices_have_no_normal() -> None:
    np.testing.assert_array_equal(vertex_normals(POINTS, FACES)[-1], 0.0)
    none = np.zeros((0, 3), np.int64)
    np.testing.assert_array_equal(vertex_normals(POINTS, none), np.zeros((7, 3)))
    np.testing.assert_array_equal(vertex_areas(POINTS, none), np.zeros(7))
    short = np.array([[0.0, 0, 0], [0, 3e-20, 0]])
    np.testing.assert_allclose(unit_vectors(short), [[0, 0, 0], [0, 1, 0]])
