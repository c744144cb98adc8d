"""Trainings whose rows are all measured, whatever became of their runs.

A run is hours of work, and its folder can be lost with the machine. So each row keeps what it was
tested with, training by training, and a run is wanted only as long as some row lacks it.
"""

from __future__ import annotations

import json
from pathlib import Path

from ltenet.evaluation.paper.plans import PLANS
from ltenet.evaluation.paper.recipes import PeerRecipe, Recipe
from ltenet.evaluation.paper.runner import find_measured, wanted_trainings


def measured_runs(folder: Path) -> frozenset[str]:
    """Names of the runs that no table in a folder of results waits for.

    Parameters
    ----------
    folder
        Where `ltenet paper` writes, with NAME.json of each experiment that has been run.
    """
    seen: set[str] = set()
    lacking: set[str] = set()
    for name, make in PLANS.items():
        path = folder / f"{name}.json"
        found = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else []
        rows = {(row["setting"], row["label"]): row for row in found if "setting" in row}
        plan = make(None)
        for row in plan.rows:
            recipe = row.weights
            if not isinstance(recipe, Recipe | PeerRecipe) or not recipe.trained:
                continue
            before = rows.get((row.setting, row.label), {})
            for wanted in wanted_trainings(recipe):
                seen.add(wanted["run"])
                if find_measured(before, wanted, None, plan.samplings) is None:
                    lacking.add(wanted["run"])
    return frozenset(seen - lacking)
