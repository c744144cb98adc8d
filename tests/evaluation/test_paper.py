"""The paper's experiments with networks so small that a training takes a moment."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ltenet.cli import main
from ltenet.data.pairs import benchmark_pair
from ltenet.errors import InputError, UsageError
from ltenet.evaluation.benchmarks import open_benchmark
from ltenet.evaluation.paper import trainings
from ltenet.evaluation.paper.experiments import EXPERIMENTS
from ltenet.evaluation.paper.linear import linear_match, optimal_map
from ltenet.evaluation.paper.plan import SETTINGS, Plan, Recipe, Row, Setting
from ltenet.evaluation.paper.plans import PLANS
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.paper.rebuilt import SHARES, draw_rebuilt, run_reconstruction
from ltenet.evaluation.paper.runner import PaperConfig, run_plan
from ltenet.evaluation.paper.trainings import Budget, recipe_config, train_once
from ltenet.io import save
from ltenet.model import LTENet
from ltenet.shape import Shape

SMALL = (
    "validation.pairs=0",
    "checkpoint_minutes=0.5",
    "workers=0",
    "pairs.what=animal",
    "pairs.points=[64, 64]",
    "model.encoder.widths=[8, 12]",
    "model.encoder.neighbors=6",
)
MINUTES = 0.01
RECIPE = Recipe(name="ltenet", preset="paper", what="animal")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Budget:
    """Small networks, and generated shapes in place of the benchmarks."""

    def changed(recipe: Recipe, budget: Budget) -> trainings.TrainingConfig:
        return recipe_config(replace(recipe, changes=(*SMALL, *recipe.changes)), budget)

    monkeypatch.setattr(trainings, "recipe_config", changed)
    monkeypatch.setattr("ltenet.evaluation.paper.rebuilt.recipe_config", changed)
    for what in ("human", "animal"):
        monkeypatch.setitem(SETTINGS, what, Setting("generated-animal", "theirs", "ours"))
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "cache"))
    return Budget(MINUTES, tmp_path / "runs")


# --- what the paper says, and what is planned --------------------------------------------------


def test_published_figures() -> None:
    assert published("main").row("LTENet", "human") == (20.7, 5.8)
    assert published("main").row("DPC", "animal") == (33.2, 5.8)
    assert published("design").row("Chamfer", "human") == (13.9, 6.3)
    assert published("dimension").row("D = 1024", "human") == (20.8, 5.9)
    assert published("sigma").row("sigma 0.03", "human") is None
    assert all(published(name).source for name in EXPERIMENTS)


@pytest.mark.parametrize("name", PLANS)
def test_plans_fit_the_paper(name: str, tmp_path: Path) -> None:
    rows = PLANS[name](tmp_path).rows
    labels = {(row.setting, row.label) for row in rows}
    assert len(labels) == len(rows)
    if name != "main":  # peers of the paper that do not exist here are shown as such
        assert set(published(name).rows) <= {row.published for row in rows}
    recipes = [row.weights for row in rows if isinstance(row.weights, Recipe)]
    for recipe in recipes:
        config = recipe_config(recipe, Budget(3, tmp_path))
        assert (config.schedule.unit, config.schedule.length) == ("minutes", 3)
        assert config.pairs.what == recipe.what


def test_runs_of_one_name_are_the_same(tmp_path: Path) -> None:
    rows = [row for plan in PLANS.values() for row in plan(tmp_path).rows]
    recipes = {row.weights for row in rows if isinstance(row.weights, Recipe)}
    assert len({recipe.name for recipe in recipes}) == len(recipes)
    assert len(recipes) == 2 * 2 + 2 + 1 + 3 + 2 + 4 + 3 + 5 + 4 + 2


# --- training ----------------------------------------------------------------------------------


def test_a_finished_training_is_kept_and_a_stopped_one_goes_on(small: Budget) -> None:
    first = train_once(RECIPE, small)
    assert first.steps >= 1
    before = first.run.checkpoint.read_bytes()
    assert train_once(RECIPE, small)[2:] == first[2:]
    assert first.run.checkpoint.read_bytes() == before
    config = trainings.recipe_config(RECIPE, small)
    longer = replace(config.schedule, length=first.minutes + MINUTES)
    second = train_once(RECIPE, small, config=replace(config, schedule=longer))
    assert second.steps > first.steps
    assert [record["step"] for record in second.run.read_log()][-1] == second.steps


def test_a_training_without_checkpoint_starts_again(small: Budget) -> None:
    run = train_once(RECIPE, small).run
    run.checkpoint.unlink()
    assert train_once(RECIPE, small).run.checkpoint.is_file()


def test_a_run_with_other_settings_is_refused(small: Budget) -> None:
    train_once(RECIPE, small)
    other = replace(RECIPE, changes=("model.transform.neighbors=5",))
    with pytest.raises(InputError, match="a run with other settings is there"):
        train_once(other, small)


def test_a_run_of_another_version_is_refused(small: Budget) -> None:
    run = train_once(RECIPE, small).run
    run.config.write_text("unheard_of = 1\n" + run.config.read_text())
    with pytest.raises(InputError, match=r"other settings is there .*unheard_of"):
        train_once(RECIPE, small)


def test_an_untrained_network(small: Budget) -> None:
    made = train_once(replace(RECIPE, trained=False), small)
    assert made.steps == 0
    kept = LTENet.from_pretrained(made.run.best)
    torch.manual_seed(0)
    expected, found = LTENet(kept.config).state_dict(), kept.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_no_time(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than 0 are needed"):
        recipe_config(RECIPE, Budget(0, tmp_path))


# --- the linear oracle -------------------------------------------------------------------------


class Linear:
    """Stands in for a network: the target's features are a linear map of the source's."""

    def __init__(self, channels: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.mix = torch.randn(channels, channels, generator=generator)
        self.calls = 0

    def embed(self, points: np.ndarray) -> torch.Tensor:
        self.calls += 1
        coordinates = torch.from_numpy(points).float()
        powers = [coordinates**p for p in range(1, 1 + len(self.mix) // 3)]
        features = torch.cat(powers, dim=1)  # (N, C)
        return features if self.calls % 2 else features @ self.mix


@pytest.mark.parametrize("kind", ["all", "half"])
def test_a_linear_map_between_features_is_found(kind: str) -> None:
    drawn = benchmark_pair(open_benchmark("generated-animal"), 0, points=120)
    same = replace(drawn, target=drawn.source[np.argsort(drawn.partner)], truth=drawn.source)
    tested, indices = linear_match(Linear(9), same, kind)  # type: ignore[arg-type]
    np.testing.assert_array_equal(indices, same.partner)
    known = np.isfinite(tested.truth).all(axis=1)
    assert known.sum() == (120 if kind == "all" else 60)


def test_the_least_squares_map() -> None:
    generator = torch.Generator().manual_seed(1)
    source, truth = torch.randn(50, 6, generator=generator), torch.randn(6, 6, generator=generator)
    torch.testing.assert_close(optimal_map(source, source @ truth.T, "all"), truth)
    kept = optimal_map(source, source, "half-ridge")
    torch.testing.assert_close(kept, torch.eye(6))


# --- whole experiments -------------------------------------------------------------------------


def arguments(tmp_path: Path, *more: str) -> list[str]:
    words = ["-o", str(tmp_path / "out"), "--runs", str(tmp_path / "runs"), "--pairs", "1"]
    return [*words, "--seeds", "0", "--minutes", str(MINUTES), *more]


def test_a_table(small: Budget, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "local-linearity", *arguments(tmp_path, "--json")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((tmp_path / "out" / "local-linearity.json").read_text())
    assert result["command"] == (
        f"ltenet paper local-linearity -o DIR --minutes {MINUTES} --pairs 1 --seeds 0"
    )
    assert {"name", "seeds", "commit", "minutes", "versions", "rows"} <= set(result)
    assert result["rows"][0]["label"] == "DPC without E_r"
    row = result["rows"][3]
    assert row["published"] == {"acc": 20.7, "err": 5.8}
    assert len(row["shared"]["curve"]["mean"]) == 100
    assert row["shared"]["acc_1"]["mean"] == pytest.approx(row["shared"]["curve"]["mean"][4], abs=1)
    assert row["training"]["steps"] >= 1
    text = (tmp_path / "out" / "local-linearity.md").read_text()
    assert "| row | ours: acc 1 % | ours: err_dpc | paper: acc 1 % | paper: err |" in text
    assert "| 20.7 | 5.8 |" in text

    assert main(["paper", "local-linearity", *arguments(tmp_path)]) == 2
    assert "the result exists" in capsys.readouterr().err
    runs = sorted((tmp_path / "runs").glob("*/last.ckpt"))
    before = [run.stat().st_mtime_ns for run in runs]
    assert main(["paper", "local-linearity", *arguments(tmp_path, "--force")]) == 0
    assert [run.stat().st_mtime_ns for run in runs] == before


def test_a_figure(small: Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in PLANS["linear"](tmp_path).rows if row.label.startswith("LTENet, ")]
    plan = Plan(rows=tuple(rows[:4]), samplings=("shared",), plot=True)
    monkeypatch.setitem(PLANS, "linear", lambda runs: plan)
    assert main(["paper", "linear", *arguments(tmp_path)]) == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    drawn = {f"linear-generated-animal-shared.{end}" for end in ("png", "svg")}
    assert written == {"linear.json", "linear.md", *drawn}
    result = json.loads((tmp_path / "out" / "linear.json").read_text())
    assert [row["linear"] for row in result["rows"]] == [None, "all", "half", "half-ridge"]


def test_a_missing_package_costs_one_row(
    small: Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycpd", None)
    rows = (
        Row(label="cpd", setting="animal", method="cpd"),
        Row(label="nearest", setting="animal", method="nearest"),
    )
    config = PaperConfig(data=None, budget=small, cache=tmp_path / "cache", pairs=1, seeds=(0,))
    lacking, fine = run_plan("main", Plan(rows=rows, samplings=("shared",)), config)
    assert "pip install 'ltenet[baselines]'" in lacking["missing"]
    assert fine["shared"]["pairs"] == 1


def test_shapes_rebuilt_in_stages(small: Budget) -> None:
    moments = run_reconstruction(small)
    assert [made.share for made in moments] == list(SHARES)
    steps = [made.steps for made in moments]
    assert steps[0] == 0
    assert steps == sorted(steps)
    assert draw_rebuilt(moments).shape[2] == 3
    again = run_reconstruction(small)
    assert [made.as_dict() for made in again] == [made.as_dict() for made in moments]


def test_two_scans(body: Shape, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("one.ply", "two.ply")]
    for file in files:
        save(body, file)
    words = ["paper", "real", "-o", str(tmp_path / "out"), "--shapes", *files]
    assert main(words) == 0
    result = json.loads((tmp_path / "out" / "real.json").read_text())
    assert [row["map"] for row in result["rows"]] == ["nearest neighbour", "refined"]
    assert result["rows"][0]["coverage, %"] > 95  # one shape, so each point finds itself
    assert {"real.png", "real.svg", "real.md"} <= {p.name for p in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["everything"], 2, "the experiment 'everything' came; one of main, curves"),
        (["design", "--seeds", "x"], 2, "whole numbers with commas"),
        (["design", "--shapes", "a.ply"], 2, "only 'real' takes files"),
        (["real", "--shapes", "a.ply"], 2, "two are needed"),
        (["design"], 4, "name it with --data or in LTENET_DATA"),
        (["real"], 4, "name it with --data or in LTENET_DATA"),
    ],
)
def test_mistakes(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LTENET_DATA", raising=False)
    runs = tmp_path / "runs"
    given = ["paper", *words, "-o", str(tmp_path / "out"), "--runs", str(runs)]
    assert main(given) == code
    assert message in capsys.readouterr().err
    assert not runs.exists()  # nothing is trained that could not be tested
