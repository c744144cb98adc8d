"""From moved points to maps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from ltenet.evaluation.peers.landing import carried, landed, thinned, triangle_weights
from ltenet.shape import Shape

numbers = st.floats(-2, 2, allow_subnormal=False)


@given(arrays(np.float64, (3,), elements=numbers), arrays(np.float64, (3, 3), elements=numbers))
@settings(max_examples=60, deadline=None)
def test_the_nearest_place_on_a_triangle(point: np.ndarray, corners: np.ndarray) -> None:
    weights = triangle_weights(point[None], corners[None])[0]
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    distance = np.linalg.norm(weights @ corners - point)
    # By an independent, slow way: a grid over the triangle is nowhere nearer.
    steps = [(i / 20, j / 20) for i in range(21) for j in range(21 - i)]
    grid = np.array([(1 - u - v, u, v) for u, v in steps])
    assert distance <= np.linalg.norm(grid @ corners - point, axis=1).min() + 1e-9


def test_the_nearest_place_by_an_optimiser() -> None:
    rng = np.random.default_rng(3)
    points, corners = rng.standard_normal((20, 3)), rng.standard_normal((20, 3, 3))
    weights = triangle_weights(points, corners)
    for point, triangle, own in zip(points, corners, weights, strict=True):
        found = minimize(
            lambda w, t=triangle, p=point: np.square(w @ t - p).sum(),
            np.full(3, 1 / 3),
            bounds=[(0, 1)] * 3,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            tol=1e-12,
        )
        np.testing.assert_allclose(own @ triangle, found.x @ triangle, atol=1e-4)


def test_landing_chooses_the_nearest_and_lies_between() -> None:
    square = Shape(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [9, 9, 9]]))
    source = Shape(np.array([[5.0, 5, 5], [6, 6, 6]]))
    moved = np.array([[0.1, 0.2, 0.5], [0.9, -0.3, 0]])
    found = landed(source, square, moved, square.points)
    assert found.indices.tolist() == [0, 1]
    np.testing.assert_allclose(found.positions(), [[0.1, 0.2, 0], [0.9, 0, 0]], atol=1e-12)


def test_landing_on_two_points() -> None:
    pair = Shape(np.array([[0.0, 0, 0], [1, 0, 0]]))
    found = landed(pair, pair, np.array([[0.9, 0, 0], [0.2, 0, 0]]), pair.points)
    assert found.indices.tolist() == [1, 0]
    assert found.neighbors is None


def test_carried_points_follow_their_anchors() -> None:
    rng = np.random.default_rng(0)
    anchors, points = rng.standard_normal((30, 3)), rng.standard_normal((50, 3))
    shift = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(carried(points, anchors, np.tile(shift, (30, 1))), points + shift)
    moves = rng.standard_normal((30, 3))
    np.testing.assert_allclose(carried(anchors, anchors, moves), anchors + moves, atol=1e-6)


def test_thinning() -> None:
    points = np.random.default_rng(0).standard_normal((40, 3))
    np.testing.assert_array_equal(thinned(points, 40), np.arange(40))
    assert len(np.unique(thinned(points, 15))) == 15
