"""The paper's experiments with networks so small that a training takes a moment."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ltenet.cli import main
from ltenet.data.pairs import benchmark_pair
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.paper import trainings
from ltenet.evaluation.paper.config import PaperConfig
from ltenet.evaluation.paper.experiments import EXPERIMENTS
from ltenet.evaluation.paper.figures import combined
from ltenet.evaluation.paper.linear import linear_match, optimal_map
from ltenet.evaluation.paper.measured import measured_runs
from ltenet.evaluation.paper.plan import CONTROL, SETTINGS, ExperimentPlan, Row, Setting
from ltenet.evaluation.paper.plans import PLANS, planned_runs
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.paper.rebuilt import SHARES, draw_rebuilt, run_reconstruction
from ltenet.evaluation.paper.recipes import SCALES, Recipe
from ltenet.evaluation.paper.runner import run_plan, wanted_trainings
from ltenet.evaluation.paper.trainings import (
    Budget,
    Trained,
    Unfinished,
    recipe_config,
    trained,
)
from ltenet.io import save
from ltenet.method.model import LTENet
from ltenet.shape import Shape
from ltenet.training.runs import RunFolder
from ltenet.training.settling import settle

SMALL = (
    "validation.pairs=0",
    "workers=0",
    "pairs.what=animal",
    "pairs.points=[64, 64]",
    "model.encoder.widths=[8, 12]",
    "model.encoder.neighbors=6",
)
STEPS = 2
RECIPE = Recipe(name="ltenet", preset="paper", what="animal", scale="ablation")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Budget:
    """Small networks, and generated shapes in place of the benchmarks."""

    def changed(recipe: Recipe, seed: int, budget: Budget) -> trainings.TrainingConfig:
        return recipe_config(replace(recipe, changes=(*SMALL, *recipe.changes)), seed, budget)

    monkeypatch.setattr(trainings, "recipe_config", changed)
    monkeypatch.setattr(trainings, "SETTLING_PASSES", 1)
    monkeypatch.setattr("ltenet.evaluation.paper.rebuilt.recipe_config", changed)
    for what in ("human", "animal"):
        setting = Setting("generated-animal", "theirs", "ours", ("generated-animal",))
        monkeypatch.setitem(SETTINGS, what, setting)
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "cache"))
    return Budget(tmp_path / "runs", STEPS, passes=1)


def made(recipe: Recipe, budget: Budget, seed: int = 0) -> Trained:
    found = trained(recipe, seed, budget)
    assert isinstance(found, Trained)
    return found


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
    rows = PLANS[name](None).rows
    labels = {(row.setting, row.label) for row in rows}
    assert len(labels) == len(rows)
    if name != "main":  # peers of the paper that do not exist here are shown as such
        assert set(published(name).rows) <= {row.published for row in rows}
    for what in {row.setting for row in rows}:
        assert any(row.label.startswith(CONTROL) for row in rows if row.setting == what)
    recipes = [row.weights for row in rows if isinstance(row.weights, Recipe)]
    assert len({recipe.scale for recipe in recipes if recipe.trained}) == 1  # a fair table
    for recipe in recipes:
        config = recipe_config(recipe, 1, Budget(tmp_path, 30))
        assert (config.schedule.unit, config.schedule.length) == ("steps", 30)
        assert config.pairs_per_step == SCALES[recipe.scale].pairs
        assert (config.pairs.what, config.seed) == (recipe.what, 1)
        assert config.validation.select == "last"


def test_runs_of_one_name_are_the_same(tmp_path: Path) -> None:
    rows = [row for plan in PLANS.values() for row in plan(tmp_path).rows]
    recipes = {row.weights for row in rows if isinstance(row.weights, Recipe)}
    assert len({recipe.name for recipe in recipes}) == len(recipes)
    planned = planned_runs()
    assert {run.recipe for run in planned} == {recipe for recipe in recipes if recipe.trained}
    assert len(planned) == sum(len(recipe.seeds) for recipe in recipes if recipe.trained)


def test_the_main_table_begins_with_what_is_cheap() -> None:
    """A measurement that is cut off has the paper's own rows, of people and of animals."""
    rows = PLANS["main"](None).rows
    own = ["LTENet", "LTENet, turned upright first", "DPC", CONTROL]
    found = [(row.setting, row.label) for row in rows[:8]]
    assert found == [(what, label) for what in ("human", "animal") for label in own]
    first = next(number for number, row in enumerate(rows) if row.peer)
    assert all(row.peer for row in rows[first:])


