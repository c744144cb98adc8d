"""How the networks of the tables are trained: one definition for the queue and for the tests.

All runs of a table have the same length, see the same pairs in the same order and begin with the
same weights; they differ in what the table is about. Lengths are in steps, so that a run does not
depend on what else the machine does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from ltenet.training.config import TrainingConfig
from ltenet.training.settings import load_config


class Scale(NamedTuple):
    """Length of a run, in steps of so many pairs."""

    steps: int
    pairs: int


#: Lengths of the runs: of the main comparison and of what builds on it, and of the ablations.
SCALES: dict[Literal["main", "ablation"], Scale] = {
    "main": Scale(2500, 8),
    "ablation": Scale(1000, 4),
}
#: Seeds of the trainings behind a comparison: they vary first weights, shapes and samples.
SEEDS = (0, 1)
#: What the paper leaves for later, by the label of its row: name of the run, and the setting.
OUTLOOK: dict[str, tuple[str, str]] = {
    "MLLE weights": ("mlle", "model.transform.kind=mlle"),
    "geodesic neighbours (ISOLLE)": ("geodesic", "model.transform.choice=geodesic"),
    "elastic net, l1 penalty 1": ("elastic", "model.transform.penalty=1.0"),
    "encoder PointNet": ("pointnet", "model.encoder.kind=pointnet"),
    "encoder spectral (DiffusionNet-style)": ("spectral", "model.encoder.kind=spectral"),
}
#: The validation is a record; the last weights are tested, so that no row is chosen by its error.
#: Products of the backward pass take half precision, in every row: a step is 1.7 times as fast.
_COMMON = (
    "precision=bf16",
    "optim.accumulate=1",
    "validation.pairs=16",
    "validation.every=250",
    "validation.select=last",
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training of a row, once for each of its seeds.

    Attributes
    ----------
    name
        Of the run with seed 0; others add their seed.
    preset
        Settings it starts from.
    what
        What it is trained on, as in `PairConfig.what`.
    changes
        Settings that are changed, as ``key=value``.
    scale
        Its length, see `SCALES`.
    seeds
        Seeds of the trainings.
    trained
        False for the weights that a training begins with.
    """

    name: str
    preset: Literal["paper", "dpc"]
    what: str
    changes: tuple[str, ...] = ()
    scale: Literal["main", "ablation"] = "main"
    seeds: tuple[int, ...] = SEEDS
    trained: bool = True

    def run_name(self, seed: int, steps: int | None = None) -> str:
        """Name of a run; one with another number of steps than the scale's says so."""
        name = self.name if seed == 0 else f"{self.name}-seed{seed}"
        return name if steps is None else f"{name}-{steps}steps"

    def settings(self, seed: int, steps: int | None = None) -> tuple[str, ...]:
        """Return all changes to the preset; `steps` replaces those of the scale."""
        scale = SCALES[self.scale]
        return (
            *schedule_settings(self.preset, scale.steps if steps is None else steps),
            f"pairs.what={self.what}",
            f"seed={seed}",
            f"optim.batch_size={scale.pairs}",
            *_COMMON,
            *self.changes,
        )

    def config(self, seed: int, steps: int | None = None, *, threads: int = 1) -> TrainingConfig:
        """Return the settings of a run."""
        own = (f'name="{self.run_name(seed, steps)}"', f"threads={threads}")
        return load_config(self.preset, [*self.settings(seed, steps), *own])


def schedule_settings(preset: str, steps: int) -> tuple[str, ...]:
    """Return the preset's course of the learning rate, over so many steps."""
    common = ("schedule.unit=steps", f"schedule.length={steps}")
    if preset == "paper":
        return (*common, f"schedule.warmup={round(steps / 30)}")  # 10 of 300 epochs
    # DPC divides the rate by ten after six and nine of the ten epochs that move its weights.
    milestones = f"schedule.milestones=[{0.6 * steps:g}, {0.9 * steps:g}]"
    return (*common, "schedule.warmup=0", milestones)


#: Minutes of a training of another system: they differ too much in the cost of a step to be given
#: equal steps.
PEER_MINUTES = 30.0


@dataclass(frozen=True, kw_only=True)
class PeerRecipe:
    """A training of another learned system, all of them equally long in minutes.

    Attributes
    ----------
    system
        Its name among the peers, and its preset.
    what
        What it is trained on, as in `PairConfig.what`.
    minutes
        Its length.
    changes
        Settings that are changed, as ``key=value``.
    seeds
        Seeds of the trainings.
    """

    system: str
    what: str
    minutes: float = PEER_MINUTES
    changes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    trained: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Of the run with seed 0; others add their seed."""
        return f"{self.system}-{self.what}"

    @property
    def preset(self) -> str:
        """Settings it starts from."""
        return self.system

    def run_name(self, seed: int, steps: int | None = None) -> str:
        """Name of a run; one with a number of steps says so."""
        name = self.name if seed == 0 else f"{self.name}-seed{seed}"
        return name if steps is None else f"{name}-{steps}steps"

    def settings(self, seed: int, steps: int | None = None) -> tuple[str, ...]:
        """Return all changes to the preset; `steps` replaces the minutes."""
        own = load_config(self.system).schedule
        if steps is None:
            schedule = own.scaled_to_minutes(self.minutes)
        else:
            schedule = own.scaled_to("steps", steps)
        return (
            f"schedule.unit={schedule.unit}",
            f"schedule.length={schedule.length:g}",
            f"schedule.warmup={schedule.warmup:g}",
            f"schedule.milestones=[{', '.join(f'{at:g}' for at in schedule.milestones)}]",
            f"pairs.what={self.what}",
            f"seed={seed}",
            *self.changes,
        )

    def config(self, seed: int, steps: int | None = None, *, threads: int = 1) -> TrainingConfig:
        """Return the settings of a run."""
        own = (f'name="{self.run_name(seed, steps)}"', f"threads={threads}")
        return load_config(self.system, [*self.settings(seed, steps), *own])
