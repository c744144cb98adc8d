"""Trainings of the rows: each made once, kept in the folder of runs, resumed if it was stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ltenet.errors import InputError, UsageError
from ltenet.evaluation.paper.plan import Recipe
from ltenet.model import LTENet
from ltenet.training.checkpoint import read_checkpoint
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import train
from ltenet.training.runs import RunFolder, new_run, rewrite_config
from ltenet.training.settings import load_config

#: What the rows of all experiments share: no validation, for the budget is short and nothing is
#: chosen; the weights are those of the last step. Checkpoints are frequent, as the runs are short.
_COMMON = ("validation.pairs=0", "checkpoint_minutes=0.5")


class Budget(NamedTuple):
    """What each training may take.

    Attributes
    ----------
    minutes
        Time of each run, the same for all rows.
    runs
        Folder of the runs.
    threads
        Threads of the training.
    """

    minutes: float
    runs: Path
    threads: int = 1


class Trained(NamedTuple):
    """A finished training.

    Attributes
    ----------
    run
        Its folder.
    recipe
        How it was made.
    steps, minutes
        How far it came.
    """

    run: RunFolder
    recipe: Recipe
    steps: int
    minutes: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the result."""
        return {
            "run": self.run.path.name,
            "preset": self.recipe.preset,
            "what": self.recipe.what,
            "changes": list(self.recipe.changes),
            "steps": self.steps,
            "minutes": round(self.minutes, 3),
        }


def recipe_config(recipe: Recipe, budget: Budget) -> TrainingConfig:
    """Return the settings of a row's run: the preset, its changes, stretched over the budget."""
    if not budget.minutes > 0:
        raise UsageError(
            f"{budget.minutes} minutes of training came; more than 0 are needed; try --minutes 2"
        )
    name = f"paper-{recipe.name}-{budget.minutes:g}min"
    changes = [
        *_COMMON,
        f'name="{name}"',
        f"threads={budget.threads}",
        f"pairs.what={recipe.what}",
        *recipe.changes,
    ]
    config = load_config(recipe.preset, changes)
    return replace(config, schedule=config.schedule.scaled_to_minutes(budget.minutes))


def train_once(recipe: Recipe, budget: Budget, *, config: TrainingConfig | None = None) -> Trained:
    """Train a row, or go on with its run, or return it if it is finished.

    Parameters
    ----------
    recipe, budget
        What to train, and how long.
    config
        Its settings; those of `recipe_config` by default. They may be longer than what the run in
        the folder was made with, but no different otherwise.
    """
    config = config or recipe_config(recipe, budget)
    if not recipe.trained:
        return _untrained(recipe, config, budget)
    run = RunFolder(budget.runs / config.name)
    started = run.config.is_file() and run.checkpoint.is_file()
    if started:
        _check_same(run, config)
        done = _finished(run, config)
        if done is not None:
            return Trained(run, recipe, *done)
        rewrite_config(run, config)
    else:
        budget.runs.mkdir(parents=True, exist_ok=True)
        # Without a checkpoint there is nothing to go on from.
        run = new_run(config, budget.runs, force=run.config.is_file())
    result = train(config, run, resume=started)
    return Trained(run, recipe, result.steps, result.minutes)


def _untrained(recipe: Recipe, config: TrainingConfig, budget: Budget) -> Trained:
    """Keep the weights that a training would begin with, as if it had ended there."""
    run = RunFolder(budget.runs / config.name)
    if not (run.best / "config.json").is_file():
        torch.manual_seed(config.seed)
        LTENet(config.model).save_pretrained(run.best, force=True)
    return Trained(run, recipe, 0, 0.0)


def _finished(run: RunFolder, config: TrainingConfig) -> tuple[int, float] | None:
    """Return steps and minutes of a run that came to the end of its schedule; None before that."""
    checkpoint = read_checkpoint(run.checkpoint)
    position = config.schedule.position(
        step=checkpoint.step, pairs_per_step=config.pairs_per_step, seconds=checkpoint.seconds
    )
    complete = position >= config.schedule.length and (run.best / "config.json").is_file()
    return (checkpoint.step, checkpoint.seconds / 60) if complete else None


def _check_same(run: RunFolder, config: TrainingConfig) -> None:
    """Refuse a run of this name that was made otherwise; length and threads may differ."""
    try:
        found = run.read_config()
        same = replace(found, schedule=config.schedule, threads=config.threads) == config
        reason = ""
    except InputError as error:  # written by a version that had other settings
        same, reason = False, f" ({error})"
    if not same:
        raise InputError(
            f"{run.path}: a run with other settings is there{reason}; the one of this row is "
            "needed; choose another folder with --runs, or remove that run"
        )
