"""How likely a match is right."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from ltenet.errors import InputError
from ltenet.matching.confidence import COLUMNS, FILE, Calibration, evidence
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.pair import Pair
from tests.creature import pair_of


def test_probabilities_follow_the_knots():
    weights = (1.0, *(0.0,) * len(COLUMNS))
    calibration = Calibration(weights, 0.0, (0.0, 0.5, 1.0), (0.1, 0.8, 0.9))
    columns = np.zeros((3, len(COLUMNS)))
    columns[:, 0] = [-100.0, 0.0, 100.0]
    np.testing.assert_allclose(calibration.estimate(columns, 5.0), [0.1, 0.8, 0.9], atol=1e-9)


def test_what_speaks_for_the_pair_speaks_for_its_points():
    calibration = Calibration((1.0, *(0.0,) * (len(COLUMNS) - 1), 0.5), -1.0)
    columns = np.zeros((2, len(COLUMNS)))
    columns[:, 0] = [0.0, 2.0]
    expected = 1 / (1 + np.exp(-np.array([-1.0 + 0.5 * 3, -1.0 + 2.0 + 0.5 * 3])))
    np.testing.assert_allclose(calibration.estimate(columns, 3.0), expected)
    np.testing.assert_allclose(
        calibration.estimate(columns, np.array([3.0, -3.0])), [expected[0], 1 / (1 + np.exp(0.5))]
    )


def test_evidence_tells_a_perfect_map_from_a_random_one():
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(300, 3, generator=generator)
    features = torch.randn(300, 16, generator=generator)
    pair = pair_of(points, points, features, features)
    perfect = refine_pair(pair, "none")
    shuffled = torch.randperm(300, generator=generator)
    random = perfect._replace(indices=shuffled, positions=points[shuffled])
    good, bad = (
        dict(zip(COLUMNS, evidence(pair, m).mean(0), strict=True)) for m in (perfect, random)
    )
    assert good["likeness"] == pytest.approx(1.0, abs=1e-3)
    assert good["stretch"] == pytest.approx(0.0, abs=0.05)
    assert good["round_trip"] < bad["round_trip"]
    assert good["stretch"] < bad["stretch"]
    assert bad["likeness"] < 0.3


def test_the_calibration_is_written_and_read(tmp_path):
    calibration = Calibration((1, 2, 3, 4, 5, 6, 7, 8), -1.5, (0.1, 0.9), (0.0, 0.75))
    calibration.save_pretrained(tmp_path)
    assert Calibration.from_pretrained(tmp_path) == calibration


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 0, 0)),  # before pairs were judged
        ((1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 4, 5, 6, 0, 7)),  # before networks told who has a partner
    ],
)
def test_earlier_files_leave_out_what_they_did_not_know(tmp_path, written, read):
    fields = {"weights": written, "bias": 0, "values": [0, 1], "probabilities": [0, 1]}
    (tmp_path / FILE).write_text(json.dumps(fields))
    assert Calibration.from_pretrained(tmp_path).weights == read


def test_the_odds_of_having_a_partner_are_evidence():
    points = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    features = torch.randn(200, 16, generator=torch.Generator().manual_seed(1))
    plain = pair_of(points, points, features, features)
    told = Pair(plain.source, plain.target, odds=(torch.full((200,), 3.0), torch.zeros(200)))
    refined = refine_pair(plain, "none")
    column = COLUMNS.index("odds")
    untold = evidence(plain, refined)[:, column]
    np.testing.assert_allclose(untold, untold[0])
    assert untold[0] > 3.0  # nothing speaks against a partner
    np.testing.assert_allclose(evidence(told, refined)[:, column], 3.0)
    np.testing.assert_allclose(evidence(told.reversed(), refined)[:, column], 0.0)


def test_without_a_file_refinement_decides(tmp_path):
    columns = np.zeros((2, len(COLUMNS)))
    columns[1, 0] = 1.0
    low, high = Calibration.from_pretrained(tmp_path).estimate(columns, 0.0)
    assert low < 0.2 < 0.8 < high


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        json.dumps({"weights": [0, 1]}),
        json.dumps({"weights": [0] * 6, "bias": 0, "values": [1, 0], "probabilities": [0, 1]}),
    ],
)
def test_damaged_files_are_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match="calibrat"):
        Calibration.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("values", "shares"), [((0.0,), (0.0,)), ((0, 1), (0.5, 0.2)), ((0, 1), (0, 1.5))]
)
def test_curves_that_do_not_rise_are_refused(values, shares):
    with pytest.raises(InputError, match="rising"):
        Calibration(values=values, probabilities=shares)
