"""An experiment as Markdown: our figures and the paper's, side by side and named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ltenet.evaluation.bench.benchmarks import official_share
from ltenet.evaluation.bench.comparison import cell
from ltenet.evaluation.paper.plan import SETTINGS
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.peers.table import PEERS

#: Columns of our own figures, by sampling: their heads, and the figure.
_OURS = {
    "shared": (("acc 1 %", "acc_1"), ("err_dpc", "err_dpc"), ("s / pair", "seconds_per_pair")),
    "independent": (("acc 1 %", "acc_1"), ("acc 5 %", "acc_5"), ("err, % of dmax", "err_percent")),
}
_PAPER = (("acc 1 %", "acc"), ("err", "err"))


def markdown(result: dict[str, Any]) -> str:
    """Write a result as text, from its JSON alone."""
    parts = [f"# {result['title']}", "", *told(result), ""]
    for what in SETTINGS:
        rows = [row for row in result["rows"] if row.get("setting") == what]
        if rows:
            parts += [f"## {SETTINGS[what].ours} (the paper: {SETTINGS[what].paper})", ""]
            parts += [table(result, what), ""]
            parts += [*_remarks(rows), ""]
    loose = [row for row in result["rows"] if "setting" not in row]
    if loose:
        parts += [plain_table(loose), ""]
    parts += [f"![{result['title']}]({name})" for name in result["figures"] if ".png" in name]
    return "\n".join(parts).rstrip("\n") + "\n"


def told(result: dict[str, Any]) -> list[str]:
    """Lines that say what was measured and how."""
    seeds = ", ".join(map(str, result["seeds"]))
    lines = [
        f"{result['source']} of the paper. The paper's conclusion: {result['claim']}",
        "",
        f"Ours by `{result['command']}`, sampling seeds {seeds}, "
        f"commit {result['commit'] or 'unknown'}.",
    ]
    return lines if not result["note"] else [*lines, result["note"]]


def table(result: dict[str, Any], what: str) -> str:
    """Rows of one setting; columns begin with `ours` or `paper`."""
    rows = [row for row in result["rows"] if row.get("setting") == what]
    samplings = [name for name in _OURS if any(name in row for row in rows)]
    heads = ["row", *(f"ours: {head}" for head, _ in _OURS["shared"][:2])]
    heads += [f"paper: {head}" for head, _ in _PAPER]
    remembered = any("memory_mb" in (row.get("shared") or {}) for row in rows)
    cost = [*_OURS["shared"][2:], *([("MB", "memory_mb")] if remembered else [])]
    heads += [f"ours: {head}" for head, _ in cost]
    if "independent" in samplings:
        heads += [f"ours, independent samples: {head}" for head, _ in _OURS["independent"]]
    also = list(dict.fromkeys(name for row in rows for name in row.get("also", ())))
    heads += [f"ours, {name}: {head}" for name in also for head, _ in _OURS["shared"][:2]]
    meshes = any(row.get("mesh") for row in rows)
    heads += ["ours, whole meshes: geodesic x 100"] if meshes else []
    trained = any(row.get("trainings") for row in rows)
    heads += ["ours: training steps"] if trained else []
    several = len(result["seeds"]) > 1
    lines = [_line(heads), "|" + "---|" * len(heads)]
    group = ""
    for row in grouped(rows):
        if row["group"] != group:
            group = row["group"]
            lines.append(_line([f"*{group}*", *[""] * (len(heads) - 1)]))
        paper = row["published"] or {}
        given = [f"{paper[key]:.1f}" if key in paper else "-" for _, key in _PAPER]
        if "missing" in row:
            cells = [row["missing"], "-", *given, *["-"] * (len(heads) - 5)]
        else:
            test = row.get("shared") or {}
            first = [cell(test.get(key), several=several) for _, key in _OURS["shared"][:2]]
            last = [cell(test.get(key), several=several) for _, key in cost]
            cells = [*first, *given, *last]
            if "independent" in samplings:
                cells += _figures(row, "independent", several)
            for name in also:
                test = row["also"].get(name, {}).get("shared", {})
                cells += [cell(test.get(key), several=several) for _, key in _OURS["shared"][:2]]
            if meshes:
                cells.append(cell((row.get("mesh") or {}).get("geodesic"), several=False))
            if trained:
                cells.append(_steps(row))
        lines.append(_line([row["label"], *cells]))
    for label, figures in _paper_only(result["name"], rows, what):
        given = [f"{figure:.1f}" for figure in figures]
        lines.append(_line([f"{label} (paper only)", "-", "-", *given, *["-"] * (len(heads) - 5)]))
    return "\n".join(lines)


#: Groups of a table with learned methods beside ours, in their order.
_GROUPS = {
    None: "without learning",
    "unsupervised": "learned without supervision",
    "supervised": "learned with supervision",
}


def grouped(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows into groups, "group" in each; one group without a name if none has other learners.

    Ours come first, then methods that learn nothing, then others by their supervision.
    """
    peers = {row["label"]: PEERS.get(row.get("method", "embedding")) for row in rows}
    learning = {label: None if peer is None else peer.learning for label, peer in peers.items()}
    if not any(learning.values()):
        return [row | {"group": ""} for row in rows]
    own = [row for row in rows if row["method"] in ("ltenet", "embedding")]
    found = [row | {"group": "ours, and LTENet and DPC by the paper's recipes"} for row in own]
    others = [row for row in rows if row["method"] not in ("ltenet", "embedding")]
    for kind, group in _GROUPS.items():
        found += [row | {"group": group} for row in others if learning[row["label"]] == kind]
    return found


def plain_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows that the paper has no figures for, all of one form."""
    heads = list(rows[0])
    lines = [_line(heads), "|" + "---|" * len(heads)]
    lines += [_line([_number(value) for value in row.values()]) for row in rows]
    return "\n".join(lines)


def _figures(row: dict[str, Any], sampling: str, several: bool) -> list[str]:
    test = row.get(sampling) or {}
    return [cell(test.get(key), several=several) for _, key in _OURS[sampling]]


def _steps(row: dict[str, Any]) -> str:
    """Say how long the trainings of a row are, and how far those are that it waits for."""
    steps = [_length(made) for made in row["trainings"]]
    if len(set(steps)) == 1 and len(steps) > 1:
        steps = [f"{steps[0]} ({len(steps)} seeds)"]
    return "; ".join([*steps, *(f"in training: {text}" for text in row["waiting"])]) or "-"


def _length(made: dict[str, Any]) -> str:
    """Length of a training: steps, and for other systems the pairs they saw and the minutes."""
    steps = f"{made['steps']:,}"
    if "shipped" in made:
        return f"{steps} (shipped, {made['shipped']['precision']} precision)"
    if "pairs_seen" not in made:
        return steps
    return f"{steps} ({made['pairs_seen']:,} pairs, {made['minutes']:.0f} min)"


def _paper_only(
    name: str, rows: Sequence[dict[str, Any]], what: str
) -> list[tuple[str, tuple[float, float]]]:
    """Rows of the paper that we have no counterpart of."""
    own = {row["label"] for row in rows}
    found = published(name).rows
    return [
        (label, settings[what])
        for label, settings in found.items()
        if what in settings and label not in own and name == "main"
    ]


def _remarks(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Say what belongs beside the figures of a set, once."""
    tested = {
        (row["benchmark"], row[name]["pairs"]) for row in rows for name in _OURS if name in row
    }
    found = [official_share(*case) or f"{case[1]} pairs" for case in sorted(tested)]
    return [f"Tested: {', '.join(found)}."] if found else []


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
