"""Benchmarks of parts: overlap, calibration and failures, on maps that are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ltenet.correspondence import Correspondence
from ltenet.data.pairs import BenchmarkPair
from ltenet.data.partial_pairs import partial_pair
from ltenet.errors import UsageError
from ltenet.evaluation.bench.benchmarks import GeneratedBenchmark
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.overlap import score_overlap
from ltenet.evaluation.bench.predictions import PredictionCache
from ltenet.evaluation.bench.results import summarize, table_rows
from ltenet.evaluation.bench.run import run_bench
from ltenet.evaluation.bench.scoring import score_pair
from ltenet.shape import Shape


def line(missing: int) -> BenchmarkPair:
    """100 points of a line onto themselves; the partners of the last ones are missing."""
    points = np.stack([np.arange(100.0), np.zeros(100), np.zeros(100)], axis=1)
    gone = np.arange(100) >= 100 - missing
    return BenchmarkPair(
        source=points,
        target=points[~gone],
        truth=np.where(gone[:, None], np.nan, points),
        partner=np.where(gone, -1, np.arange(100)),
        source_vertices=np.arange(100),
        target_vertices=np.arange(100 - missing),
        source_name="a",
        target_name="b",
        category="line",
        diameter=99.0,
        missing=gone,
    )


def test_a_perfect_map_has_the_whole_overlap():
    pair = line(40)
    scores = score_overlap(pair, ~pair.missing, np.nan_to_num(pair.truth))
    assert scores == (1.0, 1.0)
    assert scores.lower == 1.0


def test_the_overlap_of_a_map_that_matches_everything():
    pair = line(40)
    places = np.minimum(pair.source, 59)
    source, target = score_overlap(pair, np.ones(100, dtype=bool), places)
    assert source == pytest.approx(0.6)  # 60 of 100
    assert target == 1.0


def test_the_overlap_of_a_map_to_the_wrong_place():
    whole = line(0)
    matched = np.arange(100) < 50
    places = np.where(matched[:, None], whole.source + np.array([50, 0, 0]), 0.0)
    truth = np.where(matched[:, None], whole.truth, np.nan)
    part = BenchmarkPair(**{**vars(whole), "truth": truth, "missing": ~matched})
    source, target = score_overlap(part, matched, places)
    assert source == 1.0
    # True: 0 to 52, with a reach of 2.97; predicted: 48 to 99.
    assert target == pytest.approx(4 / 100, abs=0.011)
    assert score_overlap(part, np.zeros(100, dtype=bool), places) == (0.0, 0.0)


def test_whole_shapes_have_no_overlap_to_predict():
    pair = BenchmarkPair(**{**vars(line(0)), "missing": None})
    assert score_overlap(pair, np.ones(100, dtype=bool), pair.truth) is None


def test_missing_partners_count_as_wrong_in_the_calibration():
    pair = line(40)
    sure = Correspondence(
        indices=np.minimum(np.arange(100), 59), target_size=60, scores=np.full(100, 0.95)
    )
    scored = score_pair(
        GeneratedBenchmark("generated-human"), pair, sure, None, seed=0, pair=0, seconds=0.0
    )
    assert scored.reliability[:, 9].tolist() == [100, pytest.approx(95), 60]
    assert scored.point.err_percent == 0  # over the points that have a partner


class Left:
    """Nearest points, without a partner for points beyond x = 0."""

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        indices = np.linalg.norm(source.points[:, None] - target.points, axis=2).argmin(axis=1)
        neighbors, weights = indices[:, None], np.ones((len(source), 1))
        indices = np.where(source.points[:, 0] > 0, -1, indices)
        return Correspondence(
            indices=indices, target_size=len(target), neighbors=neighbors, weights=weights
        )


def test_the_cache_remembers_which_points_were_left_unmatched(tmp_path: Path):
    rng = np.random.default_rng(0)
    source, target = Shape(rng.normal(size=(60, 3))), Shape(rng.normal(size=(70, 3)))
    for _ in range(2):
        found = PredictionCache(tmp_path).get(Left, {"method": "left"}, source, target)
        assert np.array_equal(found.matched, source.points[:, 0] <= 0)
        assert (found.map.indices >= 0).all()


class WithOutlier(Left):
    """The same, with a first point that has neither a partner nor neighbours."""

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        found = super().__call__(source, target)
        indices, weights = found.indices.copy(), found.weights.copy()
        indices[0], weights[0] = -1, 0.0
        return Correspondence(
            indices=indices, target_size=len(target), neighbors=found.neighbors, weights=weights
        )


def test_an_outlier_is_scored_like_the_point_beside_it(tmp_path: Path):
    rng = np.random.default_rng(0)
    source, target = Shape(rng.normal(size=(60, 3))), Shape(rng.normal(size=(70, 3)))
    found = PredictionCache(tmp_path).get(WithOutlier, {"method": "odd"}, source, target)
    beside = 1 + np.linalg.norm(source.points[1:] - source.points[0], axis=1).argmin()
    assert not found.matched[0]
    assert found.map.indices[0] == found.map.indices[beside]
    assert found.map.weights.sum(axis=1).tolist() == [1.0] * 60


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
def test_a_benchmark_of_parts(tmp_path: Path, both: bool):
    config = BenchConfig(
        benchmark="generated-human",
        method="nearest",
        sampling="independent",
        partial="cut",
        both=both,
        pairs=2,
        seeds=(0,),
        points=300,
        cycle=False,
    )
    run = run_bench(config, cache=tmp_path)
    result = json.loads(json.dumps(summarize(run)))
    assert (result["partial"], result["both"]) == ("cut", both)
    pair = run.scores[0].pair
    drawn = partial_pair(
        GeneratedBenchmark("generated-human"), pair, kind="cut", both=both, points=300
    )
    matched = np.ones(len(drawn.source), dtype=bool)
    known = ~drawn.missing
    assert known.all() != both
    if both:  # a method that matches everything predicts too much
        assert run.scores[0].overlap.source == pytest.approx(known.mean())
    else:
        assert run.scores[0].overlap.source == 1.0 == matched.mean()
    for key in ("err_percent", "overlap_iou", "failed_percent"):
        assert set(result[key]) == {"mean", "std"}
    assert result["geodesic"] is None
    mean = np.mean([score.overlap.lower for score in run.scores])
    assert result["overlap_iou"]["mean"] == pytest.approx(mean)
    assert table_rows(run)[0]["overlap_iou_target"] == run.scores[0].overlap.target


def test_what_parts_cannot_be_measured_with_is_refused():
    usual = {"benchmark": "generated", "sampling": "independent", "cycle": False}
    with pytest.raises(UsageError, match="without the kind of part, expected one of cut"):
        BenchConfig(**usual, both=True)
    with pytest.raises(UsageError, match="got parts of kind 'half', expected one of"):
        BenchConfig(**usual, partial="half")
    with pytest.raises(UsageError, match="got parts with shared samples by vertex, expected"):
        BenchConfig(**{**usual, "sampling": "shared"}, partial="cut")
    with pytest.raises(UsageError, match="and the cycle error, expected"):
        BenchConfig(**{**usual, "cycle": True}, partial="cut")
    with pytest.raises(UsageError, match="got faust_r and parts of its shapes, expected"):
        BenchConfig(**{**usual, "benchmark": "faust_r", "sampling": "full"}, partial="cut")
