from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ltenet.data.training_pairs import TrainingPairs
from ltenet.method.model import LTENet
from ltenet.training.checkpoint import read_checkpoint
from ltenet.training.loop import train
from ltenet.training.runs import RunFolder, new_run
from ltenet.training.settings import load_config
from tools.train_queue import (
    ABLATIONS,
    FINISHED,
    MAIN,
    OTHERS,
    OUTLOOK,
    QUEUE,
    ROOT,
    Run,
    state_of,
    table,
)

#: A run of a second or two, for which every step is saved.
SMALL = (
    "model.encoder.widths=[8, 12]", "model.encoder.dimension=16", "model.encoder.neighbors=6",
    "pairs.points=[64, 64]", "optim.batch_size=2", "schedule.warmup=2", "validation.pairs=2",
    "validation.every=5", "log_every=1", "workers=0",
)  # fmt: skip
STEPS = 30
SMALL_RUN = Run("small", "tiny", (*SMALL, f"schedule.length={STEPS}"))
RUNS = (SMALL_RUN, Run("other", command=("this",), weights=FINISHED))


def start(runs: Path) -> subprocess.Popen[str]:
    """Train `RUNS` in a process of its own."""
    script = (
        "from pathlib import Path\n"
        "from tests.tools.test_train_queue import RUNS\n"
        "from tools.train_queue import train\n"
        "try:\n"
        f"    assert train(RUNS, Path({str(runs)!r}), checkpoint_minutes=0) == []\n"
        "except KeyboardInterrupt:\n"
        "    raise SystemExit(130)\n"
    )
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def wait_for_step(runs: Path, step: int) -> None:
    for _ in range(2400):
        if state_of(SMALL_RUN, runs).step >= step:
            return
        time.sleep(0.05)
    pytest.fail(f"the run has not reached step {step}")


@pytest.mark.slow
def test_a_killed_queue_ends_with_the_same_bytes(tmp_path: Path) -> None:
    killed = start(tmp_path)
    wait_for_step(tmp_path, 3)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    stopped = start(tmp_path)
    wait_for_step(tmp_path, state_of(SMALL_RUN, tmp_path).step + 3)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=300)
    assert stopped.returncode == 130
    state = state_of(SMALL_RUN, tmp_path)
    assert not state.done
    assert 3 < state.step < STEPS
    last = start(tmp_path)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    assert [state_of(run, tmp_path)[:2] for run in RUNS] == [(True, STEPS), (True, 0)]

    config = load_config("tiny", [*SMALL_RUN.settings, "threads=1"])
    whole = new_run(config, tmp_path / "undisturbed")
    train(config, whole)
    broken = RunFolder(tmp_path / SMALL_RUN.name)
    files = [run.best / "model.safetensors" for run in (whole, broken)]
    assert files[0].read_bytes() == files[1].read_bytes()
    states = [read_checkpoint(run.checkpoint).model for run in (whole, broken)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])


def test_what_is_done_is_skipped_until_its_recipe_changes(tmp_path: Path) -> None:
    run = RUNS[0]
    assert state_of(run, tmp_path) == (False, 0, None, None, False)
    folder = tmp_path / run.name
    folder.mkdir()
    (folder / FINISHED).write_text(json.dumps(run.recipe()), encoding="utf-8")
    assert state_of(run, tmp_path).done
    longer = Run(run.name, run.preset, (*run.settings, "schedule.length=60"))
    assert not state_of(longer, tmp_path).done
    lines = table(RUNS, tmp_path).splitlines()
    assert lines[1].split()[:3] == ["small", "done", "0"]
    assert lines[2].split()[:4] == ["other", "to", "do", "0"]


def test_entries_are_runs_that_can_start() -> None:
    names = [run.name for run in QUEUE]
    assert len(set(names)) == len(names)
    assert names[:4] == ["orientation", "pieces", "human", "animal"]
    for run in QUEUE:
        assert (run.preset is None) == bool(run.command)
        if run.preset is not None:
            config = load_config(run.preset, run.settings)
            if run in OTHERS:  # other systems get equal minutes, as their steps cost differently
                assert (config.schedule.unit, config.schedule.length) == ("minutes", 30)
                assert config.system == run.preset
                continue
            assert config.schedule.unit == "steps"  # minutes would depend on what else runs


def test_rows_of_a_table_begin_alike_and_see_the_same_pairs() -> None:
    """Two methods with one seed: equal first weights, equal pairs in equal order."""
    for paper, dpc in zip(MAIN[::2], MAIN[1::2], strict=True):
        configs = [load_config(str(run.preset), run.settings) for run in (paper, dpc)]
        ours, theirs = configs
        assert {config.schedule.length for config in configs} == {2500}
        assert {config.pairs_per_step for config in configs} == {8}
        assert ours.schedule.warmup == 83
        assert theirs.schedule.milestones == (1500, 2250)
        states = []
        for config in configs:
            torch.manual_seed(config.seed)
            states.append(LTENet(config.model).state_dict())
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])
        first, second = (TrainingPairs(config.pairs, config.seed).draw(7) for config in configs)
        assert (first.source == second.source).all()
        assert (first.target == second.target).all()


def test_ablations_are_equally_long_and_decide_in_order() -> None:
    for run in ABLATIONS:
        config = load_config(str(run.preset), run.settings)
        scale = (2500, 8) if run.name.startswith(("paper-", "dpc-")) else (1000, 4)
        assert (config.schedule.length, config.pairs_per_step) == scale
    names = [run.name for run in ABLATIONS]
    assert {"ablation-d-1024", "ablation-k-49", "ablation-emd", "ablation-full-seed1"} <= set(names)
    # Rows with one seed decide nothing, so they come last.
    single = [name for name in names if f"{name}-seed1" not in names and "-seed1" not in name]
    last = [name for name in single if name != "ablation-stages"]
    assert names[-len(last) :] == last


def test_another_seed_is_another_start() -> None:
    runs = {run.name: run for run in (*MAIN, *ABLATIONS)}
    pair = [runs[name] for name in ("ablation-full", "ablation-full-seed1")]
    configs = [load_config("paper", run.settings) for run in pair]
    assert [config.seed for config in configs] == [0, 1]
    first, second = (TrainingPairs(config.pairs, config.seed).draw(0) for config in configs)
    assert (first.source != second.source).any()


def test_what_the_paper_leaves_for_later_waits_for_all_else() -> None:
    assert len(OUTLOOK) == 5
    assert QUEUE[-5:] == OUTLOOK
    for run in OUTLOOK:
        config = load_config("paper", run.settings)
        assert (config.schedule.length, config.pairs_per_step) == (1000, 4)
        assert config.model != load_config("paper").model  # each changes the method
