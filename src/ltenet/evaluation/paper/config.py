"""How an experiment of the paper is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ltenet.evaluation.paper.trainings import Budget


@dataclass(frozen=True, kw_only=True)
class PaperConfig:
    """How an experiment is run.

    Attributes
    ----------
    data
        Folder of the benchmarks.
    budget
        How and whether rows are trained.
    cache
        Folder of predictions.
    pairs
        A random part of the test pairs, None for all.
    seeds
        Sampling seeds.
    workers
        Processes for predictions; 0 works in this one.
    published
        Whether "main" also trains on the paper's own sets, where `data` has them.
    """

    data: Path | None
    budget: Budget
    cache: Path
    pairs: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 0
    published: bool = False


#: Told what is being done.
Tell = Callable[[str], None]
