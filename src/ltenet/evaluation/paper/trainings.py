"""Runs of the rows: trained once, found again by name, resumed, and settled before every test."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ltenet.data.set_pairs import open_pairs
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.evaluation.bench.provenance import file_hash
from ltenet.evaluation.paper.recipes import PeerRecipe, Recipe
from ltenet.evaluation.peers.learned.learner import find_learner
from ltenet.files import atomic_path
from ltenet.matching.orientation import FILE as ORIENTATION
from ltenet.method.model import LTENet, find_weights
from ltenet.training.checkpoint import read_checkpoint
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import train
from ltenet.training.runs import RunFolder, new_run, rewrite_config
from ltenet.training.settling import settle

#: Passes of four pairs that BatchNorm statistics are averaged over.
SETTLING_PASSES = 48


class Budget(NamedTuple):
    """Where and how the rows are trained.

    Attributes
    ----------
    runs
        Folder of the runs.
    steps
        Length of every run; None for the length of its scale.
    threads
        Threads of a training.
    train
        Whether to train what is not finished; else its row waits.
    passes
        Passes of four pairs to settle BatchNorm statistics with.
    """

    runs: Path
    steps: int | None = None
    threads: int = 1
    train: bool = True
    passes: int = SETTLING_PASSES


class Unfinished(NamedTuple):
    """How far a run is that cannot be tested yet.

    Attributes
    ----------
    run
        Its name.
    step, steps
        Steps done, and in all; 0 in all where the run is measured in minutes.
    """

    run: str
    step: int
    steps: int

    def __str__(self) -> str:
        whole = f" of {self.steps:,}" if self.steps else ""
        return f"{self.run}: step {self.step:,}{whole}"


class Trained(NamedTuple):
    """Weights that are ready for the test.

    Attributes
    ----------
    run
        Folder of the run.
    weights
        Folder of the weights with settled statistics.
    recipe, seed
        How the run was made.
    steps, minutes
        Its length.
    pairs_seen
        Of another system, whose batches are its own; None for ours.
    """

    run: RunFolder
    weights: Path
    recipe: Recipe | PeerRecipe
    seed: int
    steps: int
    minutes: float
    pairs_seen: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the result."""
        return {
            "run": self.run.path.name,
            "preset": self.recipe.preset,
            "what": self.recipe.what,
            "changes": list(self.recipe.changes),
            "seed": self.seed,
            "steps": self.steps,
            "minutes": round(self.minutes, 3),
            **({} if self.pairs_seen is None else {"pairs_seen": self.pairs_seen}),
        }


def trained(recipe: Recipe | PeerRecipe, seed: int, budget: Budget) -> Trained | Unfinished:
    """Return a row's weights, settled; train them if they are not finished and may be trained."""
    config = recipe_config(recipe, seed, budget)
    if not recipe.trained:
        run = _untrained(config, budget)
        return Trained(run, _settled(run, config, budget), recipe, seed, 0, 0.0)
    run = RunFolder(budget.runs / config.name)
    done = finished(run, config)
    if done is None:
        if not budget.train:
            step = read_checkpoint(run.checkpoint).step if run.checkpoint.is_file() else 0
            counted = config.schedule.unit == "steps"
            return Unfinished(config.name, step, int(config.schedule.length) if counted else 0)
        done = train_on(run, config)
    if isinstance(recipe, PeerRecipe):  # tested as its authors do, with its running statistics
        return Trained(run, run.best, recipe, seed, *done, done[0] * config.pairs_per_step)
    return Trained(run, _settled(run, config, budget), recipe, seed, *done)


def recipe_config(recipe: Recipe | PeerRecipe, seed: int, budget: Budget) -> TrainingConfig:
    """Return the settings of a row's run."""
    if budget.steps is not None and budget.steps < 1:
        raise UsageError(
            f"got {budget.steps} steps of training, expected at least 1; try --steps 100"
        )
    return recipe.config(seed, budget.steps, threads=budget.threads)


