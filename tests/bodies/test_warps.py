"""Warps of whole shapes: known answers, and what they must not do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from ltenet.bodies.warps import (
    bent,
    bump_heights,
    draw_form,
    draw_warp,
    random_frame,
    stretched,
    twisted,
    waved,
)


def rod(count: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.uniform((-1.0, -0.1, -0.1), (1.0, 0.1, 0.1), (count, 3))


def test_stretching_scales_the_axes_of_the_frame():
    points = rod()
    frame = random_frame(np.random.default_rng(1))
    factors = np.array([2.0, 1.0, 0.5])
    moved = stretched(points, frame, factors)
    before, after = ((p - p.mean(axis=0)) @ frame.T for p in (points, moved))
    np.testing.assert_allclose(after, before * factors, atol=1e-12)


def test_a_bent_line_becomes_an_arc_of_the_same_length():
    line = np.stack([np.linspace(-1, 1, 401), np.zeros(401), np.zeros(401)], axis=1)
    arc = bent(line, np.eye(3), 90.0)
    length = np.linalg.norm(np.diff(arc, axis=0), axis=1).sum()
    assert length == pytest.approx(2.0, abs=1e-4)
    first, last = arc[1] - arc[0], arc[-1] - arc[-2]
    cosine = first @ last / np.linalg.norm(first) / np.linalg.norm(last)
    assert math.degrees(math.acos(cosine)) == pytest.approx(90.0, abs=0.5)
    radius = np.linalg.norm(arc - [0.0, 2.0 / math.radians(90.0), 0.0], axis=1)
    np.testing.assert_allclose(radius, 2.0 / math.radians(90.0), atol=1e-9)
    np.testing.assert_array_equal(bent(line, np.eye(3), 0.0), line)


def test_a_twist_turns_the_ends_against_each_other():
    ends = np.array([[-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    moved = twisted(ends, np.eye(3), 90.0)
    half = math.sqrt(0.5)
    np.testing.assert_allclose(moved[0], [-1.0, half, -half], atol=1e-12)
    np.testing.assert_allclose(moved[1], [1.0, half, half], atol=1e-12)
    lengths = np.linalg.norm(moved[:, 1:], axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_waves_never_turn_space_inside_out(seed):
    points = rod(60)
    rng = np.random.default_rng(seed)
    step = 1e-5
    shifts = np.concatenate([np.zeros((1, 3)), step * np.eye(3)])
    # All copies in one call: the waves refer to the mean and the size of what they move.
    moved = waved((points[None] + shifts[:, None]).reshape(-1, 3), 0.5, rng).reshape(4, -1, 3)
    jacobians = (moved[1:] - moved[0]).transpose(1, 2, 0) / step
    assert (np.linalg.det(jacobians) > 0.0).all()


def test_bumps_are_smooth_and_as_high_as_asked():
    points = rod(500)
    heights = bump_heights(points, np.random.default_rng(3), count=8, height=0.02)
    assert 0.005 < np.abs(heights).max() < 0.2
    near = np.linalg.norm(points[:, None] - points, axis=2)
    slopes = np.abs(heights[:, None] - heights) / np.maximum(near, 1e-9)
    assert slopes[near > 0].max() < 1.0


def test_drawn_warps_name_what_they_did_and_repeat():
    points = rod()
    names = set()
    for seed in range(30):
        moved, done = draw_warp(points, np.random.default_rng(seed))
        again, _ = draw_warp(points, np.random.default_rng(seed))
        assert moved.tobytes() == again.tobytes()
        assert np.isfinite(moved).all()
        assert (done == "") == bool(np.array_equal(moved, points))
        names |= set(done.split())
    assert names == {"stretch", "bend", "twist", "wave"}


def test_a_form_keeps_the_surface_in_one_piece_and_repeats():
    polar, around = np.meshgrid(np.linspace(0.1, 3.0, 30), np.arange(40) * math.tau / 40)
    points = np.stack(
        [np.sin(polar) * np.cos(around), np.cos(polar), np.sin(polar) * np.sin(around)], -1
    ).reshape(-1, 3)  # around, then polar
    faces = ConvexHull(points).simplices
    outwards = np.einsum(
        "fc,fc->f", np.cross(*(points[faces[:, k]] - points[faces[:, 0]] for k in (1, 2))),
        points[faces[:, 0]],
    ) > 0  # fmt: skip
    faces = np.where(outwards[:, None], faces, faces[:, ::-1])
    bumpy = 0
    for seed in range(12):
        formed = draw_form(points, faces, np.random.default_rng(seed), strength=0.6)
        again = draw_form(points, faces, np.random.default_rng(seed), strength=0.6)
        assert formed.tobytes() == again.tobytes()
        edges = np.linalg.norm(points[faces[:, 0]] - points[faces[:, 1]], axis=1)
        after = np.linalg.norm(formed[faces[:, 0]] - formed[faces[:, 1]], axis=1)
        assert (after / edges).max() < 4
        warped, _ = draw_warp(points, np.random.default_rng(seed), strength=0.6)
        bumpy += not np.array_equal(warped, formed)
        assert np.linalg.norm(formed - warped, axis=1).max() < 0.2
    assert 2 <= bumpy <= 10
