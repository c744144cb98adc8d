"""Several methods on one benchmark, side by side; a missing package costs one row, not the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ltenet.errors import MissingError, PartialFailure
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.results import summarize
from ltenet.evaluation.bench.run import BenchRun

_SAMPLED = (
    ("acc 1 %", ("acc", "0.01")),
    ("acc 5 %", ("acc", "0.05")),
    ("err, % of dmax", ("err_percent",)),
    ("median", ("err_percent_pairs", "median")),
    ("worst tenth", ("err_percent_pairs", "worst_tenth")),
    ("failed, %", ("failed_percent",)),
    ("overlap IoU", ("overlap_iou",)),
    ("err_dpc", ("err_dpc",)),
    ("auc", ("auc",)),
    ("coverage", ("coverage",)),
    ("cycle", ("cycle",)),
    ("flips", ("flips",)),
    ("geodesic", ("geodesic",)),
    ("s / pair", ("seconds_per_pair",)),
    ("MB", ("memory_mb",)),
)
_LISTED = (
    ("geodesic x 100", ("geodesic",)),
    ("median", ("geodesic", "median")),
    ("worst tenth", ("geodesic", "worst_tenth")),
    ("without identities", ("without_identities", "geodesic")),
    ("flips, %", ("flips_percent",)),
    ("limb swaps, %", ("limb_swaps_percent",)),
    ("failed, %", ("failed_percent",)),
    ("s / pair", ("seconds_per_pair",)),
    ("MB", ("memory_mb",)),
)
_LANDMARKS = (
    ("landmarks, % of the diameter", ("landmark_percent",)),
    ("median", ("landmark_percent", "median")),
    ("up to symmetry", ("landmark_percent_symmetric",)),
    ("median", ("landmark_percent_symmetric", "median")),
    ("worst tenth", ("landmark_percent_symmetric", "worst_tenth")),
    ("failed, %", ("failed_percent",)),
    ("s / pair", ("seconds_per_pair",)),
    ("MB", ("memory_mb",)),
)


class Row(NamedTuple):
    """Outcome of one method.

    Attributes
    ----------
    method
        Its name.
    run
        The benchmark, None if it could not be run.
    missing
        What is missing or went wrong, None if nothing.
    """

    method: str
    run: BenchRun | None
    missing: str | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values: the result, or why there is none."""
        if self.run is not None:
            return summarize(self.run)
        return {"method": self.method, "missing": self.missing}


def compare(configs: Sequence[BenchConfig], run: Callable[[BenchConfig], BenchRun]) -> list[Row]:
    """Run one benchmark with several methods.

    Parameters
    ----------
    configs
        One per method.
    run
        Runs one of them, usually `run_bench` with a cache.
    """
    rows = []
    for config in configs:
        try:
            rows.append(Row(config.method, run(config), None))
        except (MissingError, PartialFailure) as error:
            rows.append(Row(config.method, None, str(error)))
    return rows


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Results as a Markdown table: mean, and the spread where there are several seeds."""
    used = [
        (head, keys)
        for head, keys in _columns(rows)
        if any(_figure(row, keys) is not None for row in rows)
    ]
    lines = [
        "| " + " | ".join(["method", *(head for head, _ in used)]) + " |",
        "|" + "---|" * (len(used) + 1),
    ]
    for row in rows:
        if "missing" in row:
            lines.append(f"| {row['method']} | {row['missing']} |" + " |" * (len(used) - 1))
            continue
        cells = [cell(_figure(row, keys), several=len(row["seeds"]) > 1) for _, keys in used]
        lines.append("| " + " | ".join([row["method"], *cells]) + " |")
    return "\n".join(lines) + "\n"


def class_table(result: dict[str, Any]) -> str:
    """Landmark errors of each class as a Markdown table."""
    lines = ["| class | plain | median | up to symmetry | median | pairs |", "|" + "---|" * 6]
    for name, figures in result["classes"].items():
        both = [figures[key] for key in ("landmark_percent", "landmark_percent_symmetric")]
        cells = [f"{own[key]:.2f}" for own in both for key in ("mean", "median")]
        lines.append("| " + " | ".join([name, *cells, str(figures["pairs"])]) + " |")
    return "\n".join(lines) + "\n"


def cell(figure: dict[str, float] | float | None, *, several: bool) -> str:
    """Text of one figure: a number, or mean and spread."""
    if figure is None:
        return "-"
    mean = figure["mean"] if isinstance(figure, dict) else figure
    digits = 1 if abs(mean) >= 10 else 2
    spread = f" ±{figure['std']:.{digits}f}" if several and isinstance(figure, dict) else ""
    return f"{mean:.{digits}f}{spread}"


def _columns(rows: Sequence[dict[str, Any]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Heads of the columns, and where their figures are in a result."""
    if any("geodesic_curve" in row for row in rows):
        return _LISTED
    return _LANDMARKS if any("landmark_percent" in row for row in rows) else _SAMPLED


def _figure(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, float] | float | None:
    value: Any = row
    for key in keys:
        value = value.get(key) if value is not None else None
    return value  # type: ignore[no-any-return]