def test_the_papers_own_sets_where_they_are(tmp_path: Path) -> None:
    plan = PLANS["main"](tmp_path)
    assert "Not there to train on: surreal, shrec19, smal; generated bodies" in plan.note
    (tmp_path / "surreal").mkdir()
    np.save(tmp_path / "surreal" / "train.npy", np.zeros((3, 90, 3), np.float32))
    plan = PLANS["main"](tmp_path)
    assert "Not there to train on: shrec19, smal;" in plan.note
    own = [row for row in plan.rows if row.label.endswith("trained on surreal")]
    assert [(row.published, row.setting) for row in own] == [("LTENet", "human"), ("DPC", "human")]
    recipe = own[0].weights
    assert isinstance(recipe, Recipe)
    config = recipe.config(0)
    assert (config.pairs.what, config.pairs.data) == ("surreal", str(tmp_path.resolve()))
    assert (config.pairs.pool, config.schedule.length) == (2000, 2500)
    assert config.pairs.sampling == "shared"


# --- training ----------------------------------------------------------------------------------


def test_a_finished_training_is_kept_and_a_longer_one_goes_on(small: Budget) -> None:
    first = made(RECIPE, small)
    assert first.steps == STEPS
    before = first.run.checkpoint.read_bytes(), (first.weights / "origin.txt").stat().st_mtime_ns
    assert made(RECIPE, small) == first
    assert before[0] == first.run.checkpoint.read_bytes()
    assert before[1] == (first.weights / "origin.txt").stat().st_mtime_ns
    config = trainings.recipe_config(RECIPE, 0, small)
    longer = replace(config, schedule=replace(config.schedule, length=STEPS + 2.0))
    assert trainings.finished(first.run, longer) is None
    assert trainings.train_on(first.run, longer)[0] == STEPS + 2
    assert [record["step"] for record in first.run.read_log()][-1] == STEPS + 2


def test_the_queue_trains_the_very_run_of_a_row(small: Budget) -> None:
    """A run made by the command line with a recipe's settings is the finished run of its row."""
    settings = [*replace(RECIPE, changes=SMALL).settings(1, STEPS), "checkpoint_minutes=7"]
    name = RECIPE.run_name(1, STEPS)
    words = ["train", "paper", "--name", name, "--runs", str(small.runs)]
    assert main([*words, *(word for text in settings for word in ("--set", text))]) == 0
    found = made(RECIPE, small._replace(train=False), seed=1)
    assert (found.run.path.name, found.steps, found.seed) == (name, STEPS, 1)


def test_an_unfinished_run_says_how_far_it_is(small: Budget) -> None:
    waiting = small._replace(train=False)
    assert str(trained(RECIPE, 0, waiting)) == "ltenet-2steps: step 0 of 2"
    made(RECIPE, small)
    config = trainings.recipe_config(RECIPE, 0, small)
    longer = replace(config.schedule, length=9.0)
    trainings.rewrite_config(RunFolder(small.runs / config.name), replace(config, schedule=longer))
    assert trained(RECIPE, 0, waiting) == Unfinished("ltenet-2steps", 2, 2)


def test_a_training_without_checkpoint_starts_again(small: Budget) -> None:
    run = made(RECIPE, small).run
    run.checkpoint.unlink()
    assert made(RECIPE, small).run.checkpoint.is_file()


def test_a_run_with_other_settings_is_refused(small: Budget) -> None:
    made(RECIPE, small)
    other = replace(RECIPE, changes=("model.transform.neighbors=5",))
    with pytest.raises(InputError, match="got a run with other settings"):
        trained(other, 0, small)


def test_a_run_of_another_version_is_refused(small: Budget) -> None:
    run = made(RECIPE, small).run
    run.config.write_text("unheard_of = 1\n" + run.config.read_text())
    with pytest.raises(InputError, match=r"other settings .*unheard_of"):
        trained(RECIPE, 0, small)


def test_the_control_has_first_weights_and_settled_statistics(small: Budget) -> None:
    found = made(replace(RECIPE, name="control", trained=False), small, seed=1)
    assert found.steps == 0
    kept = LTENet.from_pretrained(found.weights)
    torch.manual_seed(1)
    expected = LTENet(kept.config)
    weights, state = dict(expected.named_parameters()), kept.state_dict()
    assert all(torch.equal(state[name], weights[name]) for name in weights)
    settle(expected, TrainingPairs(recipe_config_of(small).pairs, 1), 1)
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(state[name], value)
    means = [value for name, value in state.items() if name.endswith("running_mean")]
    assert all(float(mean.abs().max()) > 0 for mean in means)


def recipe_config_of(budget: Budget) -> trainings.TrainingConfig:
    return trainings.recipe_config(RECIPE, 1, budget)


