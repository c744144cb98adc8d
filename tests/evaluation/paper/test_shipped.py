"""Weights that ship in place of a training: when they are taken, and when not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ltenet.errors import InputError
from ltenet.evaluation.paper.plans import ltenet, planned_runs
from ltenet.evaluation.paper.recipes import Recipe
from ltenet.evaluation.paper.shipped import FILE, find_shipped, read_record, same_training
from ltenet.evaluation.paper.trainings import Budget, Trained, Unfinished, trained, with_orientation
from ltenet.matching.networks import read_networks
from ltenet.method.model import LTENet, available_weights, find_weights

RECORDED = [name for name in available_weights() if (find_weights(name) / FILE).is_file()]
RECIPE = ltenet("human")


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Times and bytes of the files in a folder."""
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def test_the_papers_weights_have_records() -> None:
    assert {"paper-human", "dpc-human", "paper-animal", "dpc-animal"} <= set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_is_that_of_one_planned_run(name: str) -> None:
    folder = find_weights(name)
    record = read_record(folder)
    assert record is not None
    configs = [planned.recipe.config(planned.seed) for planned in planned_runs()]
    (config,) = [config for config in configs if same_training(record.settings, config)]
    assert config.name == name
    assert record.steps == config.schedule.length
    assert LTENet.from_pretrained(name).config == config.model
    assert FILE in json.loads((folder / "config.json").read_text())["files"]


def test_they_are_taken_as_they_are(tmp_path: Path) -> None:
    before = contents(find_weights("paper-human"))
    made = trained(RECIPE, 0, Budget(tmp_path))  # would train for an hour
    assert isinstance(made, Trained)
    assert made.weights == find_weights("paper-human")
    assert made.as_dict() == {
        "run": "paper-human",
        "preset": "paper",
        "what": "human",
        "changes": [],
        "seed": 0,
        "steps": 2500,
        "minutes": 94.0,
        "shipped": {"precision": "half", "passes": 48, "commit": "434a940"},
    }
    assert not list(tmp_path.iterdir())
    turned = with_orientation(made, like="human")
    assert turned.is_relative_to(tmp_path)
    assert read_networks(str(turned)).orienter is not None
    assert not (tmp_path / "paper-human").exists()  # where a training of this name would start
    assert contents(find_weights("paper-human")) == before


@pytest.mark.parametrize(
    ("recipe", "seed", "steps", "run"),
    [
        (replace(RECIPE, changes=("model.transform.neighbors=5",)), 0, None, "paper-human"),
        (replace(RECIPE, preset="dpc"), 0, None, "paper-human"),
        (replace(RECIPE, scale="ablation"), 0, None, "paper-human"),
        (RECIPE, 1, None, "paper-human-seed1"),
        (replace(RECIPE, name="mine"), 0, None, "mine"),
        (RECIPE, 0, 100, "paper-human-100steps"),
    ],
)
def test_other_trainings_do_not_take_them(
    recipe: Recipe, seed: int, steps: int | None, run: str, tmp_path: Path
) -> None:
    waiting = trained(recipe, seed, Budget(tmp_path, steps, train=False))
    assert isinstance(waiting, Unfinished)
    assert (waiting.run, waiting.step) == (run, 0)


def test_pace_is_no_setting_of_a_training() -> None:
    assert find_shipped(RECIPE.config(0, threads=7)) is not None


def test_weights_without_a_record() -> None:
    assert read_record(find_weights("human")) is None
    assert find_shipped(replace(RECIPE.config(0), name="human")) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:100], "got text that is not JSON"),
        (lambda text: "[1]", r"training\.json: got \[1\], expected a table of settings; try"),
        (lambda text: text.replace('"passes"', '"turns"'), "got a record without passes, expected"),
        (lambda text: text.replace("2500,", '"many",'), "steps: got 'many', expected a value"),
        (lambda text: text.replace('"optim"', '"optics"'), "the unknown setting optics, expected"),
    ],
)
def test_a_damaged_record_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    text = (find_weights("paper-human") / FILE).read_text(encoding="utf-8")
    (tmp_path / FILE).write_text(change(text), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_record(tmp_path)
