"""Figures of the paper with networks so small that a training takes a moment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ltenet.cli import main
from ltenet.errors import MissingError
from ltenet.evaluation.paper import trainings
from ltenet.evaluation.paper.config import PaperConfig
from ltenet.evaluation.paper.maps import draw_maps, run_maps
from ltenet.evaluation.paper.plan import SETTINGS, Setting
from ltenet.evaluation.paper.plans import dpc, ltenet
from ltenet.evaluation.paper.recipes import Recipe
from ltenet.evaluation.paper.scans import finished_weights
from ltenet.evaluation.paper.trainings import (
    Budget,
    Trained,
    recipe_config,
    trained,
    with_orientation,
)
from ltenet.io import save
from ltenet.matching.networks import read_networks
from ltenet.shape import Shape

SMALL = (
    "validation.pairs=0", "workers=0", "pairs.what=animal", "pairs.points=[64, 64]",
    "model.encoder.widths=[8, 12]", "model.encoder.neighbors=6", "optim.batch_size=2",
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Budget:
    """Small networks; animals are tested on generated ones, people nowhere."""

    def changed(recipe: Recipe, seed: int, budget: Budget) -> trainings.TrainingConfig:
        return recipe_config(replace(recipe, changes=(*SMALL, *recipe.changes)), seed, budget)

    monkeypatch.setattr(trainings, "recipe_config", changed)
    monkeypatch.setitem(SETTINGS, "animal", Setting("generated-animal", "theirs", "ours"))
    return Budget(tmp_path / "runs", 2, passes=1)


@pytest.mark.slow
def test_maps_are_drawn_with_the_runs_that_exist(small: Budget, tmp_path: Path) -> None:
    config = PaperConfig(data=None, budget=small, cache=tmp_path / "cache", pairs=3, seeds=(0,))
    with pytest.raises(MissingError, match=r"paper-animal-2steps: step 0 of 2"):
        run_maps(config)
    assert not small.runs.exists()  # nothing is trained for a picture
    assert isinstance(trained(ltenet("animal"), 0, small), Trained)
    alone = run_maps(config)
    assert [pair.picked for pair in alone] == ["best", "median", "worst"]
    errors = [pair.scores["LTENet"].point.err_percent for pair in alone]
    assert errors == sorted(errors)
    assert all(set(pair.maps) == {"LTENet"} for pair in alone)
    assert isinstance(trained(dpc("animal"), 0, small), Trained)
    both = run_maps(config)
    assert all(set(pair.maps) == {"LTENet", "DPC"} for pair in both)
    assert [pair.drawn.source_name for pair in both] == [pair.drawn.source_name for pair in alone]
    height, width, _ = draw_maps(both).shape
    assert draw_maps(alone).shape[0] == height
    assert draw_maps(alone).shape[1] == pytest.approx(width * 3 / 4, abs=8)
    # By the command, with one file for the figures and one for the picture.
    words = ["paper", "maps", "-o", str(tmp_path / "out"), "--runs", str(small.runs)]
    more = ["--steps", "2", "--pairs", "3", "--seeds", "0", "--cache", str(tmp_path / "cache")]
    assert main([*words, *more]) == 0
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {
        ".json",
        ".md",
        ".png",
        ".svg",
    }
    rows = json.loads((tmp_path / "out" / "maps.json").read_text())["rows"]
    assert len(rows) == 6
    assert {row["map"] for row in rows} == {"LTENet", "DPC"}


@pytest.mark.slow
def test_two_scans_with_the_papers_weights_beside(
    small: Budget, body: Shape, tmp_path: Path
) -> None:
    assert finished_weights(small) is None
    assert isinstance(trained(ltenet("human"), 0, small), Trained)
    files = [str(tmp_path / name) for name in ("one.ply", "two.ply")]
    for file in files:
        save(body, file)
    words = ["paper", "real", "-o", str(tmp_path / "out"), "--runs", str(small.runs)]
    assert main([*words, "--steps", "2", "--shapes", *files]) == 0
    rows = json.loads((tmp_path / "out" / "real.json").read_text())["rows"]
    assert [row["map"] for row in rows][-1] == "paper's weights, nearest neighbour"
    assert len(rows) == 3


def test_weights_get_the_orientation_networks_that_ship(small: Budget) -> None:
    own = trained(ltenet("animal"), 0, small)
    assert isinstance(own, Trained)
    assert read_networks(str(own.weights)).orienter is None
    folder = with_orientation(own, like="animal")
    assert read_networks(str(folder)).orienter is not None
    assert with_orientation(own, like="animal") == folder  # once more, nothing is in the way
    with pytest.raises(MissingError, match="got no orientation networks"):
        with_orientation(own, like=str(own.weights))