def test_no_steps(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected at least 1"):
        recipe_config(RECIPE, 0, Budget(tmp_path, 0))


def test_spread_over_trainings_and_samplings() -> None:
    """The spread of a row is that of all its values, whichever training they are of."""
    values = np.array([[10.0, 12.0, 11.0], [15.0, 14.0, 19.0]])  # two trainings, three samplings
    figures = [{"mean": own.mean(), "std": own.std()} for own in values]
    names = ("acc_1", "acc_5", "err", "err_percent", "err_dpc", "auc", "coverage")
    tests = [
        dict.fromkeys(names, figure)
        | {"seconds_per_pair": None, "acc_1_pairs": [[figure["mean"]]], "pairs": 1}
        | {"curve": {"mean": [figure["mean"]] * 2, "std": [figure["std"]] * 2}}
        for figure in figures
    ]
    both = combined(tests)
    assert both["acc_1"]["mean"] == pytest.approx(values.mean())
    assert both["acc_1"]["std"] == pytest.approx(values.std())
    assert both["curve"]["std"] == pytest.approx([values.std()] * 2, abs=1e-3)
    assert both["acc_1_pairs"] == [[11.0], [16.0]]


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
    return [*words, "--seeds", "0", "--steps", str(STEPS), *more]


@pytest.mark.slow
def test_a_table(small: Budget, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "local-linearity", *arguments(tmp_path, "--json")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((tmp_path / "out" / "local-linearity.json").read_text())
    assert result["command"] == (
        f"ltenet paper local-linearity -o DIR --steps {STEPS} --pairs 1 --seeds 0"
    )
    assert {"name", "seeds", "commit", "steps", "versions", "rows"} <= set(result)
    assert result["rows"][0]["label"] == "DPC without E_r"
    row = result["rows"][3]
    assert row["published"] == {"acc": 20.7, "err": 5.8}
    assert len(row["shared"]["curve"]["mean"]) == 100
    assert row["shared"]["acc_1"]["mean"] == pytest.approx(row["shared"]["curve"]["mean"][4], abs=1)
    assert [(made["seed"], made["steps"]) for made in row["trainings"]] == [(0, STEPS), (1, STEPS)]
    assert [len(own) for own in row["shared"]["acc_1_pairs"]] == [1, 1]
    assert row["also"]["generated-animal"]["shared"]["acc_1"] == row["shared"]["acc_1"]
    assert result["rows"][4]["label"] == CONTROL
    assert [made["steps"] for made in result["rows"][4]["trainings"]] == [0, 0]
    text = (tmp_path / "out" / "local-linearity.md").read_text()
    assert "| row | ours: acc 1 % | ours: err_dpc | paper: acc 1 % | paper: err |" in text
    assert "| 20.7 | 5.8 |" in text

    assert main(["paper", "local-linearity", *arguments(tmp_path)]) == 2
    assert "got a folder with this result" in capsys.readouterr().err
    runs = sorted((tmp_path / "runs").glob("*/last.ckpt"))
    before = [run.stat().st_mtime_ns for run in runs]
    assert main(["paper", "local-linearity", *arguments(tmp_path, "--force")]) == 0
    assert [run.stat().st_mtime_ns for run in runs] == before


@pytest.mark.slow
def test_rows_land_as_their_runs_finish(
    small: Budget, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out" / "design.json"
    words = ["paper", "design", *arguments(tmp_path, "--continue")]
    assert main(words) == 0
    assert "-o DIR --steps 2 --continue " in json.loads(file.read_text())["command"]
    rows = json.loads(file.read_text())["rows"]
    assert rows[0]["missing"] == (
        "in training: ablation-self-2steps: step 0 of 2; ablation-self-seed1-2steps: step 0 of 2"
    )
    assert "shared" in rows[-1]  # the control needs no training
    recipe = PLANS["design"](None).rows[0].weights
    assert isinstance(recipe, Recipe)
    made(recipe, small)
    capsys.readouterr()
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "row 1 of 7" in told
    assert "row 7 of 7" not in told  # complete rows are not tested again
    again = json.loads(file.read_text())["rows"]
    assert again[-1] == rows[-1]
    assert [made["run"] for made in again[0]["trainings"]] == ["ablation-self-2steps"]
    assert again[0]["waiting"] == ["ablation-self-seed1-2steps: step 0 of 2"]
    assert "in training: ablation-self-seed1-2steps" in file.with_suffix(".md").read_text()


@pytest.mark.slow
def test_a_row_outlives_its_runs(small: Budget, tmp_path: Path) -> None:
    recipe = replace(RECIPE, seeds=(0, 1))
    row = Row(label="ours", setting="animal", weights=recipe)
    plan = ExperimentPlan(rows=(row,), samplings=("shared",))
    config = PaperConfig(
        data=None,
        budget=small._replace(train=False),
        cache=tmp_path / "cache",
        pairs=1,
        seeds=(0,),
    )
    first = made(recipe, small)
    (half,) = run_plan("main", plan, config)
    assert [own["training"]["seed"] for own in half["measured"]] == [0]
    assert half["waiting"] == ["ltenet-seed1-2steps: step 0 of 2"]
    shutil.rmtree(first.run.path)
    (again,) = run_plan("main", plan, config, known=[half])
    assert again == half
    trained(recipe, 1, small)
    (whole,) = run_plan("main", plan, config, known=[again])
    assert whole["waiting"] == []
    assert whole["measured"][0] == half["measured"][0]
    assert [own["seed"] for own in whole["trainings"]] == [0, 1]
    means = [own["shared"]["acc_1"]["mean"] for own in whole["measured"]]
    assert whole["shared"]["acc_1"]["mean"] == pytest.approx(np.mean(means))
    # Trainings of another length are not those of the row.
    longer = replace(config, budget=config.budget._replace(steps=STEPS + 1))
    (lacking,) = run_plan("main", plan, longer, known=[whole])
    assert lacking["missing"].startswith("in training")


def test_runs_that_no_table_waits_for(tmp_path: Path) -> None:
    assert not measured_runs(tmp_path)
    plan = PLANS["outlook"](None)
    rows = []
    for row in plan.rows:
        assert isinstance(row.weights, Recipe)
        measured = [
            {"training": own, **{key: {} for key in plan.samplings}}
            for own in wanted_trainings(row.weights)
        ]
        rows.append({"setting": row.setting, "label": row.label, "measured": measured})
    (tmp_path / "outlook.json").write_text(json.dumps({"rows": rows}))
    found = measured_runs(tmp_path)
    assert "ablation-mlle" in found
    assert "ablation-full" not in found  # other tables have it, too
    rows[1]["measured"][0]["training"]["steps"] += 1
    (tmp_path / "outlook.json").write_text(json.dumps({"rows": rows}))
    assert len(measured_runs(tmp_path)) == len(found) - 1


@pytest.mark.slow
def test_a_figure(small: Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in PLANS["linear"](tmp_path).rows if row.label.startswith("LTENet, ")]
    plan = ExperimentPlan(rows=tuple(rows[:4]), samplings=("shared",), plot=True)
    monkeypatch.setitem(PLANS, "linear", lambda data: plan)
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
    lacking, fine = run_plan("main", ExperimentPlan(rows=rows, samplings=("shared",)), config)
    assert "pip install 'ltenet[baselines]'" in lacking["missing"]
    assert fine["shared"]["pairs"] == 1


def test_shapes_rebuilt_in_stages(small: Budget) -> None:
    small = small._replace(steps=8)
    with pytest.raises(MissingError, match="step 0 of 1, expected its weights"):
        run_reconstruction(small._replace(train=False))
    moments = run_reconstruction(small)
    assert [made.share for made in moments] == list(SHARES)
    assert [made.steps for made in moments] == [0, 1, 2, 4, 8]
    assert draw_rebuilt(moments).shape[2] == 3
    again = run_reconstruction(small)
    assert [made.as_dict() for made in again] == [made.as_dict() for made in moments]


@pytest.mark.slow
def test_two_scans(body: Shape, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("one.ply", "two.ply")]
    for file in files:
        save(body, file)
    runs = ["--runs", str(tmp_path / "runs")]
    words = ["paper", "real", "-o", str(tmp_path / "out"), *runs, "--shapes", *files]
    assert main(words) == 0
    result = json.loads((tmp_path / "out" / "real.json").read_text())
    assert [row["map"] for row in result["rows"]] == [
        "nearest neighbour", "refined", "paper's weights, nearest neighbour",  # these ship
    ]  # fmt: skip
    assert result["rows"][0]["coverage, %"] > 95  # one shape, so each point finds itself
    assert {"real.png", "real.svg", "real.md"} <= {p.name for p in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["everything"], 2, "got the experiment 'everything', expected one of main, curves"),
        (["design", "--seeds", "x"], 2, "whole numbers with commas"),
        (["design", "--shapes", "a.ply"], 2, "only 'real' has it"),
        (["real", "--shapes", "a.ply"], 2, "expected two"),
        (["design"], 4, "try --data DIR, or set LTENET_DATA"),
        (["real"], 4, "try --data DIR, or set LTENET_DATA"),
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
