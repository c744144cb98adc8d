"""Surface nets against surfaces whose area, volume and holes are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ltenet.errors import InputError
from ltenet.geometry.normals import face_areas
from ltenet.geometry.surface_nets import surface_net


def grid(count: int = 40, reach: float = 1.4) -> tuple[np.ndarray, np.ndarray, float]:
    line = np.linspace(-reach, reach, count)
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1)
    return points, np.full(3, -reach), float(line[1] - line[0])


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = vertices[faces].transpose(1, 0, 2)
    return float(np.einsum("fa,fa->", a, np.cross(b, c)) / 6)


def edge_counts(faces: np.ndarray) -> np.ndarray:
    edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    return np.unique(edges, axis=0, return_counts=True)[1]


def test_a_ball_has_its_area_and_volume_and_looks_outwards():
    points, origin, cell = grid()
    vertices, faces = surface_net(np.linalg.norm(points, axis=-1) - 1.0, origin, cell)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1.0, atol=0.01)
    assert volume(vertices, faces) == pytest.approx(4 / 3 * math.pi, rel=0.01)
    assert face_areas(vertices, faces).sum() == pytest.approx(4 * math.pi, rel=0.02)


@pytest.mark.parametrize(("hole", "characteristic"), [(False, 2), (True, 0)])
def test_meshes_are_closed_and_keep_holes(hole, characteristic):
    points, origin, cell = grid()
    across = np.linalg.norm(points[..., :2], axis=-1)
    ring = np.hypot(across - 0.8, points[..., 2]) - 0.3
    values = ring if hole else np.abs(points).max(axis=-1) - 0.77
    vertices, faces = surface_net(values, origin, cell)
    counts = edge_counts(faces)
    assert (counts == 2).all()
    assert len(vertices) - len(counts) + len(faces) == characteristic


def test_a_flat_side_is_met_exactly():
    points, origin, cell = grid()
    values = np.abs(points).max(axis=-1) - 0.5
    vertices, _ = surface_net(values, origin, cell)
    side = (np.abs(vertices[:, 1:]) < 0.4).all(axis=1) & (vertices[:, 0] > 0)
    np.testing.assert_allclose(vertices[side, 0], 0.5, atol=1e-12)


def test_fields_without_a_closed_surface_are_refused():
    points, origin, cell = grid(8)
    for values in (np.ones((8, 8, 8)), np.linalg.norm(points, axis=-1) - 9.0, np.ones((2, 2, 2))):
        with pytest.raises(InputError, match=r"got a field .*, expected .*; try a larger grid"):
            surface_net(values, origin, cell)
