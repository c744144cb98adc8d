"""How long a run is and how its learning rate moves, in steps, epochs or minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from ltenet.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Length of the run and course of the learning rate; every length is in `unit`.

    Attributes
    ----------
    unit
        "steps" of the optimiser, "epochs" of `epoch_pairs` pairs, or "minutes" of this machine,
        interruptions not counted.
    length
        When the run ends.
    kind
        "cosine" falls to `final`; "multistep" multiplies by `factor` at every milestone;
        "constant" stays.
    warmup
        The rate first rises linearly over this length.
    final
        Share of the learning rate at the end of the cosine.
    milestones
        Where "multistep" lowers the rate.
    factor
        What it is multiplied by there.
    epoch_pairs
        Pairs in an epoch: generated pairs never end, so this is a convention.
    """

    unit: Literal["steps", "epochs", "minutes"] = "steps"
    length: float = 10_000.0
    kind: Literal["cosine", "multistep", "constant"] = "cosine"
    warmup: float = 200.0
    final: float = 0.0
    milestones: tuple[float, ...] = ()
    factor: float = 0.1
    epoch_pairs: int = 1800

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))
        if not (0 <= self.warmup < self.length < math.inf) or self.epoch_pairs < 1:
            raise InputError(
                f"schedule: got length {self.length}, warm-up {self.warmup} and epochs of "
                f"{self.epoch_pairs} pairs, expected a length above the warm-up and at least one "
                "pair; try a warm-up of 0"
            )
        if not (0 <= self.final <= 1 and 0 < self.factor <= 1):
            raise InputError(
                f"schedule: got final {self.final} and factor {self.factor}, expected shares up "
                "to 1; try 0 and 0.1"
            )

    def scaled_to(
        self, unit: Literal["steps", "epochs", "minutes"], length: float
    ) -> ScheduleConfig:
        """Return the same course of the learning rate over another length.

        A "multistep" schedule counts as over at 10/9 of its last milestone: DPC's ends at epoch 10
        of 300, and what follows at a hundredth of the rate is no part of its course.
        """
        own = self.length
        if self.kind == "multistep" and self.milestones:
            own = min(own, self.milestones[-1] / 0.9)
        stretch = length / own
        return replace(
            self,
            unit=unit,
            length=float(length),
            warmup=self.warmup * stretch,
            milestones=tuple(milestone * stretch for milestone in self.milestones),
        )

    def scaled_to_minutes(self, minutes: float) -> ScheduleConfig:
        """Return the same course of the learning rate over `minutes`."""
        return self.scaled_to("minutes", minutes)

    def position(self, *, step: int, pairs_per_step: int, seconds: float) -> float:
        """Where the run is, in `unit`, after `step` steps and `seconds` of work."""
        if self.unit == "steps":
            return float(step)
        if self.unit == "epochs":
            return step * pairs_per_step / self.epoch_pairs
        return seconds / 60

    def rate(self, position: float) -> float:
        """Share of the learning rate at a position."""
        if position < self.warmup:
            # A little ahead, so that the very first step is not lost on a rate of 0.
            start = 1.0 if self.unit == "steps" else 0.01 * self.warmup
            return min(1.0, (position + start) / self.warmup)
        if self.kind == "multistep":
            return float(self.factor ** sum(position >= at for at in self.milestones))
        if self.kind == "constant":
            return 1.0
        passed = min(1.0, (position - self.warmup) / (self.length - self.warmup))
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * passed))
