"""Progress on stderr, if that is a terminal: a bar with the share done and the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

Item = TypeVar("Item")

#: What the stages of a match are called.
LABELS = {
    "read": "reading shapes",
    "load": "loading the weights",
    "embed": "embedding both shapes",
    "match": "matching",
    "refine": "refining the map",
    "carry": "carrying it to every vertex",
    "confidence": "estimating confidence",
    "write": "writing",
}


def progress(items: Iterable[Item], label: str, *, total: int | None = None) -> Iterator[Item]:
    """Go through items with a bar; of a list the total is known, else it must be given."""
    if not sys.stderr.isatty():
        yield from items
        return
    with _bar() as bar:
        yield from bar.track(items, total=total, description=label)


@contextmanager
def stages(first: str) -> Iterator[Callable[[str, float], None]]:
    """Show the stage that is running; call what this yields with its name and share.

    Stages that do not say how far they are pulse until they end.
    """
    if not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    with _bar() as bar:
        task = bar.add_task(LABELS.get(first, first), total=None)
        running = first

        def show(stage: str, share: float) -> None:
            nonlocal running
            if stage != running:
                bar.reset(task, total=None, description=LABELS.get(stage, stage))
                running = stage
            bar.update(task, total=1.0 if share > 0 else None, completed=share)

        yield show


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Times(TimeElapsedColumn):
        """The time spent and, where the share is known, the time left."""

        left = TimeRemainingColumn()

        def render(self, task: Task) -> Text:
            spent = super().render(task) + " so far"
            return spent if task.total is None else spent + ", " + self.left.render(task) + " left"

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(24),
        TaskProgressColumn(),
        Times(),
        console=Console(stderr=True),
        transient=True,
    )
