"""Landmarks survive every format, with their probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ltenet.errors import InputError
from ltenet.io.landmarks import SUFFIXES, Landmarks, read_landmarks, write_landmarks
from ltenet.shape import Shape

MARKS = Landmarks(
    ("nose", 'tail, "end"', "ear"),
    np.array([[0.1, 1, 2], [-3, 4e-7, 5], [7, 8, 9]]),
    probabilities=np.array([0.5, np.nan, 1.0]),
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_names_and_probabilities_survive(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_landmarks(MARKS, path)
    back = read_landmarks(path)
    assert back.names == MARKS.names
    np.testing.assert_array_equal(back.points, MARKS.points)
    assert back.probabilities is not None
    np.testing.assert_array_equal(back.probabilities, MARKS.probabilities)


def test_numbers_of_points_keep_their_probability(tmp_path: Path) -> None:
    shape = Shape(np.arange(12.0).reshape(4, 3))
    marks = Landmarks(
        ("a", "b"), shape.points[[2, 0]], None, np.array([2, 0]), (), np.array([0.5, np.nan])
    )
    write_landmarks(marks, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "name,index,probability\na,2,0.5\nb,0,\n"
    back = read_landmarks(tmp_path / "a.csv", shape)
    np.testing.assert_array_equal(back.points, marks.points)
    np.testing.assert_array_equal(back.probabilities, [0.5, np.nan])


@pytest.mark.parametrize("suffix", [".csv", ".tps", ".mrk.json"])
def test_a_landmark_without_a_place_stays_so(tmp_path: Path, suffix: str) -> None:
    lost = Landmarks(("a", "b"), np.array([[1.0, 2, 3], [np.nan] * 3]))
    write_landmarks(lost, tmp_path / f"a{suffix}")
    back = read_landmarks(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(back.points, lost.points)
    assert back.probabilities is None


def test_remarks_stay_beside_the_probability(tmp_path: Path) -> None:
    marks = Landmarks(("a",), np.ones((1, 3)), "RAS", None, ("left; upper",), np.array([0.25]))
    write_landmarks(marks, tmp_path / "a.mrk.json")
    assert "left; upper; probability=0.25" in (tmp_path / "a.mrk.json").read_text()
    back = read_landmarks(tmp_path / "a.mrk.json")
    assert back.descriptions == ("left; upper",)
    assert back.probabilities is not None
    assert back.probabilities.tolist() == [0.25]


def test_tps_as_other_programs_write_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "LM3=2\n1 2 3\nNA NA NA\nIMAGE=skull.jpg\nID=7\nSCALE=0.5\nLM3=1\n9 9 9\n"
    (tmp_path / "a.tps").write_text(text)
    marks = read_landmarks(tmp_path / "a.tps")
    assert marks.names == ("1", "2")
    np.testing.assert_array_equal(marks.points, [[0.5, 1, 1.5], [np.nan] * 3])
    assert "2 specimens; the first one is used" in caplog.text


@pytest.mark.parametrize("values", [[0.5], [0.5, 2.0, 0.1], [-0.1, 0.0, 0.0]])
def test_probabilities_are_checked(values: list[float]) -> None:
    with pytest.raises(InputError, match="expected one from 0 to 1 for each"):
        Landmarks(MARKS.names, MARKS.points, probabilities=np.array(values))