def finished(run: RunFolder, config: TrainingConfig) -> tuple[int, float] | None:
    """Return steps and minutes of a run at the end of its schedule; None before that."""
    if not (run.config.is_file() and run.checkpoint.is_file()):
        return None
    _check_same(run, config)
    if run.read_config().schedule != config.schedule or not (run.best / "config.json").is_file():
        return None
    checkpoint = read_checkpoint(run.checkpoint)
    position = config.schedule.position(
        step=checkpoint.step,
        pairs_per_step=config.pairs_per_step,
        seconds=checkpoint.seconds,
    )
    complete = position >= config.schedule.length
    return (checkpoint.step, checkpoint.seconds / 60) if complete else None


def train_on(run: RunFolder, config: TrainingConfig) -> tuple[int, float]:
    """Train a run to the end of its schedule, from its checkpoint if it has one."""
    started = run.config.is_file() and run.checkpoint.is_file()
    if started:
        _check_same(run, config)
        rewrite_config(run, config)
    else:
        run.path.parent.mkdir(parents=True, exist_ok=True)
        # Without a checkpoint there is nothing to resume.
        run = new_run(config, run.path.parent, force=run.config.is_file())
    own = config.system == "ltenet"
    system = None if own else find_learner(config.system).from_config
    result = train(config, run, resume=started, system=system)
    return result.steps, result.minutes


def settled_model(folder: Path, config: TrainingConfig, passes: int) -> LTENet:
    """Return weights whose BatchNorm statistics are those of the training pairs."""
    model = LTENet.from_pretrained(folder)
    settle(model, open_pairs(config.pairs, config.seed), passes)
    return model


def with_orientation(weights: Path, *, like: str) -> Path:
    """Copy weights beside themselves, with the orientation networks of weights that ship."""
    networks = find_weights(like) / ORIENTATION
    if not networks.is_file():
        raise MissingError(
            f"got no orientation networks with the weights '{like}', expected {ORIENTATION}; try a "
            "version of ltenet that ships them"
        )
    folder = weights.parent / "oriented"
    folder.mkdir(exist_ok=True)
    for source in (networks, weights / "model.safetensors", weights / "config.json"):
        with atomic_path(folder / source.name, force=True) as temporary:
            shutil.copyfile(source, temporary)
    return folder


def _settled(run: RunFolder, config: TrainingConfig, budget: Budget) -> Path:
    """Settle a run's weights, once for each state of them; returns their folder."""
    folder = run.path / "settled"
    origin = folder / "origin.txt"
    key = f"{file_hash(run.best / 'model.safetensors')} {budget.passes} passes\n"
    if not (origin.is_file() and origin.read_text(encoding="utf-8") == key):
        origin.unlink(missing_ok=True)
        settled_model(run.best, config, budget.passes).save_pretrained(folder, force=True)
        with atomic_path(origin, force=True) as temporary:
            temporary.write_text(key, encoding="utf-8")
    return folder


def _untrained(config: TrainingConfig, budget: Budget) -> RunFolder:
    """Save the weights that a training begins with."""
    run = RunFolder(budget.runs / config.name)
    if not (run.best / "config.json").is_file():
        torch.manual_seed(config.seed)
        LTENet(config.model).save_pretrained(run.best, force=True)
    return run


def _check_same(run: RunFolder, config: TrainingConfig) -> None:
    """Refuse a run of this name with other settings; it may be shorter, and need not hurry."""
    own = {name: getattr(config, name) for name in ("schedule", "threads", "checkpoint_minutes")}
    try:
        same, reason = replace(run.read_config(), **own) == config, ""
    except InputError as error:  # written by a version that had other settings
        same, reason = False, f" ({error})"
    if not same:
        raise InputError(
            f"{run.path}: got a run with other settings{reason}, expected the one of this row; "
            "try another folder with --runs, or remove that run"
        )
