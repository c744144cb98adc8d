"""Runs of the rows: trained once, found again by name, resumed, and settled before every test.

Weights that ship count as the run that they are of.
"""

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
from ltenet.evaluation.paper.shipped import TrainingRecord, find_shipped, same_training
from ltenet.evaluation.peers.learned.learner import find_learner
from ltenet.files import atomic_path
from ltenet.matching.orientation import FILE as ORIENTATION
from ltenet.method.model import LTENet, find_weights, note_files
from ltenet.training.checkpoint import read_checkpoint
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import train
from ltenet.training.runs import RunFolder, new_run, rewrite_config
from ltenet.training.settling import settle

#: Passes of four pairs that BatchNorm statistics are averaged over.
SETTLING_PASSES = 48
#: Folder, among the runs, of what is made of weights that ship: their own folder is only read.
SHIPPED = "shipped"


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
        Folder of the run; of weights that ship, of what is made of them.
    weights
        Folder of the weights with settled statistics.
    recipe, seed
        How the run was made.
    steps, minutes
        Its length; None for minutes that nobody noted.
    pairs_seen
        Of another system, whose batches are its own; None for ours.
    shipped
        Record of weights that ship; None for those of a run on this machine.
    """

    run: RunFolder
    weights: Path
    recipe: Recipe | PeerRecipe
    seed: int
    steps: int
    minutes: float | None
    pairs_seen: int | None = None
    shipped: TrainingRecord | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the result."""
        return {
            "run": self.run.path.name,
            "preset": self.recipe.preset,
            "what": self.recipe.what,
            "changes": list(self.recipe.changes),
            "seed": self.seed,
            "steps": self.steps,
            "minutes": None if self.minutes is None else round(self.minutes, 3),
            **({} if self.pairs_seen is None else {"pairs_seen": self.pairs_seen}),
            **({} if self.shipped is None else {"shipped": self._shipped(self.shipped)}),
        }

    @staticmethod
    def _shipped(record: TrainingRecord) -> dict[str, Any]:
        """Say how weights that ship differ from those of a run here."""
        return {"precision": "half", "passes": record.passes, "commit": record.commit}


def trained(recipe: Recipe | PeerRecipe, seed: int, budget: Budget) -> Trained | Unfinished:
    """Return a row's weights, settled: of a finished run, else those that ship.

    Where neither is there, they are trained if they may be.
    """
    config = recipe_config(recipe, seed, budget)
    if not recipe.trained:
        run = _untrained(config, budget)
        return Trained(run, settled(run, config, budget.passes), recipe, seed, 0, 0.0)
    run = RunFolder(budget.runs / config.name)
    done = finished(run, config)
    if done is None and (found := find_shipped(config)) is not None:
        length = found.record.steps, found.record.minutes
        run = RunFolder(budget.runs / SHIPPED / config.name)  # a training may need its own folder
        return Trained(run, found.weights, recipe, seed, *length, shipped=found.record)
    if done is None:
        if not budget.train:
            step = read_checkpoint(run.checkpoint).step if run.checkpoint.is_file() else 0
            counted = config.schedule.unit == "steps"
            return Unfinished(config.name, step, int(config.schedule.length) if counted else 0)
        done = train_on(run, config)
    if isinstance(recipe, PeerRecipe):  # tested as its authors do, with its running statistics
        return Trained(run, run.best, recipe, seed, *done, done[0] * config.pairs_per_step)
    return Trained(run, settled(run, config, budget.passes), recipe, seed, *done)


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


def with_orientation(made: Trained, *, like: str) -> Path:
    """Copy weights into their run's folder, with the orientation networks of weights that ship."""
    networks = find_weights(like) / ORIENTATION
    if not networks.is_file():
        raise MissingError(
            f"got no orientation networks with the weights '{like}', expected {ORIENTATION}; try a "
            "version of ltenet that ships them"
        )
    folder = made.run.path / "oriented"
    folder.mkdir(parents=True, exist_ok=True)
    for source in (networks, made.weights / "model.safetensors", made.weights / "config.json"):
        with atomic_path(folder / source.name, force=True) as temporary:
            shutil.copyfile(source, temporary)
    note_files(folder)  # weights that ship have more of them
    return folder


def settled(run: RunFolder, config: TrainingConfig, passes: int = SETTLING_PASSES) -> Path:
    """Settle a run's weights, once for each state of them; returns their folder."""
    folder = run.path / "settled"
    if settled_passes(run) != passes:
        origin = _origin(run)
        origin.unlink(missing_ok=True)
        settled_model(run.best, config, passes).save_pretrained(folder, force=True)
        with atomic_path(origin, force=True) as temporary:
            key = f"{file_hash(run.best / 'model.safetensors')} {passes} passes\n"
            temporary.write_text(key, encoding="utf-8")
    return folder


def settled_passes(run: RunFolder) -> int | None:
    """Return the passes that a run's present weights were settled with; None if they were not."""
    if not _origin(run).is_file():
        return None
    weights, passes, _ = _origin(run).read_text(encoding="utf-8").split(" ")
    return int(passes) if weights == file_hash(run.best / "model.safetensors") else None


def _origin(run: RunFolder) -> Path:
    """File that tells what the settled weights were made of."""
    return run.path / "settled" / "origin.txt"


def _untrained(config: TrainingConfig, budget: Budget) -> RunFolder:
    """Save the weights that a training begins with."""
    run = RunFolder(budget.runs / config.name)
    if not (run.best / "config.json").is_file():
        torch.manual_seed(config.seed)
        LTENet(config.model).save_pretrained(run.best, force=True)
    return run


def _check_same(run: RunFolder, config: TrainingConfig) -> None:
    """Refuse a run of this name with other settings; it may be shorter, and need not hurry."""
    try:
        found = replace(run.read_config(), schedule=config.schedule)
        same, reason = same_training(found, config), ""
    except InputError as error:  # written by a version that had other settings
        same, reason = False, f" ({error})"
    if not same:
        raise InputError(
            f"{run.path}: got a run with other settings{reason}, expected the one of this row; "
            "try another folder with --runs, or remove that run"
        )
