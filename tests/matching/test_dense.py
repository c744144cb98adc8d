"""From a sample to every vertex."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.matching.dense import Carrier, land


def sphere(count, seed):
    points = np.random.default_rng(seed).normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_smooth_maps_are_carried_closely(seed):
    rng = np.random.default_rng(seed)
    matrix = np.eye(3) + 0.2 * rng.normal(size=(3, 3))
    sample, vertices = sphere(400, seed), sphere(3000, seed + 1)
    carried = Carrier(sample, sample @ matrix.T, np.full(400, 0.5)).carry(vertices)
    errors = np.linalg.norm(carried.places - vertices @ matrix.T, axis=1)
    # The sample is 0.09 apart: a nearest-neighbour carry would be ten times as far off.
    assert errors.mean() < 0.01
    np.testing.assert_allclose(carried.values, 0.5)


def test_embedded_points_stay_where_they_were_put():
    sample = sphere(200, 0)
    places = sample[:, [1, 2, 0]]
    carried = Carrier(sample, places, np.linspace(0, 1, 200)).carry(sample)
    assert np.linalg.norm(carried.places - places, axis=1).mean() < 0.02


def test_touching_parts_do_not_drag_each_other():
    # Two sheets, 0.02 apart, of which one is carried away.
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 15)] * 2), -1).reshape(-1, 2)
    low = np.column_stack([grid, np.zeros(len(grid))])
    high = np.column_stack([grid, np.full(len(grid), 0.02)])
    sample = np.concatenate([low, high])
    places = np.concatenate([low, high + np.array([0, 0, 5.0])])
    vertices = low + np.array([0.01, 0.01, 0.0])
    carried = Carrier(sample, places, np.ones(len(sample))).carry(vertices)
    assert np.abs(carried.places[:, 2]).max() < 0.2


def test_landing_finds_the_nearest_and_convex_weights():
    target = sphere(500, 3)
    places = sphere(200, 4) * 1.02
    landing = land(places, target)
    oracle = np.linalg.norm(places[:, None] - target[None], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(landing.indices, oracle)
    np.testing.assert_allclose(landing.weights.sum(axis=1), 1.0)
    assert landing.weights.min() >= 0
    soft = np.einsum("nk,nkd->nd", landing.weights, target[landing.neighbors])
    nearest = target[landing.indices]
    closer = np.linalg.norm(soft - places, axis=1) <= np.linalg.norm(nearest - places, axis=1)
    assert closer.all()


def test_places_inside_a_triangle_are_met_exactly():
    target = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.5]])
    places = np.array([[0.25, 0.25, 0.0], [0.0, 0.0, 0.0]])
    landing = land(places, target)
    soft = np.einsum("nk,nkd->nd", landing.weights, target[landing.neighbors])
    np.testing.assert_allclose(soft, places, atol=0.02)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_tiny_targets(count):
    landing = land(sphere(10, 0), sphere(count, 1))
    assert landing.neighbors.shape == (10, count)
