"""`ltenet adapt`: fine-tune weights on shapes without labels. How: docs/training.md."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import table


@dataclass(frozen=True, kw_only=True)
class Adapt(Command):
    """Fine-tune weights on your own shapes, without labels, and write them to a folder.

    The objective needs nothing but the shapes. Where the weights have an orientation network, it
    turns them upright first; else they should stand upright (y up) and face the same way.
    """

    model: tyro.conf.Positional[str]
    """Weights to begin with: a name or a folder."""
    shapes: tyro.conf.Positional[tuple[Path, ...]]
    """Files with one shape each."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="PATH")]
    """Folder for the new weights."""
    minutes: float | None = None
    """How long; 10 by default."""
    config: str = "adapt"
    """Settings: a preset or a TOML file, without known correspondences."""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Change one setting, e.g. --set optim.lr=3e-5; may be repeated."""
    force: bool = False
    """Replace weights that are in the folder."""

    def run(self) -> Result:
        """Load weights and shapes, train, write."""
        from ltenet import confidence, orientation
        from ltenet.files import atomic_path
        from ltenet.io import load
        from ltenet.model import LTENet, find_weights
        from ltenet.training.adapt import adapt
        from ltenet.training.settings import load_config

        config = load_config(self.config, self.set)
        if self.minutes is not None:
            schedule = config.schedule.scaled_to_minutes(self.minutes)
            config = dataclasses.replace(config, schedule=schedule)
        model = LTENet.from_pretrained(self.model)
        shapes = [load(path) for path in self.shapes]
        start = find_weights(self.model)
        orienter = orientation.Orienter.from_pretrained(start)
        if orienter is not None:
            shapes = [shape.rotated(orienter.frame(shape.points).rotation) for shape in shapes]
        result = adapt(model, shapes, self.output, config, force=self.force)
        for name in (orientation.FILE, confidence.FILE):  # they belong to the weights
            if (start / name).is_file():
                with atomic_path(self.output / name, force=True) as path:
                    shutil.copyfile(start / name, path)
        figures = {
            "weights": str(self.output),
            "shapes": len(shapes),
            "steps": result.steps,
            "minutes": round(result.minutes, 3),
            "best_step": result.best_step,
            f"{config.validation.select}_before": result.start_score,
            f"{config.validation.select}_after": result.best_score,
        }
        return Result(figures, table(list(figures.items())))


COMMAND = Adapt
