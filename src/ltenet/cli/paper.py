"""`ltenet paper`: the paper's experiments, our figures beside the published ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ltenet.cli.bench import read_seeds
from ltenet.cli.command import Command, OptionalPath, Result, command_line
from ltenet.cli.output import say
from ltenet.cli.sources import data_folder


@dataclass(frozen=True, kw_only=True)
class Paper(Command):
    """Make a table or figure of the paper anew, with the published figures beside ours.

    All rows of a table are trained for the same number of steps, with the same pairs. Finished
    trainings and predictions are kept: the same call after an interrupt goes on where it stopped.
    """

    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")]]
    """main, curves, noise, local-linearity, linear, design, sigma, neighbors, dimension, size,
    outlook, reconstruction, real or maps; see docs/evaluation.md."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="DIR")]
    """Folder for the table (JSON and Markdown) and the figures (PNG and SVG)."""
    data: OptionalPath = None
    """Folder of the benchmarks; LTENET_DATA by default."""
    steps: int | None = None
    """Steps of every training, for a quick look; those of docs/evaluation.md by default."""
    continue_: Annotated[bool, tyro.conf.arg(name="continue")] = False
    """Go on with the result in the folder: test rows whose trainings are finished, train none."""
    published: bool = False
    """For `main`: also train on SURREAL, SHREC'19 and SMAL where --data has them, as the paper."""
    pairs: int | None = None
    """A random part of the test pairs; all by default."""
    seeds: str = "0,1,2"
    """Sampling seeds, with commas."""
    shapes: Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="PATH PATH", help_behavior_hint="")
    ] = ()
    """For `real`: two files, source and target; by default two shapes of SHREC'19."""
    runs: Path = Path("runs")
    """Folder of all runs, where finished trainings are found again."""
    threads: int = 1
    """Threads of each training."""
    workers: int = 0
    """Processes for predictions, with one thread each; 0 works in this one."""
    cache: OptionalPath = None
    """Folder of predictions; LTENET_CACHE or the user's cache folder by default."""
    force: bool = False
    """Replace a result that is in the folder; finished trainings are kept."""

    def run(self) -> Result:
        """Train, test, write."""
        from ltenet.evaluation.bench.predictions import default_cache
        from ltenet.evaluation.paper.config import PaperConfig
        from ltenet.evaluation.paper.experiments import run_experiment
        from ltenet.evaluation.paper.tables import markdown
        from ltenet.evaluation.paper.trainings import Budget
        from ltenet.files import check_output_folder

        check_output_folder(self.output)
        check_output_folder(self.runs)
        config = PaperConfig(
            data=data_folder(self.data),
            budget=Budget(self.runs, self.steps, self.threads, train=not self.continue_),
            cache=self.cache if self.cache is not None else default_cache(),
            pairs=self.pairs,
            seeds=read_seeds(self.seeds),
            workers=self.workers,
            published=self.published,
        )
        result = run_experiment(
            self.name,
            config,
            self.output,
            command=command_line(self, "paper"),
            shapes=self.shapes,
            force=self.force,
            again=self.continue_,
            tell=say,
        )
        return Result(result, markdown(result))


COMMAND = Paper
