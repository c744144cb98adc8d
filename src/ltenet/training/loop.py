"""The training loop, all of it.

Each step: next batch -> loss of the trainee -> gradient -> optimiser -> moving average. In
between: a line of log, a validation, a checkpoint. What a step does depends on the settings, the
step's number and the state in the checkpoint alone (with a schedule in minutes also on the clock),
so a run that was killed goes on as if it had not been.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass

import torch
from torch import nn

from ltenet.data.loading import Drawable, load_batches
from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import LTENetError, Stopped, UsageError
from ltenet.method.model import LTENet
from ltenet.training.average import WeightAverage
from ltenet.training.checkpoint import (
    Checkpoint,
    random_states,
    read_checkpoint,
    restore_random_states,
    write_checkpoint,
)
from ltenet.training.config import OptimConfig, TrainingConfig
from ltenet.training.display import Display, Speed
from ltenet.training.interrupts import caught_interrupts
from ltenet.training.log import RunLog
from ltenet.training.processes import (
    agreed_clock,
    rounded_products,
    start_processes,
    summed,
)
from ltenet.training.runs import RunFolder
from ltenet.training.settings import dump_config, validated_alike
from ltenet.training.trainee import EmbeddingTrainee, Trainee
from ltenet.training.validation import (
    HeldBack,
    Validation,
    draw_held_back,
    mean_scores,
    score_sums,
)


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes
    ----------
    steps
        Steps done, those before a resume included.
    minutes
        Time they took.
    best_step, best_score
        Where the selected validation score was lowest, and that score; step 0 is the start.
    start_score
        That score before the first step, where training began with given weights.
    last
        The last validation, None if a resumed run was over already.
    """

    steps: int
    minutes: float
    best_step: int
    best_score: float
    start_score: float | None
    last: Validation | None


@dataclass
class _Best:
    """The lowest selected score so far, and the step it was reached at."""

    score: float = math.inf
    step: int = 0


def train(
    config: TrainingConfig,
    run: RunFolder,
    *,
    resume: bool = False,
    devices: int = 1,
    accelerator: str = "auto",
    pairs: Drawable[TrainingPair] | None = None,
    held_back: HeldBack | None = None,
    initial: LTENet | None = None,
    system: Callable[[TrainingConfig], Trainee] | None = None,
) -> TrainingResult:
    """Train until the schedule ends; files go to the run's folder, progress to stderr.

    Parameters
    ----------
    config
        The settings.
    run
        The folder, made by `new_run`.
    resume
        Go on from the run's checkpoint.
    devices
        Processes on this machine, one for each GPU or share of the CPU's cores.
    accelerator
        "cpu", "gpu", or "auto" for the best there is.
    pairs
        What to train on; by default the pairs of the settings.
    held_back
        What to validate on; by default pairs that training never shows.
    initial
        Weights to begin with instead of random ones; they stay the best until training beats them.
    system
        Makes the network and loss of another system; by default LTENet's.

    Raises
    ------
    KeyboardInterrupt
        After an interrupt, once the checkpoint is written.
    """
    fabric = start_processes(config, devices=devices, accelerator=accelerator)
    shard, shards = fabric.global_rank, fabric.world_size
    torch.manual_seed(config.seed)
    trainee = system(config) if system is not None else EmbeddingTrainee(config, initial)
    if config.sync_norm and shards > 1:
        trainee.share_statistics()
    model = trainee.network
    average = WeightAverage(model.to(fabric.device), config.optim.ema)
    trainee.begin(average)
    bare_optimizer = make_optimizer(model, config.optim)
    network, optimizer = fabric.setup(trainee, bare_optimizer)
    settings = dump_config(config)
    step, spent, best = 0, 0.0, _Best()
    if resume:
        checkpoint = read_checkpoint(run.checkpoint)
        _restore(checkpoint, model, average, bare_optimizer)
        step, spent = checkpoint.step, checkpoint.seconds
        if validated_alike(checkpoint.config, settings):
            best = _Best(checkpoint.best_score, checkpoint.best_step)
    pairs = pairs or trainee.stream(config)
    if held_back is None:
        held_back = draw_held_back(config, shard=shard, shards=shards)
        _require_labels(config, held_back, supervised=trainee.supervised)
        held_back = HeldBack(*(list(map(trainee.prepared, drawn)) for drawn in held_back))
    scores: Validation | None = None
    start_score: float | None = None

    with ExitStack() as stack:
        display = stack.enter_context(Display(config.name, quiet=not fabric.is_global_zero))
        log = stack.enter_context(RunLog(run, step=step)) if fabric.is_global_zero else None
        interrupt = stack.enter_context(caught_interrupts())
        batches = load_batches(
            pairs,
            batch_size=config.optim.batch_size,
            start=step * config.optim.accumulate,
            workers=config.workers,
            shard=shard,
            shards=shards,
        )

        def save(weights: nn.Module) -> None:
            weights.save_pretrained(run.best, force=True)  # type: ignore[operator]

        def validate(step: int) -> Validation:
            """Score the moving average, and keep it if it is the best so far."""
            sums = score_sums(
                average.model, held_back, lambda pair: trainee.score(average.model, pair)
            )  # (2, 1 + scores)
            scores = mean_scores(summed(fabric, sums))
            # With "last" nothing is chosen; the error is what a reader of the log looks for.
            select = config.validation.select
            score = getattr(scores.independent, "error" if select == "last" else select)
            better = select == "last" or score < best.score
            display.validation(step, scores, best=better)
            if better:
                best.score, best.step = score, step
            if log is not None:
                for kind, row in scores._asdict().items():
                    log.write(f"validation/{kind}", step, row._asdict())
                if better:
                    save(average.model)
            return scores

        if initial is not None and config.validation.pairs and step == 0:
            validate(0)
            start_score = best.score
        assert isinstance(batches, Generator)
        stack.enter_context(closing(batches))  # ends the workers, also after an error
        begun = saved = logged = time.monotonic()
        seconds, logged_step = spent, step
        first_progress = progress = _progress(config, step, seconds)
        network.train()

        while progress < 1:
            # --- one step -------------------------------------------------------------------------
            step += 1
            rate = config.optim.lr * config.schedule.rate(_position(config, step - 1, seconds))
            for group in optimizer.param_groups:
                group["lr"] = rate
            for part in range(config.optim.accumulate):
                batch = [trainee.tensors(pair, fabric.device) for pair in next(batches)]
                more = part + 1 < config.optim.accumulate
                with fabric.no_backward_sync(network, enabled=more):
                    loss = network(batch, progress)
                    _require_finite(loss.total.item(), step)
                    with rounded_products(config.precision):
                        fabric.backward(loss.total / config.optim.accumulate)
            if config.optim.clip > 0:
                fabric.clip_gradients(network, optimizer, max_norm=config.optim.clip)
            optimizer.step()
            optimizer.zero_grad()
            average.update(model, step)

            # --- between two steps ----------------------------------------------------------------
            clock = time.monotonic()
            seconds, interrupted = agreed_clock(fabric, spent + clock - begun, interrupt.asked)
            progress = _progress(config, step, seconds)
            done = progress >= 1
            if done or step % config.log_every == 0:
                terms = summed(fabric, torch.stack(loss).detach() / shards).tolist()
                values = dict(zip(loss._fields, terms, strict=True))
                speed = Speed(
                    config.pairs_per_step * (step - logged_step) / (clock - logged),
                    (clock - begun) * (1 - progress) / max(progress - first_progress, 1e-9),
                )
                logged, logged_step = clock, step
                display.losses(step, progress, values, speed)
                if log is not None:
                    figures = {"lr": rate, "pairs_per_second": speed.pairs_per_second}
                    log.write("train", step, {**values, **figures, "minutes": seconds / 60})
            if config.validation.pairs and (done or step % config.validation.every == 0):
                scores = validate(step)
                logged += time.monotonic() - clock  # the speed is that of training alone
            due = done or interrupted or clock - saved >= 60 * config.checkpoint_minutes
            if log is not None and due:
                write_checkpoint(
                    run.checkpoint,
                    Checkpoint(
                        step=step,
                        seconds=seconds,
                        best_score=best.score,
                        best_step=best.step,
                        config=settings,
                        model=model.state_dict(),
                        average=average.model.state_dict(),
                        optimizer=bare_optimizer.state_dict(),
                        random_states=random_states(),
                    ),
                )
                saved = clock
            if interrupted:
                raise Stopped(interrupt.number)
        if log is not None and not config.validation.pairs:
            save(average.model)  # nothing to choose by: the last
    return TrainingResult(step, seconds / 60, best.step, best.score, start_score, scores)


