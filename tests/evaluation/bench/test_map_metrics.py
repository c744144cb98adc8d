"""Coverage and cycle error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltenet.errors import InputError
from ltenet.metrics import coverage, cycle_error


def test_coverage_counts_target_points_once_and_ignores_the_unmatched() -> None:
    assert coverage([0, 0, 2, -1], 4) == 0.5
    assert coverage([-1, -1], 3) == 0.0
    with pytest.raises(InputError, match="0 points, expected at least 1"):
        coverage([], 0)


def test_cycle_error_of_known_ways() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [4, 0, 0]])
    forth, back = np.array([1, 0, 2, 2]), np.array([1, 0, 2])
    # 0 -> 1 -> 0, 1 -> 0 -> 1, 2 -> 2 -> 2, 3 -> 2 -> 2: one point of four is off by 2 of 4.
    assert cycle_error(points, forth, back, 4.0) == pytest.approx(100 * (2 / 4) / 4)


@given(st.permutations(range(12)))
def test_a_bijection_and_its_inverse_have_no_cycle_error(order: list[int]) -> None:
    points = np.random.default_rng(0).standard_normal((12, 3))
    assert cycle_error(points, order, np.argsort(order), 1.0) == 0.0


@pytest.mark.parametrize(("forth", "back"), [([0, -1], [0]), ([0, 1], [0]), ([0, 0], [2])])
def test_cycles_need_partners_for_all(forth: list[int], back: list[int]) -> None:
    with pytest.raises(InputError, match=r"outside .*, expected a partner for every point; try"):
        cycle_error(np.zeros((2, 3)), forth, back, 1.0)


def test_cycles_need_a_diameter() -> None:
    with pytest.raises(InputError, match="positive length"):
        cycle_error(np.zeros((1, 3)), [0], [0], 0.0)
