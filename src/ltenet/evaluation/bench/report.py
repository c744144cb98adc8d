"""Files of a benchmark: JSON, a table of pairs, curves, best and worst pairs."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.errors import MissingError, UsageError
from ltenet.evaluation.bench.comparison import Row, markdown_table
from ltenet.evaluation.bench.mesh_results import geodesic_curve
from ltenet.evaluation.bench.mesh_scoring import CURVE
from ltenet.evaluation.bench.pictures import draw_pairs
from ltenet.evaluation.bench.plots import plot_curves
from ltenet.evaluation.bench.predictions import PredictionCache
from ltenet.evaluation.bench.results import curves, scored_by, summarize, table_rows
from ltenet.evaluation.bench.run import BenchRun, Job, Predictor
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray

#: Pairs in each of the two pictures.
_SHOWN = 4


def write_report(
    run: BenchRun,
    folder: Path,
    *,
    cache: Path,
    command: str | None = None,
    force: bool = False,
) -> list[str]:
    """Write a run into a folder, which is made if it is not there.

    `result.json`, `pairs.csv`, `curve.png`, `curve.svg`, `worst.png` and `best.png`; at listed
    points also `geodesic.png` and `geodesic.svg`.

    Parameters
    ----------
    run
        What `run_bench` returned.
    folder
        Where to write.
    cache
        Folder of predictions, from which the pictures are drawn.
    command
        What to type for this result, which is noted in it.
    force
        Replace files that are there.

    Returns
    -------
    What was left out and why, empty if nothing was.
    """
    check_free(folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    content = summarize(run) | ({} if command is None else {"command": command})
    _write_json(folder / "result.json", content, force=force)
    _write_csv(folder / "pairs.csv", table_rows(run), force=force)
    _draw_extremes(run, folder, cache=cache, force=force)
    return _plot(curves(run), folder, _title(run), force=force) + _plot_geodesic(
        {run.config.method: run}, folder, _title(run), force=force
    )


def write_comparison(
    rows: Sequence[Row],
    folder: Path,
    *,
    cache: Path,
    command: str | None = None,
    force: bool = False,
) -> list[str]:
    """Write several methods into a folder: one subfolder each, and tables and curves of all.

    `comparison.json`, `comparison.md`, `curve.png` and `curve.svg`. Returns what was left out.
    """
    check_free(folder, force=force)
    left_out = []
    for row in rows:
        if row.run is not None:
            left_out += write_report(row.run, folder / row.method, cache=cache, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    results = [row.as_dict() for row in rows]
    with atomic_path(folder / "comparison.md", force=force) as temporary:
        temporary.write_text(markdown_table(results), encoding="utf-8", newline="\n")
    done = [row.run for row in rows if row.run is not None]
    if done:
        by_method = {run.config.method: curves(run)[_curve_name(run)] for run in done}
        title = _title(done[0], with_method=False)
        left_out += _plot(by_method, folder, title, force=force)
        by_name = {run.config.method: run for run in done}
        left_out += _plot_geodesic(by_name, folder, title, force=force)
    _write_json(folder / "comparison.json", {"command": command, "rows": results}, force=force)
    return list(dict.fromkeys(left_out))


def check_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder with a result at once, not after hours of work."""
    taken = any((folder / name).exists() for name in ("result.json", "comparison.json"))
    if taken and not force:
        raise UsageError(
            f"{folder}: got a folder with a result, expected a new one; "
            "try another, or allow overwriting with --force"
        )


def _draw_extremes(run: BenchRun, folder: Path, *, cache: Path, force: bool) -> None:
    which = scored_by(run.config)
    # One draw of each pair: several seeds of one bad pair would fill the picture.
    first = [score for score in run.scores if score.seed == run.config.seeds[0]]
    ranked = sorted(first, key=lambda score: getattr(score, which).err_percent)
    predictor = Predictor(run.config, PredictionCache(cache), (), run.record, run.options)
    count = max(1, min(_SHOWN, len(ranked) // 2))
    for name, chosen in (("best", ranked[:count]), ("worst", ranked[::-1][:count])):
        rows = []
        for score in chosen:
            drawn, source, target = predictor.shapes_of(Job(score.pair, score.seed))
            rows.append((score, drawn, predictor.predicted(source, target).map.indices))
        draw_pairs(rows, folder / f"{name}.png", force=force)


def _plot(lines: dict[str, FloatArray], folder: Path, title: str, *, force: bool) -> list[str]:
    """Draw curves as PNG and SVG; say so if that cannot be."""
    files = [folder / "curve.png", folder / "curve.svg"]
    try:
        plot_curves(lines, files, title=title, force=force)
    except MissingError as error:
        return [f"no curve was drawn: {error}"]
    return []


def _plot_geodesic(
    runs: dict[str, BenchRun], folder: Path, title: str, *, force: bool
) -> list[str]:
    """Draw the curves over the geodesic error, where there are listed points."""
    lines = {}
    for name, run in runs.items():
        if run.scores[0].listed is not None:
            percent = np.array(geodesic_curve(run.scores)["percent"])  # (40,)
            lines[name] = np.stack([percent, np.zeros_like(percent)])  # (2, 40)
    if not lines:
        return []
    files = [folder / "geodesic.png", folder / "geodesic.svg"]
    unit = "% of the square root of the area"
    try:
        plot_curves(lines, files, title=title, tolerances=CURVE, unit=unit, force=force)
    except MissingError as error:
        return [f"no curve was drawn: {error}"]
    return []


def _curve_name(run: BenchRun) -> str:
    """Curve of the headline figures."""
    name = scored_by(run.config)
    return name if name in curves(run) else "point"


def _title(run: BenchRun, *, with_method: bool = True) -> str:
    config = run.config
    words = [config.benchmark, f"{config.sampling} samples", config.method]
    return ", ".join(words if with_method else words[:2])


def _write_json(path: Path, content: dict[str, Any], *, force: bool) -> None:
    with atomic_path(path, force=force) as temporary:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _write_csv(path: Path, rows: list[dict[str, Any]], *, force: bool) -> None:
    with (
        atomic_path(path, force=force) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
