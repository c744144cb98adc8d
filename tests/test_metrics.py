from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltenet.errors import InputError
from ltenet.metrics import (
    TOLERANCES,
    accuracy,
    calibration_error,
    flipped,
    map_error,
    reliability,
)

TRUTH = np.zeros((4, 3))
PREDICTED = np.array([[0.0, 0, 0], [0.02, 0, 0], [0, 0.1, 0], [0, 0, 1]])


def test_known_answers() -> None:
    error = map_error(PREDICTED, TRUTH, 2.0)
    assert error.err == pytest.approx((0.02 + 0.1 + 1) / 4)
    assert error.err_percent == pytest.approx(100 * error.err / 2)
    assert error.err_dpc == pytest.approx(100 * (0.0004 + 0.01 + 1) / 4)
    assert map_error(PREDICTED, TRUTH, 2.0, divisor=3).err_dpc == pytest.approx(error.err_dpc / 3)
    at = dict(zip(TOLERANCES.round(3).tolist(), error.accuracy.tolist(), strict=True))
    assert (at[0.008], at[0.012], at[0.052], at[0.2]) == (0.25, 0.5, 0.75, 0.75)
    assert error.auc == pytest.approx(error.accuracy.mean())
    assert len(TOLERANCES) == 100


def test_a_distance_equal_to_the_tolerance_counts_unless_strict() -> None:
    distances = np.array([0.25, 0.5, 0.75])
    assert accuracy(distances, 1.0, [0.5]).tolist() == [pytest.approx(2 / 3)]
    assert accuracy(distances, 1.0, [0.5], strict=True).tolist() == [pytest.approx(1 / 3)]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0.1, 10))
def test_accuracy_is_the_counted_share_and_grows(values: list[float], diameter: float) -> None:
    distances = np.array(values)
    curve = accuracy(distances, diameter, TOLERANCES)
    expected = (distances[:, None] <= TOLERANCES * diameter).mean(axis=0)
    np.testing.assert_allclose(curve, expected)
    assert (np.diff(curve) >= 0).all()


def test_flips() -> None:
    truth = np.array([[1.0, 0, 0], [1, 0, 0], [0.01, 0, 0]])
    mirror = truth * (-1, 1, 1)
    predicted = np.array([[-0.9, 0, 0], [0.8, 0, 0], [-0.01, 0, 0]])
    # Mirrored; right; too close to the middle to tell.
    assert flipped(predicted, truth, mirror, 2.0).tolist() == [True, False, False]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="two of the same shape"):
        map_error(np.zeros((3, 3)), np.zeros((4, 3)), 1.0)
    with pytest.raises(InputError, match="positive length"):
        map_error(PREDICTED, TRUTH, 0.0)


def test_calibration_error_by_hand() -> None:
    # Two points promise 0.95 and both are right; of two that promise 0.25 one is: gaps 0.05, 0.25.
    counts = reliability([0.95, 0.95, 0.25, 0.25], [True, True, True, False])
    assert counts[0].tolist() == [0, 0, 2, 0, 0, 0, 0, 0, 0, 2]
    assert calibration_error(counts) == pytest.approx(0.15)
    assert calibration_error(reliability([0.0, 1.0], [False, True])) == 0
    assert calibration_error(reliability([0.0, 1.0], [True, False])) == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_reliability_adds_up(points: list[tuple[float, bool]]) -> None:
    promised, right = (np.array(column) for column in zip(*points, strict=True))
    whole = reliability(promised, right)
    parts = reliability(promised[::2], right[::2]) + reliability(promised[1::2], right[1::2])
    assert whole == pytest.approx(parts)
    assert whole.sum(axis=1) == pytest.approx([len(points), promised.sum(), right.sum()])
    assert 0 <= calibration_error(whole) <= 1


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(InputError, match="outside 0 to 1"):
        reliability([1.5], [True])
    with pytest.raises(InputError, match="the same shape"):
        reliability([0.5, 0.5], [True])
    with pytest.raises(InputError, match="no points"):
        calibration_error(np.zeros((3, 10)))
