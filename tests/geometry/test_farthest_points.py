from __future__ import annotations

import numpy as np
import pytest

from ltenet.errors import InputError
from ltenet.geometry.farthest_points import farthest_point_sample


def test_farthest_points_are_greedy_and_nested() -> None:
    points = np.random.default_rng(0).normal(size=(80, 3))
    chosen = farthest_point_sample(points, 12, start=3)
    assert chosen[0] == 3
    for step in range(1, 12):
        gaps = np.linalg.norm(points[:, None] - points[chosen[:step]], axis=-1).min(axis=1)
        assert np.isclose(gaps[chosen[step]], gaps.max())
    assert np.array_equal(farthest_point_sample(points, 5, start=3), chosen[:5])


def test_farthest_points_of_duplicates_are_distinct() -> None:
    points = np.zeros((6, 3))
    assert sorted(farthest_point_sample(points, 6)) == list(range(6))


def test_farthest_points_refuse_too_many_and_a_wrong_start() -> None:
    with pytest.raises(InputError, match="4 farthest points"):
        farthest_point_sample(np.zeros((3, 3)), 4)
    with pytest.raises(InputError, match="got 9 as the first"):
        farthest_point_sample(np.zeros((3, 3)), 2, start=9)
