"""Tables of results/*.json as Markdown: what goes between the marks in README, docs and cards.

Every function takes the words after the kind in a mark and the folder of results, and returns the
text, or None where nothing was measured yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ltenet.evaluation.bench.benchmarks import official_share
from ltenet.evaluation.bench.comparison import cell
from ltenet.evaluation.paper.plan import SETTINGS
from ltenet.evaluation.paper.tables import plain_table, table, told
from tools.conclusions import conclusions
from tools.generated_tables import TABLES, markdown_table

SETS = {
    "faust": "FAUST 80-99",
    "shrec19": "SHREC'19",
    "tosca": "TOSCA",
    "faust_r": "FAUST_r",
    "shrec07": "SHREC'07",
    "generated-human": "generated people",
}
MAPS = {"none": "nearest neighbour", "coherent": "refined", "ot": "optimal transport"}
#: Figures of a benchmark: heads of the columns, and where they are in a result.
FIGURES = (
    ("acc 1 %", ("acc", "0.01")),
    ("acc 5 %", ("acc", "0.05")),
    ("err, % of dmax", ("err_percent",)),
    ("err_dpc", ("err_dpc",)),
    ("median pair", ("err_percent_pairs", "median")),
    ("worst tenth", ("err_percent_pairs", "worst_tenth")),
    ("failed, %", ("failed_percent",)),
)
#: Figures of partial shapes.
PART_FIGURES = (
    *FIGURES[2:3],
    *FIGURES[4:],
    ("overlap IoU", ("overlap_iou",)),
    ("calibration error", ("calibration_error",)),
    ("sure failures, %", ("sure_failures_percent",)),
)


def bench(words: Sequence[str], results: Path) -> str | None:
    """Benchmarks, one per row: ``bench faust-shared-* faust-independent-*``."""
    found = read_bench(words, results)
    if not found:
        return None
    heads = ["set, sampling", "weights", "map", *(head for head, _ in FIGURES), "pairs x seeds"]
    rows = []
    for result in found:
        rows.append(
            [
                f"{set_name(result)}, {result['sampling']}{_turned(result)}",
                f"`{result['model']}`" if result["model"] else "-",
                method_name(result),
                *figures(result),
                f"{result['pairs']} x {len(result['seeds'])}",
            ]
        )
    return "\n".join([markdown_table(heads, rows), *remarks(found)])


def parts(words: Sequence[str], results: Path) -> str | None:
    """Partial shapes beside whole ones, one kind per row: ``parts partial-faust-*``."""
    found = read_bench(words, results)
    if not found:
        return None
    rows = []
    for result in found:
        kind = result["partial"] or "whole"
        part = f"{kind} to {kind}" if result["both"] else kind
        rows.append(
            [
                set_name(result),
                part,
                *(figure(result, keys) for _, keys in PART_FIGURES),
                str(result["pairs"]),
            ]
        )
    return markdown_table(["set", "part", *(head for head, _ in PART_FIGURES), "pairs"], rows)


def leak(words: Sequence[str], results: Path) -> str | None:
    """Shared beside independent samples of the same pairs: ``leak faust-* tosca-*``."""
    found = read_bench(words, results)
    by_case: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for result in found:
        if result["rotate"] == "none" and result["by"] == "vertex":
            pairs = f"{result['pairs']} x {len(result['seeds'])}"
            case = (set_name(result), str(result["model"]), method_name(result), pairs)
            by_case.setdefault(case, {})[result["sampling"]] = result
    both = {case: pair for case, pair in by_case.items() if {"shared", "independent"} <= set(pair)}
    if not both:
        return None
    heads = [
        *("set", "weights", "map", "pairs x seeds"),
        *("acc 1 %, shared", "acc 1 %, independent", "the oracle's"),
        *("err, % of dmax, shared", "independent", "the oracle's"),
    ]
    rows = []
    for case, pair in both.items():
        shared, independent = pair["shared"], pair["independent"]
        oracle = independent["oracle"] | {"seeds": independent["seeds"]}
        row = list(case)
        for _, keys in (FIGURES[0], FIGURES[2]):
            row += [figure(result, keys) for result in (shared, independent, oracle)]
        rows.append(row)
    return markdown_table(heads, rows)


def meshes(words: Sequence[str], results: Path) -> str | None:
    """Whole meshes at listed points, one method per row: ``meshes meshes-faust_r*``."""
    rows = []
    for result in read_rows(words, results, "geodesic_curve"):
        own = result["geodesic"]
        others = result.get("without_identities", {}).get("geodesic")
        rows.append(
            [
                f"{set_name(result)}{_turned(result)}",
                method_name(result),
                *(f"{own[key]:.2f}" for key in ("mean", "median", "worst_tenth")),
                "-" if others is None else f"{others['mean']:.2f}",
                cell(result["flips_percent"], several=False),
                cell(result["limb_swaps_percent"], several=False),
                cell(result["seconds_per_pair"], several=False),
                str(result["pairs"]),
            ]
        )
    heads = ["set", "map", "geodesic x 100", "median", "worst tenth", "without identities"]
    heads += ["flips, %", "limb swaps, %", "s / pair", "pairs"]
    return markdown_table(heads, rows) if rows else None


def landmarks(words: Sequence[str], results: Path) -> str | None:
    """Errors at landmarks by class, one method per row: ``landmarks meshes-shrec07``."""
    found = read_rows(words, results, "landmark_percent")
    if not found:
        return None
    classes = list(found[0]["classes"])
    rows = [
        [
            f"{method_name(result)}, {what}",
            *(f"{result['classes'][name][key]['mean']:.1f}" for name in classes),
            *(f"{result[key][figure]:.1f}" for figure in ("mean", "median", "worst_tenth")),
            str(result["pairs"]),
        ]
        for result in found
        for key, what in (
            ("landmark_percent", "plain"),
            ("landmark_percent_symmetric", "up to symmetry"),
        )
    ]
    return markdown_table(["map", *classes, "mean", "median", "worst tenth", "pairs"], rows)


def paper(words: Sequence[str], results: Path) -> str | None:
    """One experiment of the paper, ours beside theirs: ``paper design``."""
    path = results / "paper" / f"{words[0]}.json"
    if not path.is_file():
        return None
    result = read(path)
    parts = [*told(result), ""]
    for what, setting in SETTINGS.items():
        if any(row.get("setting") == what for row in result["rows"]):
            parts += [f"Ours: {setting.ours}; the paper's: {setting.paper}.", ""]
            parts += [table(result, what), ""]
    loose = [row for row in result["rows"] if "setting" not in row]
    if loose:
        parts += [plain_table(loose), ""]
    return "\n".join(parts).rstrip("\n")


def verdicts(words: Sequence[str], results: Path) -> str | None:
    """Which conclusions of the paper our figures decide: ``verdicts``."""
    found = {path.stem: read(path) for path in sorted((results / "paper").glob("*.json"))}
    rows = [list(row) for row in conclusions(found)]
    heads = ["experiment", "the paper's conclusion", "in our hands", "our figures"]
    return markdown_table(heads, rows) if rows else None


def commands(words: Sequence[str], results: Path) -> str | None:
    """Commands behind benchmarks, and where they were run from: ``commands faust-*``."""
    found = [read(path) for path in matching(words, results / "bench")]
    lines = []
    for content in found:
        first = next((row for row in content.get("rows", [content]) if "missing" not in row), {})
        lines.append(f"{content['command']}  # commit {first.get('commit') or 'unknown'}")
    return "\n".join(["```bash", *lines, "```"]) if lines else None


def one_figure(words: Sequence[str], results: Path) -> str | None:
    """One number inside a sentence: ``figure bench/faust-shared-human-none acc 0.01``.

    A row of an experiment goes by setting and label: ``figure paper/main rows animal:DPC shared
    acc_1``, with _ for spaces.
    """
    path = results / f"{words[0]}.json"
    if not path.is_file():
        return None
    value: Any = read(path)
    for word in words[1:]:
        value = _row(value, word) if isinstance(value, list) else value[word]
    return cell(value, several=False) if isinstance(value, dict) else f"{value:.3g}"


def generated(words: Sequence[str], results: Path) -> str | None:
    """Make a table of our own benchmarks, which need no data: ``generated speed scale``."""
    folder, name = words
    table = TABLES[folder][name]
    paths = [results / folder / f"{part}.json" for part in table.names]
    return table.make(*map(read, paths)) if all(path.is_file() for path in paths) else None


def _row(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Find a row by number, or by setting and label."""
    if name.isdigit():
        return rows[int(name)]
    return next(row for row in rows if f"{row['setting']}:{row['label']}".replace(" ", "_") == name)


