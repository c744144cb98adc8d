"""Training by torchrun, as on a cluster: two processes take the steps of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ltenet.training.config import TrainingConfig
from ltenet.training.loop import train
from ltenet.training.runs import RunFolder, find_run
from ltenet.training.settings import dump_config


@pytest.mark.slow
def test_torchrun_with_two_processes_is_one(
    small: Callable[..., TrainingConfig],
    start: Callable[[TrainingConfig], RunFolder],
    tmp_path: Path,
) -> None:
    config = small("name=one", "optim.accumulate=2")
    one = start(config)
    train(config, one)
    (tmp_path / "settings.toml").write_text(dump_config(config), encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["-m", "ltenet", "train", "settings.toml", "--name", "two", "--accelerator", "cpu"]
    found = subprocess.run(
        [sys.executable, *launcher, *words, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["steps"] == 8  # told once, by the first process
    runs = [one, find_run("two", tmp_path / "runs")]
    logs = [[(r["step"], r.get("total", r.get("error"))) for r in run.read_log()] for run in runs]
    np.testing.assert_allclose(logs[0], logs[1], rtol=2e-4)
