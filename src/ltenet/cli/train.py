"""`ltenet train`: train a network on generated shapes. How: docs/training.md."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import table


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train a network on generated shapes.

    The run's folder holds its settings, log, checkpoint and best weights. A run that stopped, for
    whatever reason, goes on with --resume as if it had not.
    """

    config: tyro.conf.Positional[str | None] = None
    """A preset (paper, dpc, human, animal, tiny, ...) or a TOML file."""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Change one setting, e.g. --set optim.lr=1e-4; may be repeated."""
    resume: str | None = None
    """Go on with this run, given by its name or folder."""
    name: str | None = None
    """Name of the run; by default that of the settings."""
    minutes: float | None = None
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
        from ltenet.training.checkpoint import read_checkpoint
        from ltenet.training.loop import train
        from ltenet.training.runs import find_run, joined_later, new_run, rewrite_config
        from ltenet.training.settings import load_config

        if (self.config is None) == (self.resume is None):
            raise UsageError(
                "both settings and --resume came, or neither; one of them is needed; "
                "try `ltenet train tiny`"
            )
        changes = list(self.set)
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
                    f"--minutes {self.minutes:g} came for a run that has been trained for "
                    f"{spent:.1f}; more than that is needed; add the time it shall go on"
                )
            schedule = config.schedule.scaled_to_minutes(self.minutes)
            config = dataclasses.replace(config, schedule=schedule)
        if self.resume is not None:
            rewrite_config(run, config)
        else:
            run = new_run(config, self.runs, force=self.force)
        result = train(
            config,
            run,
            resume=self.resume is not None,
            devices=self.devices,
            accelerator=self.accelerator,
        )
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


COMMAND = Train
