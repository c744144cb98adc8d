"""`ltenet info`: what became of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import table


@dataclass(frozen=True, kw_only=True)
class Info(Command):
    """Summarise a training run, and draw its losses and validations.

    The plot goes to RUN/curves.png if matplotlib is installed (extra `plot`).
    """

    name: tyro.conf.Positional[str]
    """The run, by its name or folder."""
    runs: Path = Path("runs")
    """Folder of all runs."""

    def run(self) -> Result:
        """Read the log."""
        from ltenet.training.runs import find_run
        from ltenet.training.summary import plot, sparkline, summarize

        run = find_run(self.name, self.runs)
        summary = summarize(run)
        picture = run.path / "curves.png"
        drawn = plot(summary, picture)
        figures = {
            "run": str(run.path),
            "name": summary.name,
            "steps": summary.steps,
            "minutes": round(summary.minutes, 2),
            "pairs_per_second": round(summary.pairs_per_second, 2),
            "best_step": summary.best_step,
            "plot": str(picture) if drawn else None,
        }
        rows = [*figures.items(), *((f"best {k}", round(v, 4)) for k, v in summary.best.items())]
        lines = [
            (name, sparkline(curve.values), f"{curve.values[0]:.4g} -> {curve.values[-1]:.4g}")
            for name, curve in summary.curves.items()
        ]
        text = table(rows) + ("\n\n" + table(lines) if lines else "")
        return Result({**figures, "best": summary.best}, text)


COMMAND = Info
