"""Maps through a hub close their cycles, and are no worse than those they stand on."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ltenet.cli import main
from ltenet.collections.consistency import cycle_error, two_way
from ltenet.collections.plan import plan_folder
from ltenet.collections.synchronizing import synchronize
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.matching.dense import land
from ltenet.shape import Shape
from tests.collections.conftest import person


def noisy_maps(count: int, share: float) -> tuple[dict, dict]:
    """People in one vertex order, and true maps of which a share of the points is wrong."""
    shapes = {f"p{number}": person(number) for number in range(count)}
    rng = np.random.default_rng(0)
    maps = {}
    for source, target in permutations(shapes, 2):
        indices = np.arange(300)
        wrong = rng.random(300) < share
        indices[wrong] = rng.integers(0, 300, wrong.sum())
        maps[source, target] = Correspondence(
            indices,
            300,
            scores=np.where(wrong, 0.4, 0.8),
            source=shapes[source],
            target=shapes[target],
        )
    return shapes, maps


def accuracy(shapes: dict[str, Shape], maps: dict) -> float:
    """Mean error of all maps, in diameters; vertices of one number correspond."""
    return float(
        np.mean(
            [
                np.linalg.norm(shapes[target].points[found.indices] - shapes[target].points, axis=1)
                / shapes[target].diameter
                for (_, target), found in maps.items()
            ]
        )
    )


@pytest.mark.slow
def test_cycles_close_and_errors_shrink() -> None:
    shapes, maps = noisy_maps(5, 0.2)
    before = cycle_error(shapes, two_way(maps))
    consistent = synchronize(shapes, two_way(maps))
    after = cycle_error(shapes, two_way(consistent))
    assert before.cycles == after.cycles == 10
    assert after.mean < before.mean / 3
    assert accuracy(shapes, consistent) < accuracy(shapes, maps) / 2
    assert len(consistent) == 20


def test_perfect_maps_stay_nearly_perfect() -> None:
    shapes, maps = noisy_maps(3, 0.0)
    assert cycle_error(shapes, two_way(maps)).mean == 0.0
    assert accuracy(shapes, synchronize(shapes, two_way(maps))) < 0.005


def test_a_cycle_is_required() -> None:
    shapes, maps = noisy_maps(3, 0.0)
    with pytest.raises(InputError, match="got no cycle of three matched shapes"):
        cycle_error(shapes, two_way({("p0", "p1"): maps["p0", "p1"]}))


@pytest.mark.slow
def test_a_batch_becomes_consistent(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", "human", "--points", "300", "--orient", "none", "--refine", "none"]
    arguments = ["batch", str(people), "-o", str(tmp_path / "out"), *options, "--json"]
    assert main([*arguments, "--all-pairs", "--consistent"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["cycle_error_after"] < figures["cycle_error_before"]
    assert len(list((tmp_path / "out/consistent").glob("*.npz"))) == 6
    assert main([*arguments, "--all-pairs", "--consistent", "--shard", "1/2"]) == 2
    assert "got --consistent with --shard" in capsys.readouterr().err


def mesh_maps(count: int) -> tuple[dict[str, Shape], dict]:
    """Whole people, and maps of which each is off by a smooth error of its own."""
    shapes = {f"p{number}": person(number, points=None) for number in range(count)}
    maps = {}
    for number, (source, target) in enumerate(permutations(shapes, 2)):
        wave = 0.02 * np.sin(4 * shapes[target].points + number)  # (V, 3)
        landing = land(shapes[target].points + wave, shapes[target].points)
        maps[source, target] = Correspondence(
            landing.indices,
            len(shapes[target]),
            scores=np.ones(len(wave)),  # certain: rounding must not make more of it
            neighbors=landing.neighbors,
            weights=landing.weights,
            source=shapes[source],
            target=shapes[target],
        )
    return shapes, maps


@pytest.mark.slow
def test_cycles_of_meshes_close_to_a_third_and_errors_hardly_grow() -> None:
    shapes, maps = mesh_maps(3)
    found = synchronize(shapes, two_way(maps))
    before, after = (cycle_error(shapes, two_way(one)).mean for one in (maps, found))
    assert after < before / 3
    assert accuracy(shapes, found) < 1.15 * accuracy(shapes, maps)


def test_cycles_are_followed_between_vertices() -> None:
    """Two samples of one surface have no vertex in common, yet their true maps close cycles."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((6000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    shapes = {name: Shape(points[k::3]) for k, name in enumerate("abc")}
    maps = {}
    for source, target in permutations(shapes, 2):
        landing = land(shapes[source].points, shapes[target].points)
        maps[source, target] = Correspondence(
            landing.indices,
            len(shapes[target]),
            neighbors=landing.neighbors,
            weights=landing.weights,
            source=shapes[source],
            target=shapes[target],
        )
    nearest = np.mean(
        [
            np.linalg.norm(shapes[t].points[found.indices] - shapes[s].points, axis=1).mean() / 2
            for (s, t), found in maps.items()
        ]
    )
    assert cycle_error(shapes, two_way(maps)).mean < nearest


@pytest.mark.slow
def test_all_pairs_through_hubs(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", "human", "--points", "300", "--orient", "none", "--refine", "none"]
    out = tmp_path / "out"
    arguments = ["batch", str(people), "-o", str(out), *options, "--json"]
    assert main([*arguments, "--all-pairs", "--hubs", "2"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["pairs"] == 5  # each of two hubs to the two others, and the hubs
    assert figures["consistent_pairs"] == 6
    assert figures["unreached"] == []
    files = sorted((out / "consistent").glob("*.npz"))
    assert [file.name for file in files][:2] == ["p0__p1.npz", "p0__p2.npz"]
    assert len((out / "consistent/pairs.csv").read_text().splitlines()) == 7
    before = {file: file.stat().st_mtime_ns for file in files}
    assert main([*arguments, "--all-pairs", "--hubs", "2", "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0
    assert before == {file: file.stat().st_mtime_ns for file in files}  # nothing is made twice
    single = ["batch", str(people), "-o", str(tmp_path / "single"), *options, "--all-pairs"]
    assert main([*single, "--hubs", "1"]) == 0
    assert "cycle error before  unknown: no cycle" in capsys.readouterr().out
    assert main([*arguments, "--sequence", "--hubs", "2"]) == 2
    assert "got --hubs 2, expected at least 1, with --all-pairs" in capsys.readouterr().err


def test_hubs_are_spread_and_matched_to_all_others(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"s{number}.ply").write_text("ply\n")
    plan = plan_folder(tmp_path, "hubs", hubs=2)
    assert sorted(plan.pairs) == sorted(
        [(hub, other) for hub in (1, 5) for other in (0, 2, 3, 4, 6)] + [(1, 5)]
    )
