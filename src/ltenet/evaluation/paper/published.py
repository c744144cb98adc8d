"""What the paper published: its tables, kept as they are in `published.json`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Figures(NamedTuple):
    """Published figures of one row.

    Attributes
    ----------
    acc
        % of points within 1 % of the diameter.
    err
        What the paper calls the error: 100 times the mean *squared* distance, on TOSCA divided
        by 3; our `err_dpc`.
    """

    acc: float
    err: float


class Published(NamedTuple):
    """What the paper says in one experiment.

    Attributes
    ----------
    source
        Label of the table or figure in the paper.
    title
        What it shows.
    claim
        What the paper concludes from it.
    rows
        By name of the row and by setting, "human" (SURREAL/SHREC'19), "animal" (SMAL/TOSCA) or
        "shrec" (SHREC'19/SHREC'19).
    """

    source: str
    title: str
    claim: str
    rows: dict[str, dict[str, Figures]]

    def row(self, name: str | None, setting: str) -> Figures | None:
        """Figures of a row, None where the paper has none."""
        return None if name is None else self.rows.get(name, {}).get(setting)


@cache
def published(experiment: str) -> Published:
    """Return what the paper says in an experiment."""
    text = (resources.files(__package__) / "published.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)[experiment]
    rows = {
        name: {setting: Figures(**figures) for setting, figures in row.items()}
        for name, row in content["rows"].items()
    }
    return Published(content["source"], content["title"], content["claim"], rows)
