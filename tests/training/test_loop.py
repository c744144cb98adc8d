from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.cli.train import Train
from ltenet.errors import InputError, LTENetError, UsageError
from ltenet.method.model import LTENet
from ltenet.training.checkpoint import read_checkpoint
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import train
from ltenet.training.runs import RunFolder, find_run, new_run
from ltenet.training.settings import dump_config, load_config, validated_alike

Settings = Callable[..., TrainingConfig]
Start = Callable[[TrainingConfig], RunFolder]


def same(first: Any, second: Any) -> bool:
    """Whether two nested states are equal to the last bit."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def command(
    *arguments: str, folder: Path, config: TrainingConfig | None = None
) -> subprocess.Popen[str]:
    """Start `ltenet train` in a process of its own."""
    if config is not None:
        (folder / "settings.toml").write_text(dump_config(config), encoding="utf-8")
        arguments = ("settings.toml", *arguments)
    return subprocess.Popen(
        [sys.executable, "-m", "ltenet", "train", *arguments, "--accelerator", "cpu"],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return
    pytest.fail("".join(lines))


def test_a_run_leaves_its_files(small: Settings, start: Start) -> None:
    config = small()
    run = start(config)
    result = train(config, run)
    assert result.steps == 8
    assert {path.name.split(".")[0] for path in run.path.iterdir()} == {
        "best", "config", "events", "last", "log",
    }  # fmt: skip
    assert run.read_config() == config
    records = run.read_log()
    losses = [record for record in records if record["kind"] == "train"]
    assert [record["step"] for record in losses] == list(range(1, 9))
    assert all(math.isfinite(record["total"]) for record in losses)
    checked = [r["step"] for r in records if r["kind"] == "validation/independent"]
    assert checked == [4, 8]
    scores = {r["step"]: r["error"] for r in records if r["kind"] == "validation/independent"}
    assert result.best_score == min(scores.values()) == scores[result.best_step]
    model = LTENet.from_pretrained(run.best)
    assert model.config == config.model
    checkpoint = read_checkpoint(run.checkpoint)
    assert (checkpoint.step, checkpoint.config) == (8, dump_config(config))
    # The average, not the weights themselves, is what was validated and kept.
    if result.best_step == 8:
        assert same(dict(model.state_dict()), checkpoint.average)
        assert not same(checkpoint.model, checkpoint.average)


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    small: Settings, start: Start, tmp_path: Path
) -> None:
    config = small(
        "checkpoint_minutes=0", "name=whole", "schedule.length=16", "optim.batch_size=2",
        "reconstruction.weight=0.1", "self_training.weight=1", "self_training.start=0.75",
    )  # fmt: skip
    whole = start(config)
    train(config, whole)
    process = command("--name", "killed", folder=tmp_path, config=config)
    wait_for(process, "step 5 ")
    process.kill()
    process.communicate()
    killed = find_run("killed", tmp_path / "runs")
    assert 4 <= read_checkpoint(killed.checkpoint).step < 16
    again = command("--resume", "killed", folder=tmp_path)
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    expected, actual = read_checkpoint(whole.checkpoint), read_checkpoint(killed.checkpoint)
    for name in ("step", "best_score", "best_step", "model", "average", "optimizer",
                 "random_states"):  # fmt: skip
        assert same(getattr(expected, name), getattr(actual, name)), name
    timeless = [
        [{k: v for k, v in record.items() if k not in ("minutes", "pairs_per_second")}
         for record in run.read_log()]
        for run in (whole, killed)
    ]  # fmt: skip
    assert timeless[0] == timeless[1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_saves_and_says_how_to_go_on(
    small: Settings, tmp_path: Path, name: str, code: int
) -> None:
    process = command("--set", "schedule.length=100000", folder=tmp_path, config=small())
    wait_for(process, "step 3 ")
    process.send_signal(getattr(signal, name))
    _, told = process.communicate(timeout=300)
    assert process.returncode == code
    assert "ltenet train --resume runs/tiny" in told
    checkpoint = read_checkpoint(tmp_path / "runs" / "tiny" / "last.ckpt")
    assert checkpoint.step >= 3


@pytest.mark.slow
def test_two_processes_are_one_with_the_whole_batch(
    small: Settings, start: Start, tmp_path: Path
) -> None:
    config = small("name=one", "optim.accumulate=2")
    one = start(config)
    train(config, one)
    process = command("--name", "two", "--devices", "2", "--json", folder=tmp_path, config=config)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert json.loads(output)["steps"] == 8  # told once, by the first process
    runs = [one, find_run("two", tmp_path / "runs")]
    logs = [[(r["step"], r.get("total", r.get("error"))) for r in run.read_log()] for run in runs]
    np.testing.assert_allclose(logs[0], logs[1], rtol=2e-4)
    states = [read_checkpoint(run.checkpoint).average for run in runs]
    for name, value in states[0].items():
        torch.testing.assert_close(value, states[1][name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.slow
def test_the_tiny_network_learns(small: Settings, start: Start) -> None:
    config = small(
        "schedule.length=60", "validation.every=5", "validation.pairs=4", "log_every=20",
        "pairs.sampling=shared", "optim.lr=0.01", "optim.ema=0.8", "validation.select=error",
    )  # fmt: skip
    run = start(config)
    train(config, run)
    rows = [r for r in run.read_log() if r["kind"] == "validation/shared"]
    assert rows[-1]["accuracy_5"] > rows[0]["accuracy_5"] + 0.05
    assert rows[-1]["error"] < rows[0]["error"]


@pytest.mark.parametrize(
    "change",
    [
        *("joint=false", "optim.ema=0", "pairs.equal_counts=false", "precision=bf16"),
        "model.matchability=1",
    ],
)
def test_options_of_a_run_work(small: Settings, start: Start, change: str) -> None:
    config = small(
        change, "schedule.length=2", "schedule.warmup=1", "pairs.points=[48, 64]",
        "validation.pairs=0", "reconstruction.weight=1",
    )  # fmt: skip
    run = start(config)
    assert train(config, run).steps == 2
    assert LTENet.from_pretrained(run.best).config == config.model


def test_a_schedule_in_minutes_counts_what_was_used_before(small: Settings, start: Start) -> None:
    config = small(
        "schedule.unit=minutes", "schedule.length=0.01", "schedule.warmup=0.001",
        "validation.pairs=1", "validation.every=1000",
    )  # fmt: skip
    run = start(config)
    first = train(config, run)
    assert 0.01 <= first.minutes < 0.2
    again = train(config, run, resume=True)
    assert (again.steps, again.minutes) == (first.steps, pytest.approx(first.minutes))


def test_a_run_is_not_ended_by_minutes_that_have_passed(small: Settings, start: Start) -> None:
    run = start(small("validation.pairs=0"))
    train(run.read_config(), run)
    settings = run.config.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=r"got --minutes 1e-06 .* expected more than that"):
        Train(resume=str(run.path), minutes=1e-6).run()
    assert run.config.read_text(encoding="utf-8") == settings


def test_a_loss_that_is_not_finite_stops_the_run(small: Settings, start: Start) -> None:
    config = small("optim.lr=1e30", "optim.clip=0", "validation.pairs=0")
    with pytest.raises(LTENetError, match=r"step \d: got a loss of nan, expected a finite number"):
        train(config, start(config))


def test_runs_are_not_overwritten(small: Settings, tmp_path: Path) -> None:
    config = small()
    run = new_run(config, tmp_path)
    (run.path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="got a run that exists, expected a new name"):
        new_run(config, tmp_path)
    assert not (new_run(config, tmp_path, force=True).path / "note.txt").exists()
    (run.path / "note.txt").write_text("mine")
    run.config.unlink()
    with pytest.raises(UsageError, match=r"got a folder without config\.toml"):
        new_run(config, tmp_path, force=True)


def test_damaged_checkpoints_are_told(small: Settings, start: Start) -> None:
    run = start(small())
    with pytest.raises(InputError, match="got no checkpoint"):
        read_checkpoint(run.checkpoint)
    run.checkpoint.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="got a damaged checkpoint"):
        read_checkpoint(run.checkpoint)
    torch.save({"format": 0}, run.checkpoint)
    with pytest.raises(InputError, match="got a checkpoint of format 0, expected format 1"):
        read_checkpoint(run.checkpoint)


def test_another_network_does_not_resume(small: Settings, start: Start) -> None:
    config = small("schedule.length=2", "schedule.warmup=1", "validation.pairs=0")
    run = start(config)
    train(config, run)
    other = load_config(run.config, ["model.encoder.dimension=20", "schedule.length=4"])
    with pytest.raises(LTENetError, match="got a checkpoint of another network"):
        train(other, run, resume=True)


def test_a_score_on_other_pairs_does_not_count(small: Settings, start: Start) -> None:
    config = small("schedule.length=2", "schedule.warmup=1", "validation.every=2")
    run = start(config)
    first = train(config, run)
    longer = "schedule.length=4"
    harder = load_config(run.config, [longer, "pairs.augmentation.noise=0.5"])
    again = train(harder, run, resume=True)
    assert again.best_step == 4  # worse than before, but on other pairs
    assert again.best_score > first.best_score
    same = load_config(run.config, [longer, "validation.every=1"])
    assert validated_alike(dump_config(config), dump_config(same))
    assert not validated_alike(dump_config(config), dump_config(harder))


def test_a_run_killed_before_its_settings_were_written_is_no_run(
    small: Settings, tmp_path: Path
) -> None:
    config = small()
    (tmp_path / config.name).mkdir()
    assert new_run(config, tmp_path).config.is_file()
    with pytest.raises(LTENetError, match="got a run that exists"):
        new_run(config, tmp_path)
