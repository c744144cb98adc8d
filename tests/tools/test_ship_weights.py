"""From a finished run to weights that ship, and back to its row and its place in the queue."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch

from ltenet.errors import InputError
from ltenet.evaluation.paper import shipped
from ltenet.evaluation.paper.config import PaperConfig
from ltenet.evaluation.paper.plan import SETTINGS, ExperimentPlan, Row, Setting
from ltenet.evaluation.paper.plans import PLANS, PlannedRun
from ltenet.evaluation.paper.recipes import SCALES, Recipe, Scale
from ltenet.evaluation.paper.runner import run_plan
from ltenet.evaluation.paper.shipped import read_record
from ltenet.evaluation.paper.tables import table
from ltenet.evaluation.paper.trainings import Budget, Trained, Unfinished, trained
from ltenet.method.model import LTENet, find_weights
from ltenet.training.runs import RunFolder
from tools import ship_weights, train_queue
from tools.train_queue import paper_run, state_of

RECIPE = Recipe(
    name="paper-small",
    preset="paper",
    what="animal",
    changes=(
        "validation.pairs=0", "workers=0", "pairs.points=[64, 64]",
        "model.encoder.widths=[8, 12]", "model.encoder.neighbors=6", "model.encoder.dimension=16",
    ),
    scale="ablation",
    seeds=(0,),
)  # fmt: skip
ROWS = (
    Row(label="LTENet", setting="animal", weights=RECIPE),
    Row(
        label="turned", setting="animal", weights=RECIPE,
        oriented=True, method="ltenet", refine="none",
    ),
)  # fmt: skip


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights of a package that ships those of animals, and whose tables have one small recipe."""
    files = resources.files
    folder = tmp_path / "package" / "weights"
    folder.mkdir(parents=True)
    (folder / "animal").symlink_to(find_weights("animal"))
    for entry in Path(str(files("ltenet"))).iterdir():
        if entry.name != "weights":
            (folder.parent / entry.name).symlink_to(entry)
    monkeypatch.setattr(
        resources, "files", lambda name: folder.parent if name == "ltenet" else files(name)
    )
    monkeypatch.setattr(ship_weights, "WEIGHTS", folder)
    monkeypatch.setitem(SCALES, "ablation", Scale(2, 2))
    monkeypatch.setitem(PLANS, "main", lambda data: ExperimentPlan(rows=ROWS))
    return folder


def ship(monkeypatch: pytest.MonkeyPatch, *words: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["ship_weights", RECIPE.name, *map(str, words)])
    ship_weights.main()


def train_run(budget: Budget) -> RunFolder:
    made = trained(RECIPE, 0, budget)
    assert isinstance(made, Trained)
    return made.run


def contents(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


@pytest.mark.slow
def test_a_finished_run_ships_and_counts_as_trained(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Budget(tmp_path / "runs")
    run = train_run(here)
    ship(monkeypatch, "--run", run.path, "--which", "settled", "--commit", "abc1234")
    folder = weights / RECIPE.name
    record = read_record(folder)
    assert record is not None
    assert (record.preset, record.steps, record.passes, record.commit) == (
        "paper",
        2,
        48,
        "abc1234",
    )
    assert record.minutes is not None
    assert record.settings == run.read_config()
    assert shipped.FILE in (folder / "config.json").read_text()
    # The run is on this machine, so its own weights are tested.
    own = trained(RECIPE, 0, here)
    assert isinstance(own, Trained)
    assert (own.shipped, own.weights) == (None, run.path / "settled")

    # Elsewhere, those that ship are.
    before = contents(folder)
    there = Budget(tmp_path / "elsewhere")
    made = trained(RECIPE, 0, there)
    assert isinstance(made, Trained)
    assert (made.shipped, made.weights, made.steps) == (record, folder, 2)
    states = [LTENet.from_pretrained(one.weights).state_dict() for one in (own, made)]
    for name, value in states[0].items():
        halved = value.half().float() if value.is_floating_point() else value
        assert torch.equal(halved, states[1][name])
    other = replace(RECIPE, changes=(*RECIPE.changes, "model.transform.neighbors=5"))
    assert isinstance(trained(other, 0, there._replace(train=False)), Unfinished)

    monkeypatch.setitem(SETTINGS, "animal", Setting("generated-animal", "theirs", "ours"))
    config = PaperConfig(data=None, budget=there, cache=tmp_path / "cache", pairs=1, seeds=(0,))
    plan = ExperimentPlan(rows=ROWS, samplings=("shared",), also=False)
    rows = run_plan("main", plan, config)
    assert all(row["shared"]["pairs"] == 1 for row in rows)
    assert all(row["trainings"][0]["shipped"]["commit"] == "abc1234" for row in rows)
    shown = table({"name": "main", "rows": rows, "seeds": [0]}, "animal")
    assert shown.count("| 2 (shipped, half precision) |") == 2
    assert run_plan("main", plan, config, known=rows, tell=pytest.fail) == rows
    assert {path.name for path in there.runs.iterdir()} == {"shipped"}
    assert contents(folder) == before  # the package is only read

    # The queue skips it, here as elsewhere, where it says why.
    queued = paper_run(PlannedRun(RECIPE, 0))
    assert state_of(queued, there.runs)[:4] == (True, 2, record.minutes, folder)
    (line,) = train_queue.table([queued], there.runs).splitlines()[1:]
    assert line.split()[:3] == [RECIPE.name, "ships", "2"]
    assert train_queue.train([queued], there.runs) == []
    assert not (there.runs / RECIPE.name).exists()

    # A record that cannot be read is nobody's.
    (folder / shipped.FILE).write_text("{")
    with pytest.raises(InputError, match=r"training\.json.*got text that is not JSON"):
        trained(RECIPE, 0, there)


def test_only_finished_and_settled_runs_of_a_row_get_a_record(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train_run(Budget(tmp_path / "runs"))
    record = weights / RECIPE.name / shipped.FILE
    ship(monkeypatch, "--run", run.path, "--which", "settled")
    assert "commit" not in record.read_text()
    ship(monkeypatch, "--run", run.path)
    assert not record.exists()  # these statistics are not settled
    ship(monkeypatch, "--run", run.path, "--which", "settled")
    assert record.exists()
    longer = run.config.read_text().replace("length = 2.0", "length = 3.0")
    run.config.write_text(longer)
    ship(monkeypatch, "--run", run.path, "--which", "settled")
    assert not record.exists()
