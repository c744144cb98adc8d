"""What a map is worth: verdict and doubts on maps whose figures are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ltenet.correspondence import Correspondence
from ltenet.matching.summary import summarize


def a_map(probability: float | None, unmatched: int = 0, **details: Any) -> Correspondence:
    indices = np.arange(10)
    indices[:unmatched] = -1
    scores = None if probability is None else np.where(indices < 0, 0.0, probability)
    return Correspondence(indices, 20, scores=scores, details=details)


@pytest.mark.parametrize(
    ("correspondence", "verdict"),
    [
        (a_map(0.9), "reliable"),
        (a_map(0.3, pair_probability=0.95), "reliable"),
        (a_map(0.9, pair_probability=0.1), "unrelated"),
        (a_map(0.9, unmatched=6), "check"),
        (a_map(0.6), "check"),
        (a_map(0.2), "unrelated"),
        (a_map(None), "not rated"),
        (a_map(0.9, unmatched=10), "unrelated"),
    ],
)
def test_verdicts(correspondence: Correspondence, verdict: str) -> None:
    assert summarize(correspondence).verdict == verdict


def test_figures_are_of_the_matched_points() -> None:
    summary = summarize(a_map(0.9, unmatched=2, model="human"))
    assert summary.mean_probability == pytest.approx(0.9)
    assert (summary.matched, summary.coverage, summary.model) == (0.8, 0.4, "human")
    assert summary.doubts == ()
    assert summary.headline == (
        "reliable, mean probability 0.90, weights human, matched 80.0%, coverage 40.0%; no doubts"
    )


def test_the_probability_of_the_whole_map_stands_beside_the_verdict() -> None:
    summary = summarize(a_map(0.6, pair_probability=0.12))
    assert summary.probability == 0.12
    assert summary.headline.startswith("unrelated (0.12), mean probability 0.60")
    assert "the shapes may be unrelated" in summary.doubts[0]


def test_doubts() -> None:
    reverses = "the map reverses orientation"
    for name in ("orientation_reversed", "mirror_suspect"):  # as of version 0.1
        details = {name: True, "source_certainty": 0.2, "target_certainty": 0.9}
        assert summarize(a_map(0.9, **details)).doubts == (reverses,)
    doubts = summarize(a_map(0.4, unmatched=7, calibrated=False, **details)).doubts
    assert [doubt.split()[0] for doubt in doubts] == ["the", "the", "probabilities", "few"]
    assert doubts[0] == reverses
    assert "source" in doubts[1]


def test_an_undecided_direction_is_a_doubt() -> None:
    assert summarize(a_map(0.9, direction_probability=0.95)).doubts == ()
    doubts = summarize(a_map(0.9, direction_probability=0.6)).doubts
    assert doubts == ("front and back may be exchanged",)


def test_symmetry_is_told_and_replaces_the_older_doubt() -> None:
    told = summarize(a_map(0.9, direction_probability=0.6, symmetry="ambiguous"))
    assert told.symmetry == "ambiguous"
    assert told.doubts == ("symmetry ambiguous: sides or ends cannot be told apart",)
    # Several ways, each improbable, are no rival.
    told = summarize(a_map(0.9, direction_probability=0.85, symmetry="clear"))
    assert (told.symmetry, told.doubts) == ("clear", ())
    assert summarize(a_map(0.9, symmetry=None)).symmetry is None
    assert summarize(a_map(0.9, symmetry="nonsense")).symmetry is None


def test_notes_tell_of_outliers_and_of_meshes_inside_out() -> None:
    told = summarize(a_map(0.9, outliers=[0, 7], inside_out=[True, False]))
    assert told.notes == ("7 outliers of the target left out", "the source is turned inside out")
    assert told.headline.endswith("; ".join(told.notes))
    assert summarize(a_map(0.9, outliers=[0, 0], inside_out=[False, False])).notes == ()


def test_a_mirror_explains_faces_that_look_inwards() -> None:
    assert summarize(a_map(0.9, inside_out=[True, False], mirror=True)).notes == ()
    told = summarize(a_map(0.9, inside_out=[True, True], mirror=True))
    assert told.notes == ("the target is turned inside out",)
