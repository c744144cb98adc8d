"""Landmarks from several templates: a robust place and an error bar."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from ltenet.cli import main
from ltenet.collections.joining import geometric_median, geometric_medians, join_landmarks
from ltenet.errors import InputError
from ltenet.io import load, save
from ltenet.io.landmarks import Landmarks, read_landmarks, write_landmarks
from ltenet.shape import Shape
from tests.collections.conftest import person


@pytest.mark.parametrize("seed", range(6))
def test_the_geometric_median_minimises_the_distances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places, weights = rng.standard_normal((3 + seed, 3)), rng.uniform(0.1, 1, 3 + seed)

    def cost(place: np.ndarray) -> float:
        return float(weights @ np.linalg.norm(places - place, axis=1))

    found = geometric_median(places, weights)
    start = weights @ places / weights.sum()
    best = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13})
    assert cost(found) <= best.fun + 1e-8


def test_many_medians_are_those_of_each() -> None:
    rng = np.random.default_rng(4)
    places, weights = rng.normal(size=(5, 40, 3)), rng.uniform(0.1, 1, size=(5, 40))
    places[1, 3], places[2, 3], weights[:, 3] = places[0, 3], places[0, 3], 1.0  # three of five
    places[:, 7] = places[0, 7]  # all equal
    weights[2:, 11] = 0.0
    places[2:, 11] = np.nan  # silent maps
    found = geometric_medians(places, weights)
    for number in range(40):
        known = weights[:, number] > 0
        votes, shares = places[known, number], weights[known, number]

        def cost(x, votes=votes, shares=shares):
            return float((shares * np.linalg.norm(votes - x, axis=1)).sum())

        best = minimize(cost, votes.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-9})
        assert cost(found[number]) <= best.fun + 1e-5
    np.testing.assert_array_equal(found[3], places[0, 3])
    np.testing.assert_array_equal(found[7], places[0, 7])


def test_the_median_may_be_one_of_the_votes() -> None:
    corner = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(geometric_median(corner, np.array([5.0, 1, 1])), corner[0])
    np.testing.assert_allclose(geometric_median(corner[[0, 0]], np.ones(2)), corner[0])


def marks(places: list[list[float]], probabilities: list[float]) -> Landmarks:
    names = tuple(f"m{number}" for number in range(len(places)))
    return Landmarks(names, np.array(places), probabilities=np.array(probabilities))


def test_one_wrong_template_changes_little() -> None:
    shape = Shape(np.stack(np.meshgrid(*[np.linspace(0, 10, 21)] * 2, [0.0]), -1).reshape(-1, 3))
    nowhere = [np.nan] * 3
    votes = [
        marks([[1.0, 1, 0], [5, 5, 0], nowhere], [0.9, 0.9, np.nan]),
        marks([[1.0, 1, 0], [5, 5.5, 0], nowhere], [0.9, 0.9, np.nan]),
        marks([[9.0, 9, 0], nowhere, nowhere], [0.1, np.nan, np.nan]),
    ]
    joined = join_landmarks(votes, shape)
    np.testing.assert_allclose(joined.landmarks.points[0], [1, 1, 0])
    np.testing.assert_array_equal(joined.votes, [3, 2, 0])
    assert joined.spread[0] == pytest.approx(np.sqrt(0.1 * 128 / 1.9))
    assert np.isnan(joined.landmarks.points[2]).all()
    assert np.isnan(joined.spread[2])
    with pytest.raises(InputError, match="different names of landmarks"):
        join_landmarks([votes[0], Landmarks(("x",), np.zeros((1, 3)))], shape)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "tps", "mrk.json", "fcsv"])
def test_landmarks_of_two_templates_reach_the_others(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "shapes"
    folder.mkdir()
    for index in range(3):
        save(person(index), folder / f"p{index}.ply")
    chosen = [10, 150, 290]
    names = ("first", "second", "third")
    for index in (0, 1):
        points = person(index).points[chosen]
        write_landmarks(Landmarks(names, points), tmp_path / f"t{index}.csv")
    options = ["--model", "human", "--points", "300", "--orient", "none"]
    options += ["--landmark-format", suffix]
    templates = [str(folder / "p0.ply"), str(folder / "p1.ply")]
    files = [str(tmp_path / "t0.csv"), str(tmp_path / "t1.csv")]
    out = tmp_path / "out"
    arguments = ["batch", str(folder), "-o", str(out), "--to", *templates, "--landmarks", *files]
    assert main([*arguments, *options]) == 0
    found = read_landmarks(out / "landmarks" / f"p2.{suffix}")
    assert len(found) == 3
    truth = person(2).points[chosen]
    away = np.linalg.norm(found.points - truth, axis=1) / load(folder / "p2.ply").diameter
    assert np.median(away) < 0.1
    with (out / "landmarks.csv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    assert [row["landmark"] for row in table] == list(names)
    assert all(row["templates"] == "2" and float(row["spread"]) >= 0 for row in table)
