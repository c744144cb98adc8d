"""Files of an experiment: NAME.json, NAME.md, and figures as PNG and SVG."""

from __future__ import annotations

import base64
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ltenet import __version__
from ltenet.drawing.rendering import Image, write_png
from ltenet.errors import MissingError, UsageError
from ltenet.evaluation.bench.plots import plot_cost, plot_curves
from ltenet.evaluation.bench.provenance import package_versions
from ltenet.evaluation.paper.plan import SETTINGS
from ltenet.evaluation.paper.tables import grouped, markdown
from ltenet.files import atomic_path


def check_free(name: str, folder: Path, *, force: bool) -> None:
    """Refuse to replace a result at once, not after hours of work."""
    path = folder / f"{name}.json"
    if path.exists() and not force:
        raise UsageError(
            f"{path}: got a folder with this result, expected a new one; "
            "try another, or allow overwriting with --force"
        )


def versions() -> dict[str, str]:
    """Versions of everything that the figures may depend on."""
    return {"python": platform.python_version(), "ltenet": __version__, **package_versions()}


def write_result(result: dict[str, Any], folder: Path, *, force: bool = False) -> None:
    """Write a result as JSON and as Markdown."""
    for suffix, content in ((".json", _json_text(result)), (".md", markdown(result))):
        with atomic_path(folder / f"{result['name']}{suffix}", force=force) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="\n")


def _json_text(result: dict[str, Any]) -> str:
    """JSON with one line per row, because its curves would otherwise take a line per number."""
    head = {key: value for key, value in result.items() if key != "rows"}
    rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in result["rows"])
    opened = json.dumps(head, indent=1, allow_nan=False).removesuffix("\n}")
    return f'{opened},\n "rows": [\n  {rows}\n ]\n}}\n'


def plot_rows(
    name: str, rows: Sequence[dict[str, Any]], folder: Path, *, force: bool = False
) -> tuple[list[str], list[str]]:
    """Draw the accuracy curves of each setting and sampling, the paper's figures as crosses.

    Returns
    -------
    tuple
        Names of the files, and what was left out and why.
    """
    files: list[str] = []
    for what, setting in SETTINGS.items():
        own = [row for row in rows if row["setting"] == what and "missing" not in row]
        for sampling in ("shared", "independent"):
            lines = {
                f"ours: {row['label']}": np.array(list(row[sampling]["curve"].values()))  # (2, T)
                for row in own
                if sampling in row
            }
            if not lines:
                continue
            # The paper tests shared samples only.
            marks = {
                f"paper: {row['label']}": row["published"]["acc"]
                for row in own
                if row["published"] and sampling == "shared"
            }
            names = [f"{name}-{setting.benchmark}-{sampling}{end}" for end in (".png", ".svg")]
            try:
                plot_curves(
                    lines,
                    [folder / file for file in names],
                    title=f"{setting.benchmark}, {sampling} samples",
                    published=marks,
                    force=force,
                )
            except MissingError as error:
                return [], [f"no figure was drawn: {error}"]
            files += names
    return files, []


def plot_costs(
    name: str, rows: Sequence[dict[str, Any]], folder: Path, *, force: bool = False
) -> tuple[list[str], list[str]]:
    """Draw error over seconds of each setting and sampling; returns as `plot_rows` does."""
    files: list[str] = []
    for what, setting in SETTINGS.items():
        own = [row for row in rows if row["setting"] == what and "missing" not in row]
        for sampling in ("shared", "independent"):
            tested = [row for row in grouped(own) if (row.get(sampling) or {}).get("err_percent")]
            points = {
                row["label"]: (
                    row[sampling]["seconds_per_pair"]["mean"],
                    row[sampling]["err_percent"]["mean"],
                )
                for row in tested
                if row[sampling]["seconds_per_pair"]
            }
            if not points:
                continue
            names = [f"{name}-cost-{setting.benchmark}-{sampling}{end}" for end in (".png", ".svg")]
            try:
                plot_cost(
                    points,
                    {
                        row["label"]: row["group"] or "methods"
                        for row in tested
                        if row["label"] in points
                    },
                    [folder / file for file in names],
                    title=f"{setting.benchmark}, {sampling} samples",
                    force=force,
                )
            except MissingError as error:
                return [], [f"no figure was drawn: {error}"]
            files += names
    return files, []


def write_picture(name: str, image: Image, folder: Path, *, force: bool = False) -> list[str]:
    """Write a picture as PNG, and as an SVG that holds the same pixels; returns the names."""
    height, width = image.shape[:2]
    write_png(folder / f"{name}.png", image, force=force)
    pixels = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/png;base64,{pixels}"/></svg>\n'
    )
    with atomic_path(folder / f"{name}.svg", force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return [f"{name}.png", f"{name}.svg"]
