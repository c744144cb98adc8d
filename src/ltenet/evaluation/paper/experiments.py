"""Every experiment of the paper by name: run it, write it, return its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ltenet.errors import UsageError
from ltenet.evaluation.paper.output import (
    check_free,
    plot_rows,
    versions,
    write_picture,
    write_result,
)
from ltenet.evaluation.paper.plans import PLANS
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.paper.rebuilt import draw_rebuilt, run_reconstruction
from ltenet.evaluation.paper.runner import PaperConfig, Tell, run_plan
from ltenet.evaluation.paper.scans import draw_scans, run_scans
from ltenet.evaluation.provenance import source_commit

#: All experiments, those that are tables of rows first.
EXPERIMENTS = (*PLANS, "reconstruction", "real")


def run_experiment(
    name: str,
    config: PaperConfig,
    folder: Path,
    *,
    command: str,
    shapes: tuple[Path, ...] = (),
    force: bool = False,
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
        How the experiment was asked for; the result names it.
    shapes
        For "real", two files.
    force
        Replace a result that is there.
    tell
        Told what is being done.

    Returns
    -------
    dict
        The result, as in NAME.json.
    """
    if name not in EXPERIMENTS:
        raise UsageError(
            f"the experiment '{name}' came; one of {', '.join(EXPERIMENTS)} is needed; "
            "check the spelling"
        )
    if shapes and name != "real":
        raise UsageError(f"--shapes came for '{name}'; only 'real' takes files; leave them out")
    check_free(name, folder, force=force)
    paper = published(name)
    note = ""
    figures: list[str] = []
    left_out: list[str] = []
    if name == "reconstruction":
        moments = run_reconstruction(config.budget)
        rows = [made.as_dict() for made in moments]
    elif name == "real":
        scans = run_scans(shapes, config.data, seed=config.seeds[0])
        rows = scans.rows()
    else:
        plan = PLANS[name](config.budget.runs)
        rows, note = run_plan(name, plan, config, tell=tell), plan.note
    folder.mkdir(parents=True, exist_ok=True)
    if name == "reconstruction":
        figures = write_picture(name, draw_rebuilt(moments), folder, force=force)
    elif name == "real":
        figures = write_picture(name, draw_scans(scans), folder, force=force)
    elif plan.plot:
        figures, left_out = plot_rows(name, rows, folder, force=force)
    for text in left_out:
        tell(text)
    result = {
        "name": name,
        "title": paper.title,
        "source": paper.source,
        "claim": paper.claim,
        "note": note,
        "command": command,
        "seeds": list(config.seeds),
        "pairs": config.pairs,
        "minutes": config.budget.minutes,
        "threads": config.budget.threads,
        "commit": source_commit(),
        "versions": versions(),
        "figures": figures,
        "rows": rows,
    }
    write_result(result, folder, force=force)
    return result
