"""A run that takes seconds: a small network, few points, animals, which are quick to draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ltenet.training.config import TrainingConfig
from ltenet.training.runs import RunFolder, new_run
from ltenet.training.settings import load_config

SMALL = (
    "workers=0",
    "threads=1",
    "log_every=1",
    "model.encoder.widths=[8, 12]",
    "model.encoder.dimension=16",
    "model.encoder.neighbors=6",
    "pairs.what=animal",
    "pairs.points=[64, 64]",
    "schedule.length=8",
    "schedule.warmup=2",
    "validation.pairs=2",
    "validation.every=4",
)


@pytest.fixture
def small() -> Callable[..., TrainingConfig]:
    """Settings of a small run, with changes."""
    return lambda *changes: load_config("tiny", [*SMALL, *changes])


@pytest.fixture
def start(tmp_path: Path) -> Callable[[TrainingConfig], RunFolder]:
    """Folder of a new run."""
    return lambda config: new_run(config, tmp_path / "runs")