def make_optimizer(model: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    """Return AdamW, or Adam with its weight decay as L2."""
    kind = torch.optim.AdamW if config.kind == "adamw" else torch.optim.Adam
    return kind(
        model.parameters(), lr=config.lr, betas=config.betas, weight_decay=config.weight_decay
    )


def _position(config: TrainingConfig, step: int, seconds: float) -> float:
    """Where the run is, in the unit of its schedule."""
    return config.schedule.position(
        step=step, pairs_per_step=config.pairs_per_step, seconds=seconds
    )


def _progress(config: TrainingConfig, step: int, seconds: float) -> float:
    """Share of the run that is over."""
    return _position(config, step, seconds) / config.schedule.length


def _require_labels(config: TrainingConfig, held_back: HeldBack, *, supervised: bool) -> None:
    """Refuse to train by labels, or to choose by them, where the pairs have none."""
    if not held_back.independent or any(pair.source_known.any() for pair in held_back.independent):
        return
    if supervised:
        raise UsageError(
            f"got '{config.pairs.what}', whose correspondences are not known, for {config.system}, "
            "expected pairs with labels; try generated shapes, or a system without supervision"
        )
    if config.known.weight or config.validation.select == "error":
        needs = "known.weight" if config.known.weight else "validation.select=error"
        raise UsageError(
            f"got {needs} for '{config.pairs.what}', whose correspondences are not known, expected "
            "an objective without labels; try --set known.weight=0 --set reconstruction.weight=1 "
            "--set validation.select=cycle"
        )


def _require_finite(loss: float, step: int) -> None:
    if not math.isfinite(loss):
        raise LTENetError(
            f"step {step}: got a loss of {loss}, expected a finite number; try a lower optim.lr, "
            "or optim.clip=1, from the last checkpoint on"
        )


def _restore(
    checkpoint: Checkpoint,
    model: nn.Module,
    average: WeightAverage[nn.Module],
    optimizer: torch.optim.Optimizer,
) -> None:
    try:
        model.load_state_dict(checkpoint.model)
        average.model.load_state_dict(checkpoint.average)
        optimizer.load_state_dict(checkpoint.optimizer)
    except (RuntimeError, ValueError) as error:
        raise LTENetError(
            f"got a checkpoint of another network ({str(error).splitlines()[0]}), expected one of "
            "the run's own; try resuming without changes to the model's settings"
        ) from None
    restore_random_states(checkpoint.random_states)
