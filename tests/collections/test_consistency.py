"""Maps through a hub close their cycles, and are no worse than those they stand on."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ltenet.cli import main
from ltenet.collections.consistency import cycle_error, two_way
from ltenet.collections.synchronizing import synchronize
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
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
