"""How a run went: figures, and a plot of losses and validations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ltenet.files import atomic_path
from ltenet.io.formats.documents import number
from ltenet.io.formats.text import failure
from ltenet.training.config import TrainingConfig
from ltenet.training.runs import RunFolder

#: Values beyond are left out of curves: their sums would overflow.
_LARGEST = 1e100
_BLOCKS = "▁▂▃▄▅▆▇█"


class Curve(NamedTuple):
    """One figure over the steps of a run."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


class RunSummary(NamedTuple):
    """Figures from the log of a run.

    Attributes
    ----------
    name
        Of the run.
    steps, minutes
        Length so far.
    pairs_per_second
        Median speed.
    best_step
        Step with the lowest selected score, 0 before the first validation.
    best
        Validation of that step on independent samples.
    curves
        "loss", and "error", "accuracy_5" and "cycle" on independent samples.
    """

    name: str
    steps: int
    minutes: float
    pairs_per_second: float
    best_step: int
    best: dict[str, float]
    curves: dict[str, Curve]


def summarize_run(run: RunFolder) -> RunSummary:
    """Read the log of a run."""
    config = run.read_config()
    records = run.read_log()
    try:
        return _summarized(config, records)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise failure(
            run.log,
            None,
            f"got records without fitting figures ({error}), expected the log of a run",
            "try copying the run again",
        ) from None


def _summarized(config: TrainingConfig, records: Sequence[dict[str, Any]]) -> RunSummary:
    training = [record for record in records if record["kind"] == "train"]
    validations = [record for record in records if record["kind"] == "validation/independent"]
    select = config.validation.select
    if select == "last":
        best = validations[-1] if validations else {}
    else:
        best = min(validations, key=lambda record: number(record[select]), default={})
    speeds = sorted(number(record["pairs_per_second"]) for record in training)
    curves = {"loss": _curve(training, "total")}
    curves |= {name: _curve(validations, name) for name in ("error", "accuracy_5", "cycle")}
    return RunSummary(
        name=config.name,
        steps=max((int(number(record["step"])) for record in records), default=0),
        minutes=max((number(record["minutes"]) for record in training), default=0.0),
        pairs_per_second=speeds[len(speeds) // 2] if speeds else 0.0,
        best_step=best.get("step", 0),
        best={key: value for key, value in best.items() if key not in ("kind", "step")},
        curves={name: curve for name, curve in curves.items() if any(curve.values)},
    )


def sparkline(values: Sequence[float], *, width: int = 60) -> str:
    """Draw a curve as one line of text: block heights from the least to the largest value."""
    values = [value for value in values if abs(value) < _LARGEST]  # neither nan nor inf
    if not values:
        return ""
    groups = min(width, len(values))
    edges = [round(group * len(values) / groups) for group in range(groups + 1)]
    means = [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
    least, largest = min(means), max(means)
    span = largest - least or math.inf
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round(top * (mean - least) / span)] for mean in means)


def plot(summary: RunSummary, path: Path) -> bool:
    """Draw the curves into a PNG; False without them, or without matplotlib (extra `plot`)."""
    if not summary.curves:
        return False
    try:
        figures = import_module("matplotlib.figure")
    except ImportError:
        return False
    figure = figures.Figure(figsize=(4 * len(summary.curves), 3), layout="constrained")
    panels = figure.subplots(1, len(summary.curves), squeeze=False)[0]
    for panel, (name, curve) in zip(panels, summary.curves.items(), strict=True):
        panel.plot(curve.steps, curve.values, linewidth=1)
        panel.set_title(f"{summary.name}: {name}")
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
    with atomic_path(path, force=True) as temporary:
        figure.savefig(temporary, dpi=120, metadata={"Software": None})
    return True


def _curve(records: Sequence[dict[str, Any]], name: str) -> Curve:
    return Curve(
        tuple(int(number(record["step"])) for record in records),
        tuple(number(record[name]) for record in records),
    )
