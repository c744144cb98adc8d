"""Whole benchmarks on shapes whose answer is known."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import KDTree

from ltenet import io
from ltenet.correspondence import Correspondence
from ltenet.data.pairs import benchmark_pair
from ltenet.errors import InputError, MissingError, PartialFailure, UsageError
from ltenet.evaluation.bench.benchmarks import (
    GeneratedBenchmark,
    open_benchmark,
    remark,
    suited_weights,
)
from ltenet.evaluation.bench.comparison import compare, markdown_table
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.pair_statistics import worst_tenth
from ltenet.evaluation.bench.plots import plot_curves
from ltenet.evaluation.bench.report import write_comparison, write_report
from ltenet.evaluation.bench.results import TOLERANCE_KEYS, curves, summarize, table_rows
from ltenet.evaluation.bench.run import BenchRun, chosen_pairs, run_bench
from ltenet.evaluation.bench.scoring import score_pair
from ltenet.metrics import TOLERANCES, flipped
from ltenet.shape import Shape


@pytest.fixture
def folder(lump: Shape, tmp_path: Path) -> Path:
    """Three shapes of one numbering: one, the same shifted, and the same upside down."""
    place = tmp_path / "lumps"
    place.mkdir()
    shift = np.array([5.0, 0, 0])
    for name, points in (
        ("a", lump.points),
        ("b", lump.points + shift),
        ("c", lump.points * (1, -1, -1)),
    ):
        io.save(Shape(points, faces=lump.faces), place / f"{name}.ply")
    files = [{"file": f"{name}.ply", "category": "lump"} for name in "abc"]
    content = {"name": "lumps", "numbering": "shared", "shapes": files}
    (place / "manifest.json").write_text(json.dumps(content))
    return place


def bench(folder: Path | str, cache: Path, **options: Any) -> BenchRun:
    workers = options.pop("workers", 0)
    progress = options.pop("progress", lambda items, total: iter(items))
    defaults = {"method": "nearest", "points": 200, "seeds": (0, 1)}
    config = BenchConfig(benchmark=str(folder), **{**defaults, **options})
    return run_bench(config, cache=cache, workers=workers, progress=progress)


def test_a_shifted_copy_is_right_and_a_turned_one_is_not(folder: Path, tmp_path: Path) -> None:
    run = bench(folder, tmp_path / "cache")
    rows = {(score.source, score.target): score for score in run.scores if score.seed == 0}
    assert len(rows) == 6
    right, wrong = rows["a", "b"], rows["a", "c"]
    assert right.point.accuracy[0] == 1
    # Files hold single precision.
    assert right.point.err == pytest.approx(0, abs=1e-6)
    assert (right.coverage, right.cycle) == (100, pytest.approx(0, abs=1e-6))
    assert wrong.point.err_percent > 10
    result = summarize(run)
    expected = np.mean([score.point.err_percent for score in run.scores])
    assert result["err_percent"]["mean"] == pytest.approx(expected)
    by_seed = [np.mean([s.point.err for s in run.scores if s.seed == seed]) for seed in (0, 1)]
    assert result["err"]["std"] == pytest.approx(np.std(by_seed))
    assert result["err"]["std"] > 0
    assert result["flips"] is None
    assert result["calibration_error"] is None
    assert result["model"] is None
    # Two of the six pairs are right; with so few the worst tenth is the worst one.
    by_pair = [np.array([s.point.err_percent for s in run.scores if s.seed == k]) for k in (0, 1)]
    median = np.mean([np.median(own) for own in by_pair])
    assert result["err_percent_pairs"]["median"] == pytest.approx(median)
    worst = np.mean([own.max() for own in by_pair])
    assert result["err_percent_pairs"]["worst_tenth"] == pytest.approx(worst)
    assert result["failed_percent"] == {"mean": pytest.approx(100 * 4 / 6), "std": 0}


def test_the_worst_tenth() -> None:
    values = np.random.default_rng(0).permutation(25).astype(float)
    assert worst_tenth(values) == np.mean([24, 23, 22])
    assert worst_tenth(np.array([3.0])) == 3


def test_the_result_has_what_was_promised(folder: Path, tmp_path: Path) -> None:
    result = json.loads(json.dumps(summarize(bench(folder, tmp_path / "cache", pairs=2))))
    assert result["remark"] == "2 of the 6 pairs"
    head = ("benchmark", "model", "method", "orient", "refine", "pairs", "seeds")
    assert tuple(result)[:7] == head
    assert (result["method"], result["pairs"], result["seeds"]) == ("nearest", 2, [0, 1])
    assert list(result["acc"]) == list(TOLERANCE_KEYS)
    assert (TOLERANCE_KEYS[0], TOLERANCE_KEYS[4], TOLERANCE_KEYS[-1]) == ("0.002", "0.01", "0.2")
    assert [float(key) for key in TOLERANCE_KEYS] == pytest.approx(TOLERANCES)
    figures = ("err", "err_percent", "err_dpc", "auc", "coverage", "cycle", "seconds_per_pair")
    for name in figures:
        assert set(result[name]) == {"mean", "std"}
    assert set(result["acc"]["0.01"]) == {"mean", "std"}
    means = [value["mean"] for value in result["acc"].values()]
    assert result["auc"]["mean"] == pytest.approx(np.mean(means))
    assert "oracle" not in result


def test_independent_samples_have_an_oracle(folder: Path, tmp_path: Path) -> None:
    run = bench(folder, tmp_path / "cache", sampling="independent", pairs=1, seeds=(3,))
    result = summarize(run)
    pair = run.scores[0].pair
    shapes = open_benchmark(str(folder))
    drawn = benchmark_pair(shapes, pair, sampling="independent", points=200, seed=3)
    nearest = KDTree(drawn.target).query(drawn.truth)[0]
    assert result["oracle"]["err"]["mean"] == pytest.approx(nearest.mean())
    assert result["oracle"]["err"]["mean"] <= result["point"]["err"]["mean"]
    assert result["scored"] == "continuous"
    assert result["err"] == result["continuous"]["err"]
    assert result["err"] != result["point"]["err"]


def test_whole_meshes_are_scored_at_every_vertex(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("potpourri3d", reason="the extra spectral is not installed")
    run = bench(folder, tmp_path / "cache", sampling="full", geodesic=20, seeds=(0,))
    scores = {(score.source, score.target): score for score in run.scores}
    assert scores["a", "b"].geodesic == 0
    assert scores["a", "c"].geodesic > 10
    assert scores["a", "b"].point.accuracy[0] == 1
    assert summarize(run)["points"] is None


def test_rotation_and_noise_reach_the_method(folder: Path, tmp_path: Path) -> None:
    plain = bench(folder, tmp_path / "cache", pairs=2, seeds=(0,))
    noisy = bench(folder, tmp_path / "cache", pairs=2, seeds=(0,), noise=0.5)
    turned = bench(folder, tmp_path / "cache", pairs=2, seeds=(0,), rotate="any")
    errors = [summarize(run)["err_percent"]["mean"] for run in (plain, noisy, turned)]
    assert len(set(errors)) == 3


def test_strict_counts_no_ties(folder: Path, tmp_path: Path) -> None:
    loose = bench(folder, tmp_path / "cache", seeds=(0,))
    strict = bench(folder, tmp_path / "cache", seeds=(0,), strict=True)
    for one, other in zip(loose.scores, strict.scores, strict=True):
        assert (other.point.accuracy <= one.point.accuracy).all()


def test_an_interrupted_run_goes_on_where_it_stopped(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def interrupted(items: Iterable[Any], total: int) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == 3:
                raise KeyboardInterrupt
            yield item

    with pytest.raises(KeyboardInterrupt):
        bench(folder, cache, progress=interrupted)
    made = {file: file.stat().st_mtime_ns for file in cache.rglob("*.npz")}
    assert 6 <= len(made) <= 8  # three pairs or four, forth and back
    run = bench(folder, cache)
    assert len(list(cache.rglob("*.npz"))) == 2 * 12
    assert all(file.stat().st_mtime_ns == when for file, when in made.items())
    assert [len(run.scores), run.scores[0].seed, run.scores[-1].seed] == [12, 0, 1]


@pytest.mark.slow
def test_other_processes_give_the_same_scores(folder: Path, tmp_path: Path) -> None:
    here = bench(folder, tmp_path / "here", pairs=3, seeds=(0,))
    there = bench(folder, tmp_path / "there", pairs=3, seeds=(0,), workers=1)
    costs = {"seconds": 0, "memory": 0}
    assert [row | costs for row in table_rows(here)] == [row | costs for row in table_rows(there)]


def test_pairs_that_fail_are_not_left_out(folder: Path, tmp_path: Path) -> None:
    io.save(Shape(np.zeros((5, 3)) + np.arange(5)[:, None]), folder / "a.ply", force=True)
    with pytest.raises(PartialFailure, match=r"got 8 failed predictions by nearest, .* of 12; try"):
        bench(folder, tmp_path / "cache")


def test_the_same_part_of_the_pairs_for_every_method(folder: Path) -> None:
    shapes = open_benchmark(str(folder))
    assert chosen_pairs(shapes, None) == chosen_pairs(shapes, 6) == [0, 1, 2, 3, 4, 5]
    assert len(set(chosen_pairs(shapes, 4))) == 4
    assert chosen_pairs(shapes, 4) == chosen_pairs(shapes, 4)


def test_things_are_tested_on_templates_that_nobody_trains_on():
    shapes = open_benchmark("generated-thing")
    assert len(shapes.pairs) == 100
    assert set(shapes.categories) == {"bilateral", "radial", "free"}
    truth = shapes.truth(0, 1)
    assert truth is not None
    np.testing.assert_array_equal(truth.source, truth.target)
    assert len(truth.source) == len(shapes.shape(0))
    drawn = benchmark_pair(shapes, 0, sampling="independent", points=100, rotate="any")
    assert drawn.source.shape == drawn.target.shape == (100, 3)


def test_generated_bodies_are_held_back_and_have_flips(tmp_path: Path) -> None:
    shapes = open_benchmark("generated-animal")
    assert isinstance(shapes, GeneratedBenchmark)
    source, target = shapes.pairs[7]
    assert shapes.categories[source] == shapes.categories[target]
    assert not np.array_equal(shapes.shape(source).points, shapes.shape(target).points)
    mirror = shapes.mirror(source)
    np.testing.assert_array_equal(mirror[mirror], np.arange(len(shapes.shape(source))))
    assert len(shapes.truth(source, target).source) == len(mirror)
    options = {"pairs": 2, "seeds": (0,), "cycle": False}
    straight = bench("generated-human", tmp_path, **options)
    turned = bench("generated-human", tmp_path, rotate="yaw", **options)
    assert all(score.cycle is None for score in straight.scores)
    assert summarize(straight)["flips"]["mean"] < 20 < summarize(turned)["flips"]["mean"]


def test_flips_of_a_mirrored_answer(tmp_path: Path) -> None:
    """Whoever answers with the mirror image is flipped wherever left and right can be told."""
    shapes = open_benchmark("generated-human")
    drawn = benchmark_pair(shapes, 0, sampling="full", rotate="any")
    mirror = shapes.mirror(1)
    mirrored = Correspondence(drawn.partner[mirror], len(drawn.target))
    score = score_pair(shapes, drawn, mirrored, None, seed=0, pair=0, seconds=0.0)
    alias = drawn.truth[mirror]
    expected = flipped(alias, drawn.truth, alias, drawn.diameter).mean()
    assert score.flips == pytest.approx(100 * expected)
    assert score.flips > 50


def test_a_promise_is_compared_with_the_outcome(tmp_path: Path) -> None:
    """Three quarters of the points are right and all promise 0.85: a gap of 0.1."""
    run = bench("generated-human", tmp_path, pairs=1, seeds=(0,), cycle=False)
    shapes = open_benchmark("generated-human")
    drawn = benchmark_pair(shapes, 0, sampling="full")
    indices = drawn.partner.copy()
    wrong = np.arange(len(indices)) % 4 == 0
    far = np.linalg.norm(drawn.target - drawn.truth[:, None][wrong], axis=2).argmax(axis=1)
    indices[wrong] = far
    sure = Correspondence(indices, len(drawn.target), scores=np.full(len(indices), 0.85))
    score = score_pair(shapes, drawn, sure, None, seed=0, pair=0, seconds=0.0)
    result = summarize(run._replace(scores=(score,)))
    expected = abs(0.85 - np.mean(~wrong))
    assert result["calibration_error"]["mean"] == pytest.approx(expected)
    assert expected == pytest.approx(0.1, abs=0.001)


def test_results_by_category(tmp_path: Path) -> None:
    run = bench("generated-animal", tmp_path, pairs=4, seeds=(0,), cycle=False)
    parts = summarize(run)["categories"]
    assert sum(part["pairs"] for part in parts.values()) == 4


@pytest.mark.slow
def test_the_report(folder: Path, tmp_path: Path) -> None:
    cache, place = tmp_path / "cache", tmp_path / "deep" / "report"
    run = bench(folder, cache, sampling="independent", pairs=2)
    left_out = write_report(run, place, cache=cache)
    assert json.loads((place / "result.json").read_text()) == summarize(run)
    with (place / "pairs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4
    assert float(rows[0]["err"]) == run.scores[0].point.err
    for name in ("worst.png", "best.png"):
        assert (place / name).read_bytes().startswith(b"\x89PNG")
    if not left_out:
        assert (place / "curve.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (place / "curve.svg").read_bytes()
        once, twice = tmp_path / "once.svg", tmp_path / "twice.svg"
        for file in (once, twice):
            plot_curves(curves(run), [file], title="lumps")
        assert twice.read_bytes() == once.read_bytes()
    with pytest.raises(UsageError, match=r"got a folder with a result, .*; try another"):
        write_report(run, place, cache=cache)


def test_a_missing_package_costs_a_row_and_no_plot_costs_a_word(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycpd", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    cache = tmp_path / "cache"
    configs = [
        BenchConfig(benchmark=str(folder), method=method, points=100, pairs=1, seeds=(0,))
        for method in ("nearest", "cpd", "icp")
    ]
    rows = compare(configs, lambda config: run_bench(config, cache=cache))
    assert [row.run is None for row in rows] == [False, True, False]
    assert "pip install 'ltenet[baselines]'" in str(rows[1].missing)
    table = markdown_table([row.as_dict() for row in rows])
    assert "| cpd | got no pycpd" in table
    assert len({line.count("|") for line in table.splitlines()}) == 1
    (told,) = write_comparison(rows, tmp_path / "out", cache=cache)
    assert "no curve was drawn: got no matplotlib" in told
    assert (tmp_path / "out" / "comparison.md").read_text() == table
    assert (tmp_path / "out" / "icp" / "result.json").is_file()
    assert not (tmp_path / "out" / "curve.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, r"got the method 'best', expected one of"),
        ({"method": "icp", "model": "human"}, r"got model 'human' for the method 'icp', expected"),
        ({"seeds": ()}, r"got the seeds \(\), expected different"),
        ({"seeds": (1, 1)}, r"expected different numbers from 0"),
        ({"pairs": 0}, r"got 0 pairs, expected at least 1"),
        ({"benchmark": "faust_r"}, r"got shared samples for faust_r, expected whole meshes"),
    ],
)
def test_what_cannot_be_run(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BenchConfig(**{"benchmark": "faust", **options})


def test_benchmarks_that_are_not_there(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"got 'fuast', expected one of .* or a folder; try"):
        open_benchmark("fuast")
    with pytest.raises(MissingError, match=r"got no data for 'faust', .*; try --data"):
        open_benchmark("faust")
    for name in "bc":
        (folder / f"{name}.ply").unlink()
    files = [{"file": "a.ply", "category": "lump"}]
    (folder / "manifest.json").write_text(json.dumps({"numbering": "shared", "shapes": files}))
    with pytest.raises(InputError, match=r"got a set without pairs to test on, expected"):
        open_benchmark(str(folder))


def test_weights_that_suit(folder: Path) -> None:
    assert suited_weights(open_benchmark("generated-human")) == "human"
    assert suited_weights(open_benchmark("generated-animal")) == "animal"
    with pytest.raises(UsageError, match=r"got no weights .*; try --model human"):
        suited_weights(open_benchmark(str(folder)))


def test_real_figures_match_those_measured_before(benchmark_data: Path, tmp_path: Path) -> None:
    """TOSCA's unit, its third, and the remark on SHREC'19; two pairs by the nearest point."""
    run = bench("tosca", tmp_path, data=benchmark_data, pairs=1, seeds=(0,), cycle=False)
    shapes = open_benchmark("tosca", benchmark_data)
    score = run.scores[0]
    drawn = benchmark_pair(shapes, score.pair, points=200, seed=0)
    assert 0.5 < drawn.diameter < 5  # units of the files, divided by 100
    centred = [points - points.mean(axis=0) for points in (drawn.source, drawn.target)]
    nearest = KDTree(centred[1]).query(centred[0])[1]
    distances = np.linalg.norm(drawn.target[nearest] - drawn.truth, axis=1)
    assert score.point.err == pytest.approx(distances.mean())
    assert score.point.err_dpc == pytest.approx(100 * np.square(distances).mean() / 3)
    assert remark(shapes, 286) is None
    assert remark(shapes, 20) == run.remark.replace("1 of", "20 of")
    people = open_benchmark("shrec19", benchmark_data)
    assert str(remark(people, 310)).startswith("310 of the 430 official pairs; published figures")
