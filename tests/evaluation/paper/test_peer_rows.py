"""Rows of other methods in the main table: their trainings, groups, costs and meshes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ltenet.evaluation.paper import output, runner, whole_meshes
from ltenet.evaluation.paper.config import PaperConfig
from ltenet.evaluation.paper.experiments import run_experiment
from ltenet.evaluation.paper.peer_plans import peer_rows, planned_peers
from ltenet.evaluation.paper.plan import SETTINGS, ExperimentPlan, Row, Setting
from ltenet.evaluation.paper.plans import PLANS
from ltenet.evaluation.paper.recipes import PeerRecipe
from ltenet.evaluation.paper.runner import run_plan
from ltenet.evaluation.paper.tables import grouped, markdown, table
from ltenet.evaluation.paper.trainings import Budget, Trained, Unfinished, recipe_config, trained
from ltenet.evaluation.peers.table import PEERS
from ltenet.training.settings import presets

SMALL = (
    "validation.pairs=0", "workers=0", "pairs.points=[64, 64]", "optim.batch_size=2",
    "network.pointnet.trunk=[8, 16]", "network.pointnet.code=[8]", "network.pointnet.head=[16]",
)  # fmt: skip
RECIPE = PeerRecipe(system="pointnet", what="animal", changes=SMALL)


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PaperConfig:
    setting = Setting("generated-animal", "theirs", "ours", ("generated-animal",))
    monkeypatch.setitem(SETTINGS, "animal", setting)
    budget = Budget(tmp_path / "runs", 2)
    return PaperConfig(data=None, budget=budget, cache=tmp_path / "cache", pairs=1, seeds=(0, 1, 2))


def test_every_method_has_a_row_and_every_learned_one_a_training() -> None:
    for what in ("human", "animal"):
        rows = {row.method: row for row in peer_rows(what)}
        assert set(rows) == set(PEERS) - {"ltenet", "embedding"}
        for name, row in rows.items():
            assert (row.weights is None) == (PEERS[name].learning is None)
    planned = planned_peers()
    assert {recipe.system for recipe in planned} <= set(presets())
    assert len({recipe.name for recipe in planned}) == len(planned) == 20
    with_post = [row for row in peer_rows("human") if PEERS[row.method].post]
    assert {"3d-coded-search", "geofmnet-zoomout", "fmnet-pmf"} <= {row.method for row in with_post}
    published = {row.published for row in peer_rows("human")} - {None}
    assert published == {
        "CorrNet3D", "3D-CODED", "Elementary Structures", "Diff-FMaps", "GeoFMNet", "SURFMNet",
    }  # fmt: skip


def test_budgets_are_equal_minutes_with_the_presets_course(tmp_path: Path) -> None:
    for recipe in planned_peers():
        own = recipe.config(0)
        assert (own.schedule.unit, own.schedule.length) == ("minutes", 30)
        assert (own.system, own.pairs.what) == (recipe.system, recipe.what)
        assert own.validation.select == "last"
    coded = PeerRecipe(system="3d-coded", what="human")
    assert coded.config(0).schedule.milestones == (24, 27)
    quick = recipe_config(coded, 1, Budget(tmp_path, 100))
    assert (quick.schedule.unit, quick.schedule.milestones) == ("steps", (80, 90))
    assert quick.name == "3d-coded-human-seed1-100steps"


def test_a_run_in_minutes_is_finished_by_the_clock(tmp_path: Path) -> None:
    short = PeerRecipe(system="pointnet", what="animal", changes=SMALL, minutes=0.02)
    waiting = trained(short, 0, Budget(tmp_path, train=False))
    assert isinstance(waiting, Unfinished)
    assert str(waiting) == "pointnet-animal: step 0"
    made = trained(short, 0, Budget(tmp_path))
    assert isinstance(made, Trained)
    assert made.minutes >= 0.02
    assert made.pairs_seen == 2 * made.steps == made.as_dict()["pairs_seen"]
    assert made.weights == made.run.best
    assert trained(short, 0, Budget(tmp_path, train=False)) == made


def test_rows_of_learned_and_of_classical_methods(config: PaperConfig) -> None:
    rows = (
        Row(label="pointnet", setting="animal", method="pointnet", weights=RECIPE, peer=True),
        Row(label="nearest", setting="animal", method="nearest", peer=True),
    )
    plan = ExperimentPlan(rows=rows, samplings=("shared",))
    learned, plain = run_plan("main", plan, config)
    assert learned["trainings"][0]["pairs_seen"] == 4
    assert learned["also"] == {}
    assert plain["shared"]["seconds_per_pair"]["mean"] > 0
    assert plain["shared"]["memory_mb"] is not None
    known = run_plan("main", plan, config, known=[learned, plain], tell=pytest.fail)
    assert [row["label"] for row in known] == ["pointnet", "nearest"]
    shown = table({"name": "main", "rows": [learned, plain], "seeds": [0, 1]}, "animal")
    lines = [line.split(" | ")[0].strip("| ") for line in shown.splitlines()]
    assert lines[2:6] == [
        "*without learning*", "nearest", "*learned with supervision*", "pointnet",
    ]  # fmt: skip
    assert "2 (4 pairs, 0 min)" in shown
    assert "ours: MB" in shown


def test_slow_methods_get_fewer_pairs(config: PaperConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SLOW_PAIRS", 2)
    rows = (Row(label="nearest", setting="animal", method="nearest", peer=True),)
    plan = ExperimentPlan(rows=rows, samplings=("shared",))
    more = PaperConfig(
        data=None, budget=config.budget, cache=config.cache, pairs=3, seeds=config.seeds
    )
    (fast,) = run_plan("main", plan, more)
    assert fast["shared"]["pairs"] == 3
    monkeypatch.setattr(runner, "SLOW", 0.0)
    (slow,) = run_plan("main", plan, more)
    assert slow["shared"]["pairs"] == 2
    monkeypatch.setattr(runner, "PEER_PAIRS", 1)
    (least,) = run_plan("main", plan, more)
    assert least["shared"]["pairs"] == 1


def test_methods_that_want_a_mesh_say_where_there_is_none(
    config: PaperConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    rows = (Row(label="hks", setting="animal", method="nearest", peer=True, mesh=True),)
    plan = ExperimentPlan(rows=rows, samplings=("shared",))
    (row,) = run_plan("main", plan, config, tell=told.append)
    assert row["mesh"] is None
    assert any("not tested on faust_r" in text for text in told)
    monkeypatch.setattr(whole_meshes, "MESHES", "generated-animal")
    (row,) = run_plan("main", plan, config)
    assert set(row["mesh"]) == {
        "benchmark", "pairs", "geodesic", "seconds_per_pair", "memory_mb",
    }  # fmt: skip


def test_tables_without_other_learners_stay_as_they_are() -> None:
    rows: list[dict[str, Any]] = [
        {"label": "b", "method": "icp"}, {"label": "a", "method": "embedding"},
    ]  # fmt: skip
    assert [row["label"] for row in grouped(rows)] == ["b", "a"]
    assert {row["group"] for row in grouped(rows)} == {""}
    rows.append({"label": "c", "method": "corrnet3d"})
    assert [row["label"] for row in grouped(rows)] == ["a", "b", "c"]


@pytest.mark.slow
def test_the_main_table_draws_error_over_seconds(
    config: PaperConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    rows = (
        Row(label="PointNet", setting="animal", method="pointnet", weights=RECIPE, peer=True),
        Row(label="nearest", setting="animal", method="nearest", peer=True),
    )
    plan = ExperimentPlan(rows=rows, cost=True)
    monkeypatch.setitem(PLANS, "main", lambda data: plan)
    result = run_experiment("main", config, tmp_path / "out", command="ltenet paper main")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    for sampling in ("shared", "independent"):
        assert f"main-cost-generated-animal-{sampling}.png" in names
    assert "![" in markdown(result)
    files, left_out = output.plot_costs("main", [], tmp_path / "out")
    assert (files, left_out) == ([], [])


def test_peak_memory_of_a_known_array() -> None:
    # A process of its own: memory that this one has freed would be used again.
    code = (
        "import numpy as np; from ltenet.evaluation.bench.memory import with_peak_memory;"
        "print(*with_peak_memory(lambda: float(np.ones(5_000_000).sum())))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    result, megabytes = told.stdout.split()
    assert float(result) == 5_000_000
    if megabytes != "None":
        assert 20 < float(megabytes) < 200
