"""Settings of a training run as frozen dataclasses; `settings.py` reads and writes them as TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ltenet.data.pair_config import PairConfig
from ltenet.errors import InputError
from ltenet.method.losses import ObjectiveConfig
from ltenet.method.model import ModelConfig
from ltenet.refinement.options import BendingConfig
from ltenet.training.schedule import ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class ReconstructionTerm:
    """The paper's objective, which needs no labels.

    Attributes
    ----------
    weight
        Share of the whole loss; 0 leaves it out.
    objective
        The paper's lambdas. Weights and divergence belong to the model's settings.
    """

    weight: float = 0.0
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)

    def __post_init__(self) -> None:
        _require("reconstruction.weight", self.weight, self.weight >= 0, "at least 0")


@dataclass(frozen=True, kw_only=True)
class KnownTerm:
    """The known correspondences of generated shapes.

    Cross-entropy between the softmax of the similarities and a Gaussian around the true position.

    Attributes
    ----------
    weight
        Share of the whole loss; 0 leaves it out.
    temperature
        Cosine similarities are divided by it.
    width
        Standard deviation of that Gaussian, in the unit of the normalised shapes.
    matchability
        Weight, beside the correspondences, of telling which points have a partner; for networks
        with such blocks.
    """

    weight: float = 0.0
    temperature: float = 0.05
    width: float = 0.03
    matchability: float = 1.0

    def __post_init__(self) -> None:
        _require("known.weight", self.weight, self.weight >= 0, "at least 0")
        _require("known.temperature", self.temperature, self.temperature > 0, "more than 0")
        _require("known.width", self.width, self.width > 0, "more than 0")
        share = self.matchability
        _require("known.matchability", share, share >= 0, "at least 0")


@dataclass(frozen=True, kw_only=True)
class SelfTrainingTerm:
    """Learning from the network's own refined maps, without labels.

    The moving average of the weights embeds a pair, the coherent refinement turns the features into
    smooth maps in both directions, and points whose round trip ends where it began become targets
    of the cross-entropy that known correspondences have.

    Attributes
    ----------
    weight
        Share of the whole loss; 0 leaves it out.
    start
        Share of the run after which it begins; earlier features are not worth refining.
    reconstruction
        Factor of the paper's objective from then on: 0 replaces it, 1 keeps it beside.
    keep
        Largest distance between a point and the end of its round trip.
    least
        Pairs that keep a smaller share of their points are skipped: their map is wrong as a whole.
    temperature, width
        As for known correspondences.
    refinement
        How the maps are refined.
    """

    weight: float = 0.0
    start: float = 0.1
    reconstruction: float = 0.0
    keep: float = 0.05
    least: float = 0.0
    temperature: float = 0.05
    width: float = 0.03
    refinement: BendingConfig = field(default_factory=BendingConfig)

    def __post_init__(self) -> None:
        _require("self_training.weight", self.weight, self.weight >= 0, "at least 0")
        _require("self_training.start", self.start, 0 <= self.start < 1, "a share below 1")
        share = self.reconstruction
        _require("self_training.reconstruction", share, share >= 0, "at least 0")
        _require("self_training.keep", self.keep, self.keep > 0, "more than 0")
        _require("self_training.least", self.least, 0 <= self.least <= 1, "a share up to 1")
        temperature = self.temperature
        _require("self_training.temperature", temperature, temperature > 0, "more than 0")
        _require("self_training.width", self.width, self.width > 0, "more than 0")


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """The optimiser and its batches.

    Attributes
    ----------
    kind
        "adamw": decoupled weight decay; "adam": weight decay as L2, added to the gradient.
    lr, betas, weight_decay
        As in the paper by default.
    clip
        Largest norm of the gradient; 0 does not clip.
    ema
        Decay of the moving average of the weights, which validation and `best/` use; it grows
        from 0.1 to this over the first steps. 0 uses the weights themselves.
    batch_size
        Pairs that share one pass and its BatchNorm statistics, over all processes.
    accumulate
        Passes whose gradients are averaged in one step.
    """

    kind: Literal["adamw", "adam"] = "adamw"
    lr: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 5e-4
    clip: float = 0.0
    ema: float = 0.999
    batch_size: int = 8
    accumulate: int = 1

    def __post_init__(self) -> None:
        _require("optim.lr", self.lr, self.lr > 0, "more than 0")
        fine = all(0 <= beta < 1 for beta in self.betas)
        _require("optim.betas", self.betas, fine, "two numbers from 0 to below 1")
        _require("optim.weight_decay", self.weight_decay, self.weight_decay >= 0, "at least 0")
        _require("optim.clip", self.clip, self.clip >= 0, "at least 0")
        _require("optim.ema", self.ema, 0 <= self.ema < 1, "a number from 0 to below 1")
        _require("optim.batch_size", self.batch_size, self.batch_size >= 1, "at least 1")
        _require("optim.accumulate", self.accumulate, self.accumulate >= 1, "at least 1")


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """Validation on held-back generated pairs, never on a benchmark.

    Attributes
    ----------
    pairs
        How many with independent samples, and as many with shared ones; 0 does not validate.
    every
        Steps between validations; there is always one at the end.
    select
        What `best/` has the least of, on independent samples: "error" (mean error, needs the known
        correspondences), "cycle" (mean error of the round trip, no labels) or "loss" (the paper's
        objective, no labels). "last" keeps the last weights, as a table with equal budgets for
        all rows needs.
    """

    pairs: int = 16
    every: int = 500
    select: Literal["error", "cycle", "loss", "last"] = "error"

    def __post_init__(self) -> None:
        _require("validation.pairs", self.pairs, self.pairs >= 0, "at least 0")
        _require("validation.every", self.every, self.every >= 1, "at least 1")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Everything a run depends on.

    Attributes
    ----------
    name
        Of the run, and of its folder.
    seed
        Of the first weights and of the pairs.
    system
        What is trained: "ltenet", or another learned method by its name among the peers.
    network
        Settings of that other method's network.
    model
        The network; its `radius` and `center` must be those of the pairs, for every system.
    pairs
        The training pairs.
    reconstruction, known, self_training
        Terms of the loss; at least one has a weight.
    optim, schedule, validation
        See there.
    checkpoint_minutes
        Time between checkpoints; there is always one at the end.
    log_every
        Steps between two lines of the log.
    threads
        Threads of each process; 0 leaves torch's choice.
    workers
        Processes beside each training process that draw pairs; 0 draws them between steps.
    precision
        "32", or "bf16": products of the backward pass round their factors where the hardware has
        instructions for it; all else stays float32.
    sync_norm
        Whether several processes share the statistics of BatchNorm as if they were one.
    joint
        Whether both shapes of a pair share one pass, and its statistics; DPC makes two.
    """

    name: str = "run"
    seed: int = 0
    system: str = "ltenet"
    network: Mapping[str, Any] = field(default_factory=dict)
    model: ModelConfig = field(default_factory=ModelConfig)
    pairs: PairConfig = field(default_factory=PairConfig)
    reconstruction: ReconstructionTerm = field(default_factory=ReconstructionTerm)
    known: KnownTerm = field(default_factory=KnownTerm)
    self_training: SelfTrainingTerm = field(default_factory=SelfTrainingTerm)
    optim: OptimConfig = field(default_factory=OptimConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    checkpoint_minutes: float = 3.0
    log_every: int = 10
    threads: int = 0
    workers: int = 1
    precision: Literal["32", "bf16"] = "32"
    sync_norm: bool = True
    joint: bool = True

    def __post_init__(self) -> None:
        _require("seed", self.seed, self.seed >= 0, "at least 0")
        _require("log_every", self.log_every, self.log_every >= 1, "at least 1")
        _require("threads", self.threads, self.threads >= 0, "at least 0")
        _require("workers", self.workers, self.workers >= 0, "at least 0")
        minutes = self.checkpoint_minutes
        _require("checkpoint_minutes", minutes, minutes >= 0, "at least 0")
        if Path(self.name).name != self.name or self.name in ("", ".", ".."):
            _require("name", self.name, False, "a name without slashes")
        for name in ("radius", "center"):
            ours, theirs = getattr(self.model, name), getattr(self.pairs, name)
            if ours != theirs:
                raise InputError(
                    f"settings: got model.{name} {ours} and pairs.{name} {theirs}, expected the "
                    "same normalisation in training and in use; try setting both"
                )
        if self.system != "ltenet":
            return  # a loss of its own
        if self.network:
            raise InputError(
                f"settings: got network {dict(self.network)}, expected it for other systems only; "
                "try the table `model`"
            )
        late = self.self_training.weight == 0 or self.self_training.start > 0
        if self.reconstruction.weight == self.known.weight == 0 and late:
            raise InputError(
                "settings: got no term of the loss with a weight at the start of the run, expected "
                "at least one; try known.weight=1 or reconstruction.weight=1"
            )

    @property
    def pairs_per_step(self) -> int:
        """Pairs that one step of the optimiser sees, over all processes."""
        return self.optim.batch_size * self.optim.accumulate


def _require(name: str, value: object, fine: bool, needed: str) -> None:
    if not fine:
        raise InputError(
            f"{name}: got {value!r}, expected {needed}; try leaving it out, for the default"
        )
