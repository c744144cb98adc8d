"""Shapes for the tests of evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from ltenet.bodies.body_pairs import own_generator
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.shape import Shape


@pytest.fixture(scope="session")
def body() -> Shape:
    """A generated person as 250 evenly spread points."""
    points = own_generator("human").draw(5, 3).vertices.astype(np.float64)
    return Shape(points[farthest_point_sample(points, 250)], name="body")


@pytest.fixture(scope="session")
def lump() -> Shape:
    """A closed mesh without any symmetry: a sphere with dents of different sizes."""
    count = 600
    heights = 1 - 2 * (np.arange(count) + 0.5) / count
    angles = np.pi * (1 + 5**0.5) * np.arange(count)
    radii = np.sqrt(1 - heights**2)
    points = np.stack([radii * np.cos(angles), radii * np.sin(angles), heights], axis=1)
    hull = ConvexHull(points)
    outwards = np.einsum("fd,fd->f", hull.equations[:, :3], points[hull.simplices].mean(axis=1))
    first, second, third = (points[hull.simplices[:, k]] for k in range(3))
    normals = np.cross(second - first, third - first)
    turned = np.einsum("fd,fd->f", normals, hull.equations[:, :3]) * outwards < 0
    faces = np.where(turned[:, None], hull.simplices[:, ::-1], hull.simplices)
    rng = np.random.default_rng(1)
    scale = np.ones(count)
    for depth in (0.5, -0.3, 0.25, 0.2, -0.15):
        centre = rng.standard_normal(3)
        centre /= np.linalg.norm(centre)
        scale += depth * np.exp(-4 * (1 - points @ centre))
    return Shape(points * scale[:, None], faces=faces.astype(np.int64), name="lump")
