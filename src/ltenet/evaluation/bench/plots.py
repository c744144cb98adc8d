"""Accuracy curves, and error over cost, as PNG and SVG, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ltenet.evaluation.optional import optional
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.metrics import TOLERANCES

#: Colours that stay apart for colour-blind eyes and in grey (Okabe and Ito).
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_DASHES = ("-", "--", "-.", ":")
#: Names that find room inside the plot.
_INSIDE = 7


def plot_curves(
    curves: Mapping[str, FloatArray],
    paths: Sequence[Path],
    *,
    title: str,
    published: Mapping[str, float] | None = None,
    tolerances: FloatArray = TOLERANCES,
    unit: str = "% of the target's diameter",
    force: bool = False,
) -> None:
    """Draw accuracy over tolerance.

    Parameters
    ----------
    curves
        By name, (2, T) mean and spread in %, at the tolerances.
    paths
        Files to write; the suffix chooses the format.
    title
        Above the plot.
    published
        Accuracies in % at a tolerance of 1 % that others published, by name; drawn as crosses.
    tolerances, unit
        (T,) tolerances, and what a hundredth of them is.
    force
        Replace files that are there.
    """
    entries = len(curves) + len(published or {})
    outside = entries > _INSIDE
    height = 4 + (0.22 * entries if outside else 0)
    figure = optional("matplotlib.figure").Figure(figsize=(6, height), layout="constrained")
    axes: Any = figure.subplots()
    percent = 100 * tolerances  # (T,)
    for place, (name, (mean, spread)) in enumerate(curves.items()):
        color, dash = _COLORS[place % len(_COLORS)], _DASHES[place % len(_DASHES)]
        axes.plot(percent, mean, dash, color=color, label=name, linewidth=1.8)
        axes.fill_between(
            percent, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0
        )
    for place, (name, accuracy) in enumerate((published or {}).items()):
        color = _COLORS[place % len(_COLORS)]
        axes.plot([1.0], [accuracy], "x", color=color, label=name, markersize=8)
    axes.set(
        xlim=(0, percent[-1]),
        ylim=(0, 100),
        xlabel=f"tolerance, {unit}",
        ylabel="points within it, %",
        title=title,
    )
    axes.grid(alpha=0.3)
    if outside:
        figure.legend(loc="outside lower center", frameon=False, fontsize="small")
    else:
        axes.legend(loc="lower right", frameon=False, fontsize="small")
    _save(figure, paths, force=force)


def plot_cost(
    points: Mapping[str, tuple[float, float]],
    groups: Mapping[str, str],
    paths: Sequence[Path],
    *,
    title: str,
    force: bool = False,
) -> None:
    """Draw error over seconds, every method a point with its name.

    Parameters
    ----------
    points
        Seconds a pair, and error in % of the diameter, by name.
    groups
        Group of each name; groups differ in colour.
    paths, title, force
        As for `plot_curves`.
    """
    figure = optional("matplotlib.figure").Figure(figsize=(9, 6), layout="constrained")
    axes: Any = figure.subplots()
    for place, group in enumerate(dict.fromkeys(groups.values())):
        own = {name: point for name, point in points.items() if groups[name] == group}
        seconds, errors = zip(*own.values(), strict=True)
        color = _COLORS[place % len(_COLORS)]
        axes.plot(seconds, errors, "o", color=color, label=group, markersize=5)
        for name, point in own.items():
            axes.annotate(
                name, point, xytext=(4, 3), textcoords="offset points", fontsize=6, color=color
            )
    axes.set(
        xscale="log",
        xlabel="seconds a pair",
        ylabel="mean error, % of the target's diameter",
        title=title,
    )
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    _save(figure, paths, force=force)


def _save(figure: Any, paths: Sequence[Path], *, force: bool) -> None:
    settings = optional("matplotlib").rc_context({"svg.hashsalt": "ltenet"})
    with settings:
        for path in paths:
            # Neither date nor version, so that the same figures give the same bytes.
            metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
            with atomic_path(path, force=force) as temporary:
                figure.savefig(temporary, dpi=150, metadata=metadata)