#: What a mark may ask for.
KINDS = {
    "bench": bench,
    "parts": parts,
    "leak": leak,
    "meshes": meshes,
    "landmarks": landmarks,
    "paper": paper,
    "verdicts": verdicts,
    "commands": commands,
    "generated": generated,
    "figure": one_figure,
}


# --- parts ---------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """Read one result."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def matching(patterns: Sequence[str], folder: Path) -> list[Path]:
    """Files of a folder by pattern, in the order of the patterns, none twice."""
    found = [path for pattern in patterns for path in sorted(folder.glob(f"{pattern}.json"))]
    return list(dict.fromkeys(found))


def read_bench(patterns: Sequence[str], results: Path) -> list[dict[str, Any]]:
    """Results of single methods."""
    found = [read(path) for path in matching(patterns, results / "bench")]
    return [result for result in found if "rows" not in result]


def read_rows(patterns: Sequence[str], results: Path, key: str) -> list[dict[str, Any]]:
    """Results of single methods and of comparisons that have a figure."""
    found = [read(path) for path in matching(patterns, results / "bench")]
    rows = [row for result in found for row in result.get("rows", [result])]
    return [row for row in rows if key in row]


def set_name(result: dict[str, Any]) -> str:
    """Name a set."""
    return SETS.get(result["benchmark"], result["benchmark"])


def method_name(result: dict[str, Any]) -> str:
    """Name a way of matching."""
    if result["method"] != "ltenet":
        return str(result["method"])
    name = str(MAPS.get(result["refine"], result["refine"]))
    return f"{name}, as they come" if result.get("orient") == "none" else name


def figures(result: dict[str, Any]) -> list[str]:
    """Cells of the columns in `FIGURES`."""
    return [figure(result, keys) for _, keys in FIGURES]


def figure(result: dict[str, Any], keys: tuple[str, ...]) -> str:
    """One cell: mean, and the spread over the seeds."""
    value: Any = result
    for key in keys:
        value = value.get(key) if value is not None else None
    return cell(value, several=len(result["seeds"]) > 1)


def remarks(found: Sequence[dict[str, Any]]) -> list[str]:
    """Lines that must stand beside figures, each once."""
    told_once = dict.fromkeys(
        (set_name(r), text)
        for r in found
        if (text := official_share(r["benchmark"], r["pairs"])) is not None
    )
    return [line for name, text in told_once for line in ("", f"{name}: {text}.")]


def _turned(result: dict[str, Any]) -> str:
    return "" if result["rotate"] == "none" else f", rotated ({result['rotate']})"
