"""Nearest point, ICP, CPD and transport: answers that are known."""

from __future__ import annotations

import numpy as np
import pytest
from known_shapes import shuffled, turned

from ltenet.evaluation.peers.coordinates import CPD, ICP, NearestPoint, Transport
from ltenet.shape import Shape


def bent(shape: Shape) -> Shape:
    """A smooth bend: an S from head to feet."""
    points = shape.points.copy()
    height = (points[:, 1] - points[:, 1].min()) / np.ptp(points[:, 1])
    points[:, 0] += 0.12 * np.sin(2 * np.pi * height)
    return Shape(points, name="bent")


def test_nearest_point_finds_a_shifted_copy(body: Shape) -> None:
    target, place = shuffled(Shape(body.points + np.array([5.0, -2.0, 1.0])))
    np.testing.assert_array_equal(NearestPoint()(body, target).indices, place)


def test_icp_finds_a_rigidly_moved_copy(body: Shape) -> None:
    target, place = shuffled(turned(body, 18))
    found = ICP()(body, target)
    np.testing.assert_array_equal(found.indices, place)
    np.testing.assert_allclose(found.positions(), target.points[place], atol=1e-9)
    # The turn is too much for the nearest point alone.
    assert (NearestPoint()(body, target).indices == place).mean() < 0.8


def test_icp_stops_after_its_iterations(body: Shape) -> None:
    target, place = shuffled(turned(body, 18))
    assert (ICP(iterations=1)(body, target).indices == place).mean() < 1


def test_cpd_finds_a_bent_copy(body: Shape) -> None:
    pytest.importorskip("pycpd", reason="the extra baselines is not installed")
    target, place = shuffled(bent(body))
    assert (CPD(iterations=40)(body, target).indices == place).mean() > 0.97
    assert (ICP()(body, target).indices == place).mean() < 0.9


def test_cpd_carries_the_points_that_it_left_out(body: Shape) -> None:
    pytest.importorskip("pycpd", reason="the extra baselines is not installed")
    target, place = shuffled(bent(body))
    found = CPD(iterations=40, points=120)(body, target)
    error = np.linalg.norm(target.points[found.indices] - target.points[place], axis=1)
    assert error.mean() < 0.03


def test_transport_on_a_line_keeps_the_order() -> None:
    pytest.importorskip("ot", reason="the extra baselines is not installed")
    rng = np.random.default_rng(0)
    source, target = (rng.random((50, 3)) * (1, 0, 0) for _ in range(2))
    found = Transport()(Shape(source), Shape(target))
    # In one dimension the cheapest transport is the monotone one.
    expected = np.empty(50, int)
    expected[np.argsort(source[:, 0])] = np.argsort(target[:, 0])
    np.testing.assert_array_equal(found.indices, expected)


def test_transport_of_many_points_follows_a_part_of_them(body: Shape) -> None:
    pytest.importorskip("ot", reason="the extra baselines is not installed")
    target, place = shuffled(bent(body))
    found = Transport(points=100)(body, target)
    assert len(found) == len(body)
    error = np.linalg.norm(target.points[found.indices] - target.points[place], axis=1)
    assert error.mean() < 0.1
