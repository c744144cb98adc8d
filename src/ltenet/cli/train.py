"""`ltenet train`: train a network on generated shapes or a set on disk. How: docs/training.md."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from ltenet.cli.command import Command, OptionalMinutes, OptionalName, OptionalPath, Result
from ltenet.cli.output import say, table

if TYPE_CHECKING:
    from ltenet.method.model import LTENet
    from ltenet.training.config import TrainingConfig
    from ltenet.training.trainee import Trainee


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train a network on generated shapes, or on a set of your own.

    The run's folder holds its settings, log, checkpoint and best weights. A run that stopped, for
    whatever reason, goes on with --resume as if it had not.

    Examples
    --------
      ltenet train tiny
      ltenet train human --minutes 60 --name mine
      ltenet train --resume mine
      ltenet train human --start human --minutes 60 --name longer
      ltenet train paper --data SURREAL --set pairs.pool=230000
    """

    config: tyro.conf.Positional[
        Annotated[str | None, tyro.conf.arg(metavar="PRESET", help_behavior_hint="")]
    ] = None
    """A preset (paper, dpc, human, animal, tiny, corrnet3d, ...) or a TOML file."""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Change one setting, e.g. --set optim.lr=1e-4; may be repeated."""
    data: OptionalPath = None
    """Train on this set (SURREAL, SMAL, FAUST, ..., a folder of meshes) instead of generated
    shapes; --set pairs.what=NAME says which one where the folder's name does not."""
    start: OptionalName = None
    """Begin with these weights, a name or folder, instead of random ones; their network and
    normalisation replace those of the settings."""
    resume: OptionalName = None
    """Go on with this run, given by its name or folder."""
    name: OptionalName = None
    """Name of the run; by default that of the settings."""
    minutes: OptionalMinutes = None
    """Stretch the schedule over this time, all of the run's, instead of its own length."""
    runs: Path = Path("runs")
    """Folder of all runs."""
    devices: int = 1
    """Training processes on this machine."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to train."""
    force: bool = False
    """Replace a run of the same name."""

    def run(self) -> Result:
        """Train until the schedule ends."""
        from ltenet.errors import UsageError
        from ltenet.files import check_output_folder
        from ltenet.training.checkpoint import read_checkpoint
        from ltenet.training.loop import train
        from ltenet.training.processes import require_fabric
        from ltenet.training.runs import find_run, joined_later, new_run, rewrite_config
        from ltenet.training.settings import load_config

        check_output_folder(self.runs)
        if (self.config is None) == (self.resume is None):
            raise UsageError(
                "got settings and --resume, or neither, expected one of them; "
                "try `ltenet train tiny`"
            )
        changes = [*self._from_set(), *self.set]
        if self.name is not None:
            changes.append(f'name="{self.name}"')
        if self.resume is not None:
            run = find_run(self.resume, self.runs)
            config = load_config(run.config, changes)
        else:
            config = load_config(str(self.config), changes)
        if self.minutes is not None:
            spent = read_checkpoint(run.checkpoint).seconds / 60 if self.resume else 0.0
            if self.minutes <= spent:
                raise UsageError(
                    f"got --minutes {self.minutes:g} for a run that has been trained for "
                    f"{spent:.1f}, expected more than that; try adding the time it shall go on"
                )
            schedule = config.schedule.scaled_to_minutes(self.minutes)
            config = dataclasses.replace(config, schedule=schedule)
        initial = self._initial(config)
        if initial is not None:
            own = initial.config
            pairs = dataclasses.replace(config.pairs, radius=own.radius, center=own.center)
            config = dataclasses.replace(config, model=own, pairs=pairs)
        system = _system(config)
        require_fabric()
        if self.resume is not None:
            rewrite_config(run, config)
        else:
            run = new_run(config, self.runs, force=self.force)
        try:
            result = train(
                config,
                run,
                resume=self.resume is not None,
                devices=self.devices,
                accelerator=self.accelerator,
                initial=initial,
                system=system,
            )
        except KeyboardInterrupt:
            if run.checkpoint.is_file() and not joined_later():
                say(f"the run is saved; go on with: {self._to_resume(run.path)}")
            raise
        if joined_later():
            raise SystemExit(0)  # the first process tells the result
        figures = {
            "run": str(run.path),
            "steps": result.steps,
            "minutes": round(result.minutes, 3),
            "best_step": result.best_step,
            "best_score": result.best_score if result.best_step else None,
            "selected_by": config.validation.select,
        }
        return Result(figures, table(list(figures.items())))

    def _initial(self, config: TrainingConfig) -> LTENet | None:
        """Return the weights to begin with."""
        if self.start is None:
            return None
        from ltenet.errors import UsageError
        from ltenet.method.model import LTENet

        if self.resume is not None or config.system != "ltenet":
            what = "--resume" if self.resume is not None else f"the system {config.system}"
            raise UsageError(
                f"got --start and {what}, expected a new run of ltenet; try leaving --start out"
            )
        return LTENet.from_pretrained(self.start).with_blocks(
            context=config.model.encoder.context, matchability=config.model.matchability
        )

    def _from_set(self) -> list[str]:
        """Return the settings of pairs from a set on disk."""
        if self.data is None:
            return []
        from ltenet.data.readers import set_name
        from ltenet.errors import MissingError

        if not self.data.exists():
            raise MissingError(
                f"{self.data}: got no such folder, expected the shapes to train on; try another "
                "spelling"
            )
        changes = [f"pairs.data={json.dumps(str(self.data.resolve()))}"]
        if not any(change.startswith("pairs.what=") for change in self.set):
            changes.append(f"pairs.what={set_name(self.data)}")
        return changes

    def _to_resume(self, run: Path) -> str:
        """Write the command that goes on with a run."""
        words = ["ltenet", "train", "--resume", str(run)]
        for option, value, usual in (
            ("--minutes", self.minutes, None),
            ("--devices", self.devices, 1),
            ("--accelerator", self.accelerator, "auto"),
        ):
            if value != usual:
                words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
        return shlex.join(words)


def _system(config: TrainingConfig) -> Callable[[TrainingConfig], Trainee] | None:
    """Return what makes the network of another system than ours."""
    if config.system == "ltenet":
        return None
    from ltenet.evaluation.peers.learned.learner import find_learner

    return find_learner(config.system).from_config


COMMAND = Train
