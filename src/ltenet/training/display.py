"""What a run shows on stderr: one moving line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ltenet.training.validation import Scores, Validation


class Speed(NamedTuple):
    """How fast a run is and how long it will take."""

    pairs_per_second: float
    seconds_left: float


class Display:
    """Progress of a run; use it as a context.

    Parameters
    ----------
    name
        Of the run.
    quiet
        Show nothing, as all processes but one do.
    """

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        self._name = name
        self._quiet = quiet
        self._progress: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[text]}"),
                console=Console(stderr=True),
            )  # fmt: skip
            self._task = self._progress.add_task(name, total=1.0, text="")

    def losses(self, step: int, progress: float, values: dict[str, float], speed: Speed) -> None:
        """Show the losses of a step, the speed and the time left."""
        losses = "  ".join(f"{name} {value:.4g}" for name, value in values.items() if value)
        text = (
            f"step {step}  {losses}  {speed.pairs_per_second:.2f} pairs/s  "
            f"{_clock(speed.seconds_left)} left"
        )
        if self._progress is not None:
            self._progress.update(self._task, completed=progress, text=text)
        else:
            self._say(f"{self._name}: {100 * progress:5.1f} %  {text}")

    def validation(self, step: int, scores: Validation, *, best: bool) -> None:
        """Show a validation, which stays on the screen."""
        parts = [
            f"{name}: {_against_truth(row)}cycle {row.cycle:.2f} %, loss {row.loss:.4g}"
            for name, row in scores._asdict().items()
            if any(row)  # zeros alone: there were no such pairs
        ]
        self._say(f"{self._name}: step {step}  {'; '.join(parts)}{'  (best)' if best else ''}")

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        if self._progress is not None:
            self._progress.console.print(text, highlight=False, markup=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def __enter__(self) -> Display:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _against_truth(row: Scores) -> str:
    if row.error == row.accuracy_5 == 0:  # without a truth both are zero
        return ""
    return (
        f"err {row.error:.2f} %, acc {100 * row.accuracy_1:.1f} / {100 * row.accuracy_5:.1f}, "
        f"flips {100 * row.left_right:.1f} / {100 * row.front_back:.1f}, "
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
