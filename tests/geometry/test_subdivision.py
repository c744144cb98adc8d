"""Halving the edges of a mesh keeps its surface."""

from __future__ import annotations

import numpy as np

from ltenet.geometry.normals import face_areas
from ltenet.geometry.subdivision import subdivide


def test_a_tetrahedron_divided_twice_keeps_its_surface_and_its_sense() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    fine = subdivide(faces, 4, levels=2)
    positions = fine.positions(points)
    assert len(fine.faces) == 4 * 16
    assert len(positions) - len(fine.faces) // 2 == 2  # Euler's formula for a closed surface
    np.testing.assert_array_equal(positions[:4], points)
    np.testing.assert_allclose(
        face_areas(positions, fine.faces).sum(), face_areas(points, faces).sum()
    )
    a, b, c = (positions[fine.faces[:, k]] for k in range(3))
    np.testing.assert_allclose((a * np.cross(b, c)).sum() / 6, 1 / 6)  # the volume, with its sign
