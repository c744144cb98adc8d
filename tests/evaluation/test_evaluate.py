"""`ltenet.evaluate` on maps whose figures are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ltenet
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.shape import Shape

#: Eleven points on a line, 0.1 apart: the diameter is 1.
LINE = Shape(np.arange(11)[:, None] * [0.1, 0.0, 0.0], name="line")
TRUTH = np.arange(11)


def test_the_truth_itself() -> None:
    result = ltenet.evaluate(Correspondence(TRUTH, 11, target=LINE), TRUTH)
    assert result.accuracy(0.002) == 1.0
    assert (result.point.err, result.matched, result.coverage) == (0.0, 1.0, 1.0)
    assert result.diameter == pytest.approx(1.0)


def test_repr_is_one_line() -> None:
    result = ltenet.evaluate(Correspondence(np.maximum(TRUTH - 1, 0), 11), TRUTH, target=LINE)
    assert repr(result) == (
        "Evaluation(11 points: 9.1% within 1 %, 9.1% within 5 %, mean error 9.09 % of the "
        "diameter, 100.0% matched, coverage 90.9%)"
    )


def test_one_step_aside() -> None:
    aside = Correspondence(np.maximum(TRUTH - 1, 0), 11)
    result = ltenet.evaluate(aside, TRUTH, target=LINE)
    assert result.accuracy(0.05) == pytest.approx(1 / 11)
    assert result.accuracy(0.102) == 1.0
    assert result.point.err == pytest.approx(0.1 * 10 / 11)
    assert result.point.err_percent == pytest.approx(10 * 10 / 11)
    assert result.point.err_dpc == pytest.approx(10 / 11)
    assert result.coverage == pytest.approx(10 / 11)
    figures = result.as_dict()
    assert figures["point"]["acc"]["0.05"] == pytest.approx(100 / 11)
    assert list(figures["point"]["acc"])[-1] == "0.2"


def test_points_without_partner_are_wrong_and_have_no_error() -> None:
    indices = np.where(TRUTH < 5, -1, TRUTH)
    result = ltenet.evaluate(Correspondence(indices, 11), TRUTH, target=LINE.points)
    assert result.matched == pytest.approx(6 / 11)
    assert result.accuracy(0.01) == pytest.approx(6 / 11)
    assert result.point.err == 0.0


def test_points_without_truth_do_not_count() -> None:
    wrong_at_the_end = np.where(TRUTH == 10, 0, TRUTH)
    partly = np.where(TRUTH == 10, -1, TRUTH)
    result = ltenet.evaluate(Correspondence(wrong_at_the_end, 11), partly, target=LINE)
    assert (result.known, result.accuracy(0.01)) == (10, 1.0)


def test_soft_partners_lie_between_points() -> None:
    neighbors = np.stack([TRUTH, np.minimum(TRUTH + 1, 10)], axis=1)
    soft = Correspondence(TRUTH, 11, neighbors=neighbors, weights=np.full((11, 2), 0.5))
    positions = LINE.points + np.array([0.05, 0.0, 0.0])
    positions[10] = LINE.points[10]
    result = ltenet.evaluate(soft, positions, target=LINE)
    assert result.continuous.err == pytest.approx(0.0, abs=1e-12)
    assert result.point.err == pytest.approx(0.05 * 10 / 11)


def test_truth_from_a_file_and_from_a_map(tmp_path: Path) -> None:
    given = Correspondence(TRUTH[::-1].copy(), 11)
    (tmp_path / "truth.map").write_text("\n".join(str(i + 1) for i in TRUTH[::-1]) + "\n")
    from_file = ltenet.evaluate(given, tmp_path / "truth.map", target=LINE)
    from_map = ltenet.evaluate(given, given, target=LINE)
    assert from_file.point.err == from_map.point.err == 0.0


@pytest.mark.parametrize(
    ("truth", "target", "message"),
    [
        (TRUTH, None, "a map without its target"),
        (TRUTH[:5], LINE, "11 entries from 0 to 10"),
        (TRUTH + 1, LINE, "try counting from 0"),
        (TRUTH + 0.5, LINE, r"\(11,\) whole numbers or \(11, 3\) positions"),
        (np.full(11, -1), LINE, "got 0 points with a known truth"),
    ],
)
def test_mistakes(truth: np.ndarray, target: Shape | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ltenet.evaluate(Correspondence(TRUTH, 11), truth, target=target)


def test_a_tolerance_that_was_not_measured() -> None:
    result = ltenet.evaluate(Correspondence(TRUTH, 11), TRUTH, target=LINE)
    with pytest.raises(InputError, match=r"a multiple of 0\.002"):
        result.accuracy(0.003)
