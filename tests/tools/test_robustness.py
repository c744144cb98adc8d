"""Damages of the benchmark do what they say, and truth follows them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.damages import DAMAGES, POINTS
from benchmarks.robustness import bodies, damaged, main, score
from ltenet.correspondence import Correspondence


@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize("name", list(DAMAGES))
def test_the_truth_follows_a_damage(name: str, pair: int) -> None:
    _, whole, truth = bodies(pair)
    rng = np.random.default_rng(0)
    source, target = damaged(DAMAGES[name], whole, rng)
    own = source.origin >= 0
    assert own.sum() >= 0.5 * POINTS
    assert (target.origin[target.origin >= 0] < len(truth)).all()
    # The true partner where the target has it; else the target point nearest to it.
    places = truth * target.factors
    known = target.origin >= 0
    undamaged = np.where(known[:, None], places[target.origin], np.inf)
    indices = np.full(len(source.points), -1)
    for row in np.flatnonzero(own)[::50]:
        indices[row] = np.abs(undamaged - places[source.origin[row]]).sum(axis=1).argmin()
    moved = np.where(known[:, None], undamaged, target.points)
    chosen = np.flatnonzero(indices >= 0)
    distances = np.linalg.norm(moved[indices[chosen]] - places[source.origin[chosen]], axis=1)
    assert np.mean(distances <= 0.05 * np.linalg.norm(np.ptp(places, axis=0))) > 0.97


def test_scores_have_a_known_answer() -> None:
    _, (source, target), truth = bodies(0)
    count = len(truth)
    indices = np.arange(count)
    indices[: count // 4] = -1
    found = Correspondence(indices, count, scores=np.full(count, 0.5)).attached(
        *(_shape(body) for body in (source, target))
    )
    accuracy, error, stated = score(found, source, target, truth)
    assert accuracy == pytest.approx(100 * (1 - (count // 4) / count))
    assert error == pytest.approx(0)
    assert stated == pytest.approx(50)


def _shape(body: object) -> object:
    from ltenet.shape import Shape

    return Shape(body.points, body.faces)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_benchmark_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--pairs", "1", "--cases", "ten far strays", "--json"])
    told = json.loads(capsys.readouterr().out)
    ours, theirs = (told["cases"]["ten far strays"][name] for name in ("ltenet", "cpd"))
    assert ours["accuracy"] > 80 > theirs["accuracy"]
    assert theirs["stated"] is None
