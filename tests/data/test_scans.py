"""Scan effects: known answers on spheres and planes."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial import KDTree

from ltenet.data.scans import add_wobble, curvatures, discs, visible_vertices
from ltenet.errors import InputError
from ltenet.geometry.surface_graph import mesh_graph


@pytest.fixture(scope="module")
def sphere() -> tuple[np.ndarray, np.ndarray]:
    mesh = trimesh.creation.icosphere(subdivisions=4)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


@pytest.mark.parametrize("towards", [(0, 0, 1), (1, -2, 0.5), (0, 3, 0)])
def test_a_view_of_a_sphere_keeps_the_near_hemisphere(sphere, towards):
    vertices, faces = sphere
    kept = visible_vertices(vertices, faces, np.array(towards, float))
    height = vertices @ np.array(towards) / np.linalg.norm(towards)
    # At the rim the buffer is too coarse to tell.
    assert not kept[height < 0].any()
    assert kept[height > 0.35].all()


def test_what_is_behind_another_body_is_hidden(sphere):
    vertices, faces = sphere
    both = np.concatenate([vertices + np.array([0, 0, 3]), vertices])
    two_faces = np.concatenate([faces, faces + len(vertices)])
    kept = visible_vertices(both, two_faces, np.array([0, 0, 1.0]))
    assert kept[: len(vertices)].mean() > 0.4
    middle = np.hypot(vertices[:, 0], vertices[:, 1]) < 0.9
    assert not kept[len(vertices) :][middle].any()
    aside = visible_vertices(both, two_faces, np.array([1.0, 0, 0]))
    assert aside[len(vertices) :].mean() > 0.4


def test_a_view_without_a_direction_is_refused(sphere):
    with pytest.raises(InputError, match="got no direction, expected"):
        visible_vertices(*sphere, np.zeros(3))


def test_discs_are_geodesic(sphere):
    vertices, faces = sphere
    graph = mesh_graph(faces, len(vertices))
    inside = discs(graph, vertices, np.array([0]), np.array([0.7]))
    angle = np.arccos(np.clip(vertices @ vertices[0], -1, 1))
    assert inside[angle < 0.58].all()  # ways along edges are up to a sixth too long
    assert not inside[angle > 0.7].any()
    two = discs(graph, vertices, np.array([0, int(angle.argmax())]), np.array([0.7, 0.2]))
    assert two.sum() > inside.sum()
    assert not two[np.abs(angle - np.pi / 2) < 0.5].any()


def test_curvature_of_spheres_and_creases(sphere):
    vertices, faces = sphere
    np.testing.assert_allclose(curvatures(vertices, faces), 1.0, atol=0.1)
    box = trimesh.creation.box().subdivide().subdivide().subdivide()
    bent = curvatures(box.vertices, box.faces)
    edge = (np.abs(np.abs(box.vertices) - 0.5) < 1e-6).sum(axis=1) > 1
    assert bent[edge].mean() > 2 * bent[~edge].mean()
    assert (bent > 0).all()
    flat = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    np.testing.assert_array_equal(curvatures(flat, np.array([[0, 1, 2], [0, 2, 3]])), 1.0)


def test_wobble_is_smooth_and_has_its_amplitude():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(2000, 3))
    moved = add_wobble(points, 0.05, rng)
    shift = moved - points
    assert np.sqrt(np.square(shift).sum(axis=1).mean()) == pytest.approx(0.05)
    near = KDTree(points).query(points, k=2)[1][:, 1]
    assert np.linalg.norm(shift - shift[near], axis=1).mean() < 0.4 * 0.05
    np.testing.assert_array_equal(add_wobble(points, 0.0, rng), points)
