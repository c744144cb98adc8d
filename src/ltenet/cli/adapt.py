"""`ltenet adapt`: fine-tune weights on shapes without labels. How: docs/training.md."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ltenet.cli.batch import Pace
from ltenet.cli.command import Command, OptionalMinutes, Result
from ltenet.cli.output import table
from ltenet.cli.progress import progress
from ltenet.errors import LTENetError, UsageError

log = logging.getLogger(__name__)

#: Shapes that the mean is taken of, at most: each costs a match, and more hardly change it.
_MOST_OF_MEAN = 20


@dataclass(frozen=True, kw_only=True)
class Adapt(Command):
    """Fine-tune weights on your own shapes, without labels, and write them to a folder.

    The objective needs nothing but the shapes. Where the weights have an orientation network, it
    turns them upright first; for weights like `any`, which compare shapes in a common frame, they
    are matched and laid alike; else they should stand upright (y up) and face the same way.

    DIR/mean.ply is the mean of the shapes, matched with the new weights: a template of the class.

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
    """How long to train; 10 by default."""
    config: str = "adapt"
    """Settings: a preset or a TOML file, without known correspondences."""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Change one setting, e.g. --set optim.lr=3e-5; may be repeated."""
    no_mean: bool = False
    """Leave the mean shape out; it takes a match for each shape."""
    force: bool = False
    """Replace a folder of weights; the old ones stay until the new ones are ready."""

    def run(self) -> Result:
        """Load weights and shapes, train, write; then match the shapes for their mean."""
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
        mean = None if self.no_mean else self._mean()
        figures["mean"] = None if mean is None else str(mean)
        return Result(figures, table(list({**figures, "mean": mean or "none"}.items())))

    def _mean(self) -> Path | None:
        """Write the mean of the shapes beside the new weights; None, and a warning, without one.

        The weights are the result of long work: no mean is no reason to fail.
        """
        from ltenet.collections.atlas import LEAST, build_atlas
        from ltenet.collections.plan import Specimen
        from ltenet.files import working_folder
        from ltenet.io import save
        from ltenet.matching.config import MatchConfig

        if len(self.shapes) < LEAST:
            log.warning(
                "no mean shape: got %d shapes, expected at least %d; try more of the class, or "
                "--no-mean",
                *(len(self.shapes), LEAST),
            )
            return None
        step = -(-len(self.shapes) // _MOST_OF_MEAN)
        # Files of several folders may have the same name.
        specimens = [
            Specimen(f"{number}-{path.stem}", path)
            for number, path in list(enumerate(self.shapes, 1))[::step]
        ]
        path = self.output / "mean.ply"
        try:
            with working_folder("ltenet-adapt") as temporary:
                # Weights are read once for each name, and `output` may be the name of the old ones.
                weights = shutil.copytree(self.output, temporary / "weights")
                # One template is enough for a mean; more would each cost a match for every shape.
                atlas = build_atlas(
                    specimens,
                    temporary / "atlas",
                    MatchConfig(model=str(weights)),
                    rounds=0,
                    tell=Pace(),
                )
            # `config.json` does not list it: the weights are complete without it.
            save(atlas.mean, path)
        except (LTENetError, OSError) as error:
            log.warning("no mean shape: %s", error)
            return None
        if atlas.failed:
            log.warning(
                "%s: the mean of %d of %d shapes, as the others could not be registered: %s",
                *(path, len(atlas.registered), len(specimens)),
                "; ".join(error for _, error in atlas.failed[:3]),
            )
        return path


COMMAND = Adapt
