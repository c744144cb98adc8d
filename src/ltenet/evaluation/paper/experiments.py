"""Every experiment of the paper by name: run it, write it, return its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ltenet.errors import UsageError
from ltenet.evaluation.bench.provenance import source_commit
from ltenet.evaluation.paper.config import PaperConfig, Tell
from ltenet.evaluation.paper.maps import draw_maps, run_maps
from ltenet.evaluation.paper.output import (
    check_free,
    plot_costs,
    plot_rows,
    versions,
    write_picture,
    write_result,
)
from ltenet.evaluation.paper.plans import PLANS
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.paper.rebuilt import draw_rebuilt, run_reconstruction
from ltenet.evaluation.paper.runner import run_plan
from ltenet.evaluation.paper.scans import draw_scans, finished_weights, run_scans

#: All experiments, tables first.
EXPERIMENTS = (*PLANS, "reconstruction", "real", "maps")


def run_experiment(
    name: str,
    config: PaperConfig,
    folder: Path,
    *,
    command: str,
    shapes: tuple[Path, ...] = (),
    force: bool = False,
    again: bool = False,
    tell: Tell = lambda text: None,
) -> dict[str, Any]:
    """Run an experiment and write its table and figures.

    Parameters
    ----------
    name
        One of `EXPERIMENTS`.
    config
        Data, budget, pairs and seeds.
    folder
        Where to write, made if it is not there.
    command
        Command that the result names.
    shapes
        For "real", two files.
    force
        Replace a result that is there.
    again
        Go on with a result that is there: its complete rows stay.
    tell
        Reports progress.

    Returns
    -------
    dict
        The result, as in NAME.json.
    """
    if name not in EXPERIMENTS:
        raise UsageError(
            f"got the experiment '{name}', expected one of {', '.join(EXPERIMENTS)}; "
            "try another spelling"
        )
    if shapes and name != "real":
        raise UsageError(
            f"got --shapes for '{name}', expected none: only 'real' has it; try leaving it out"
        )
    check_free(name, folder, force=force or again)
    force = force or again
    paper = published(name)
    note = ""
    figures: list[str] = []
    left_out: list[str] = []

    def result_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "name": name,
            "title": paper.title,
            "source": paper.source,
            "claim": paper.claim,
            "note": note,
            "command": command,
            "seeds": list(config.seeds),
            "pairs": config.pairs,
            "steps": config.budget.steps,
            "commit": source_commit(),
            "versions": versions(),
            "figures": figures,
            "rows": rows,
        }

    if name == "reconstruction":
        moments = run_reconstruction(config.budget)
        rows = [made.as_dict() for made in moments]
    elif name == "real":
        own = finished_weights(config.budget)
        scans = run_scans(shapes, config.data, seed=config.seeds[0], paper=own)
        rows = scans.rows()
    elif name == "maps":
        mapped = run_maps(config, tell=tell)
        rows = [row for pair in mapped for row in pair.rows()]
    else:
        plan = PLANS[name](config.data if config.published else None)
        note = plan.note
        if note:
            tell(note)

        def keep(rows: list[dict[str, Any]]) -> None:
            if again:
                folder.mkdir(parents=True, exist_ok=True)
                write_result(result_of(rows), folder, force=True)

        known = known_rows(name, folder, config) if again else []
        rows = run_plan(name, plan, config, known=known, keep=keep, tell=tell)
    folder.mkdir(parents=True, exist_ok=True)
    if name == "reconstruction":
        figures = write_picture(name, draw_rebuilt(moments), folder, force=force)
    elif name == "real":
        figures = write_picture(name, draw_scans(scans), folder, force=force)
    elif name == "maps":
        figures = write_picture(name, draw_maps(mapped), folder, force=force)
    elif plan.plot:
        figures, left_out = plot_rows(name, rows, folder, force=force)
    elif plan.cost:
        figures, left_out = plot_costs(name, rows, folder, force=force)
    for text in left_out:
        tell(text)
    result = result_of(rows)
    write_result(result, folder, force=True)
    return result


def known_rows(name: str, folder: Path, config: PaperConfig) -> list[dict[str, Any]]:
    """Rows of a result that was measured with the same seeds, pairs and steps; else none."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    wanted = (list(config.seeds), config.pairs, config.budget.steps)
    same = wanted == (found["seeds"], found["pairs"], found.get("steps", "minutes"))
    return list(found["rows"]) if same else []
