"""`ltenet adapt`: fine-tune weights on shapes without labels. How: docs/training.md."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ltenet.cli.command import Command, OptionalMinutes, Result
from ltenet.cli.output import table
from ltenet.cli.progress import progress
from ltenet.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Adapt(Command):
    """Fine-tune weights on your own shapes, without labels, and write them to a folder.

    The objective needs nothing but the shapes. Where the weights have an orientation network, it
    turns them upright first; for weights like `any`, which compare shapes in a common frame, they
    are matched and laid alike; else they should stand upright (y up) and face the same way.

    Examples
    --------
      ltenet adapt human scans/*.ply -o my-weights
      ltenet match a.ply b.ply -o map.npz --model my-weights
    """

    model: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="MODEL")]]
    """Weights to begin with: a name or a folder."""
    shapes: tyro.conf.Positional[
        Annotated[tuple[Path, ...], tyro.conf.arg(metavar="SHAPES", help_behavior_hint="")]
    ]
    """Files with one shape each, at least two."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="DIR")]
    """Folder for the new weights; it appears whole when they are ready."""
    minutes: OptionalMinutes = None
    """How long; 10 by default."""
    config: str = "adapt"
    """Settings: a preset or a TOML file, without known correspondences."""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Change one setting, e.g. --set optim.lr=3e-5; may be repeated."""
    force: bool = False
    """Replace a folder of weights; the old ones stay until the new ones are ready."""

    def run(self) -> Result:
        """Load weights and shapes, train, write."""
        from ltenet.io import load
        from ltenet.matching import confidence, orientation
        from ltenet.matching.common_frame import laid_alike
        from ltenet.matching.networks import read_networks
        from ltenet.training.adapt import adapt, check_weights_folder
        from ltenet.training.settings import load_config

        if len(self.shapes) < 2:
            raise UsageError(
                f"got {len(self.shapes)} shape, expected at least two: one alone has no other to "
                "be matched with; try more shapes of its kind"
            )
        check_weights_folder(self.output, force=self.force)
        config = load_config(self.config, self.set)
        if self.minutes is not None:
            schedule = config.schedule.scaled_to_minutes(self.minutes)
            config = dataclasses.replace(config, schedule=schedule)
        networks = read_networks(self.model)
        shapes = [load(path) for path in progress(self.shapes, "reading shapes")]
        if networks.relative:
            shapes = laid_alike(
                shapes, self.model, track=lambda steps: progress(steps, "laying them alike")
            )
        elif networks.orienter is not None:
            shapes = [
                shape.rotated(networks.orienter.frame(shape.points).rotation)
                for shape in progress(shapes, "turning them upright")
            ]
        kept = [networks.folder / name for name in (orientation.FILE, confidence.FILE)]
        beside = [file for file in kept if file.is_file()]
        result = adapt(networks.model, shapes, self.output, config, beside=beside, force=self.force)
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
