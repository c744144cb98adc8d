"""The largest distance, against comparing all points with all."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist

from ltenet.geometry.diameter import largest_distance


def sphere(count: int, seed: int = 0) -> np.ndarray:
    points = np.random.default_rng(seed).standard_normal((count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def constant_width(count: int) -> np.ndarray:
    """A Reuleaux tetrahedron: nearly every point has a partner nearly as far away as can be."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(8)
    directions = sphere(count)
    along = directions @ corners.T
    radii = along + np.sqrt(along**2 - np.square(corners).sum(axis=1) + 1)
    return directions * radii.min(axis=1)[:, None]


CLOUDS = {
    "cloud": np.random.default_rng(0).standard_normal((3000, 3)),
    "sphere": sphere(3000),
    "sphere far from the origin": sphere(3000) + 1e4,
    "constant width": constant_width(3000),
    "circle": sphere(3000) * (1, 1, 0),
    "line": sphere(3000) * (1, 0, 0),
    "grid": np.stack(np.meshgrid(*[np.arange(12.0)] * 3), axis=-1).reshape(-1, 3),
    "one place": np.ones((50, 3)),
    "many points in one place": np.ones((6000, 3)),
    "one point": np.ones((1, 3)),
    "two points": np.array([[0.0, 0, 0], [3, 4, 0]]),
}


@pytest.mark.parametrize("points", CLOUDS.values(), ids=list(CLOUDS))
def test_by_brute_force(points: np.ndarray) -> None:
    longest = max(cdist(points[i : i + 500], points).max() for i in range(0, len(points), 500))
    assert largest_distance(points) == pytest.approx(longest, rel=1e-12)


@pytest.mark.parametrize("size", [1e-162, 1e-300, 1e150])
def test_extreme_units(size: float) -> None:
    points = size * CLOUDS["cloud"]
    assert largest_distance(points) == pytest.approx(
        size * largest_distance(CLOUDS["cloud"]), rel=1e-9
    )


@given(arrays(np.float64, st.tuples(st.integers(1, 40), st.just(3)), elements=st.floats(-5, 5)))
@settings(max_examples=50, deadline=None)
def test_any_points(points: np.ndarray) -> None:
    assert largest_distance(points) == pytest.approx(cdist(points, points).max(), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["rods", "two balls", "disc"])
def test_large_clouds_by_their_hull(form: str) -> None:
    points = sphere(60_000) * (1, 0.1, 0.1)
    if form == "rods":  # three of nearly the same length
        points = np.stack([points, points[:, [1, 0, 2]], 0.999 * points[:, [1, 2, 0]]], 1)
        points = points[np.arange(60_000), np.arange(60_000) % 3]
    elif form == "two balls":
        points = sphere(60_000) + np.where(np.arange(60_000) % 2, 3, -3)[:, None] * (1, 1, 0)
    elif form == "disc":
        points = sphere(60_000) * (1, 0.98, 0.01)
    corners = points[ConvexHull(points).vertices]
    longest = max(cdist(corners[i : i + 500], corners).max() for i in range(0, len(corners), 500))
    assert largest_distance(points) == pytest.approx(longest, rel=1e-12)


def test_a_large_ball_takes_seconds() -> None:
    points = sphere(200_000)
    points[17], points[123_456] = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)
    begun = time.process_time()
    assert largest_distance(points) == pytest.approx(2.0, rel=1e-12)
    assert time.process_time() - begun < 30  # all with all takes minutes
