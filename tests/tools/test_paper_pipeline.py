"""From the queue to the table: what is trained by the one is found and tested by the other."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ltenet.cli import main as ltenet_main
from ltenet.evaluation.paper.plan import CONTROL, SETTINGS, ExperimentPlan, Setting
from ltenet.evaluation.paper.plans import PLANS, PlannedRun
from ltenet.evaluation.paper.recipes import SCALES, Recipe, Scale
from tools import run_benchmarks
from tools.conclusions import conclusions
from tools.result_tables import paper as paper_table
from tools.train_queue import paper_run, state_of, table, train

SMALL = (
    "validation.pairs=0", "workers=0", "pairs.points=[64, 64]", "pairs.what=animal",
    "model.encoder.widths=[8, 12]", "model.encoder.neighbors=6", "model.encoder.dimension=16",
)  # fmt: skip


@pytest.mark.slow
def test_finished_runs_of_the_queue_become_rows_with_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "ablation", Scale(2, 2))
    monkeypatch.setitem(SCALES, "main", Scale(2, 2))
    setting = Setting("generated-animal", "theirs", "ours", ("generated-animal",))
    monkeypatch.setitem(SETTINGS, "human", setting)
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "cache"))
    rows = [
        replace(row, weights=replace(row.weights, changes=(*SMALL, *row.weights.changes)))
        for row in PLANS["design"](None).rows
        if isinstance(row.weights, Recipe) and row.label in ("full", "Chamfer", "cross", CONTROL)
    ]
    plan = ExperimentPlan(rows=tuple(rows), samplings=("shared",))
    monkeypatch.setitem(PLANS, "design", lambda data: plan)

    # The queue trains two of the three rows, in processes of their own; the third has one seed yet.
    runs = tmp_path / "runs"
    recipes = {row.label: row.weights for row in rows}
    planned = [(recipes[label], seed) for label in ("full", "Chamfer") for seed in (0, 1)]
    queue = [paper_run(PlannedRun(*one)) for one in (*planned, (recipes["cross"], 0))]
    assert train(queue, runs) == []
    assert all(state_of(run, runs)[:3] == (True, 2, pytest.approx(0, abs=5)) for run in queue)
    assert table(queue, runs).count(" done ") == 5

    # One command tests every row; it runs `ltenet paper` for each experiment, here in this process.
    def called(command: list[str], **_: object) -> object:
        words = [word for word in command[2:] if word != "ltenet"]
        code = ltenet_main([*words, "--runs", str(runs)])
        return type("Finished", (), {"returncode": code, "stdout": ""})()

    monkeypatch.setattr("tools.run_benchmarks.subprocess.run", called)
    words = ["run_benchmarks", "--paper", "--continue", "--only", "design", "--pairs", "2"]
    monkeypatch.setattr(sys, "argv", [*words, "--seeds", "0,1", "--results", str(tmp_path)])
    run_benchmarks.main()
    result = json.loads((tmp_path / "paper" / "design.json").read_text())
    by_label = {row["label"]: row for row in result["rows"]}
    assert [made["seed"] for made in by_label["full"]["trainings"]] == [0, 1]
    assert by_label["full"]["shared"]["pairs"] == 2
    assert by_label["full"]["also"]["generated-animal"]["shared"]["pairs"] == 2
    assert by_label["cross"]["waiting"] == [f"{recipes['cross'].run_name(1)}: step 0 of 2"]
    assert "missing" not in by_label[CONTROL]
    # Two steps decide nothing, and the page says so.
    found = {line.claim: line.verdict for line in conclusions({"design": result})}
    assert found["Cauchy-Schwarz is better than Chamfer"] == "undecided"
    text = paper_table(["design"], tmp_path)
    assert text is not None
    assert "in training: ablation-cross-seed1: step 0 of 2" in text
    # Once more: nothing is tested again, and the run that was waited for is added.
    assert train([paper_run(PlannedRun(recipes["cross"], 1))], runs) == []
    run_benchmarks.main()
    again = json.loads((tmp_path / "paper" / "design.json").read_text())["rows"]
    rows_again = {row["label"]: row for row in again}
    assert len(rows_again["cross"]["trainings"]) == 2
    assert rows_again["full"] == by_label["full"]
