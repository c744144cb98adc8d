"""Tables of what `python -m benchmarks.NAME --json` printed, as Markdown.

`TABLES` names the results that each table is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Result = dict[str, Any]
_ERRORS = ("err_percent", "acc_1", "acc_5")
_HEADS = ("err, % of dmax", "acc 1 %", "acc 5 %")


def compute(result: Result) -> str:
    """Compare the core with a plain reference."""
    seconds, setting = result["seconds"], result["setting"]
    products = f"{result['embed_ratio_to_products']:.0f} to a reference by matrix products"
    cases = (
        ("embed one shape", "embed", f"{result['embed_ratio']:.0f} ({products})"),
        (
            f"train the encoder, {setting['encoder_shapes']} shapes",
            "encoder_train",
            f"{result['encoder_train_ratio']:.0f}",
        ),
        (
            f"a whole training step, {setting['step_pairs']} pairs",
            "step",
            f"{result['step_ratio']:.0f}",
        ),
    )
    rows = [
        [label, *(f"{seconds[key][who]:.3g} s" for who in ("ltenet", "reference")), ratio]
        for label, key, ratio in cases
    ]
    peaks = [f"{result['step_peak_bytes'][who] / 1e9:.2f} GB" for who in ("ltenet", "reference")]
    rows.append(["its peak memory", *peaks, f"{result['step_memory_ratio']:.2f}"])
    threads, torch = setting["threads"], result["versions"]["torch"]
    return "\n".join(
        [
            markdown_table(["", "ltenet", "reference", "ratio"], rows),
            "",
            f"Medians, {threads} threads, torch {torch}.",
        ]
    )


def matching(result: Result) -> str:
    """Compare the whole pipeline with deformable registration."""
    rows = [
        [name, f"{result['seconds'][key]:.2g} s", f"{result['err_percent'][key]:.2f}"]
        for name, key in (("`ltenet.match`", "ltenet"), ("pycpd, 100 iterations", "pycpd"))
    ]
    heads = [f"{result['points']:,} points", "a pair", "err, % of dmax"]
    told = f"Median of {result['pairs']} generated pairs; {result['ratio']:.1f} times faster."
    return "\n".join([markdown_table(heads, rows), "", told])


def scale(result: Result) -> str:
    """Show how matching grows."""
    rows = [
        [f"{run['points']:,}", f"{run['seconds']:.3g} s", f"{run['peak_gb']:.2f} GB"]
        for run in result["runs"]
    ]
    return markdown_table(["points of each shape", "time", "peak memory"], rows)


def methods(result: Result) -> str:
    """Compare the methods of refinement under both protocols."""
    figures = result["figures"]
    samplings = ("independent", "shared")
    rows = []
    for name in result["methods"]:
        both = [figures[f"{sampling}: {name}"] for sampling in samplings]
        seconds = sum(one["seconds"] for one in both) / len(both)
        rows.append(
            [f"`{name}`", *(cell for one in both for cell in errors(one)), f"{seconds:.2f}"]
        )
    heads = [f"{sampling}: {head}" for sampling in samplings for head in _HEADS]
    return markdown_table(["method", *heads, "seconds"], rows)


def soft(result: Result) -> str:
    """Compare the weights of soft partners."""
    rows = [[name, *errors(row)] for name, row in result["figures"].items()]
    return markdown_table(["weights", *_HEADS], rows)


def repair(result: Result) -> str:
    """Show how far each method repairs known defects."""
    errors_of: dict[str, dict[str, float]] = {}
    for name, row in result["figures"].items():
        defect, method = name.split(": ")
        errors_of.setdefault(defect, {})[method] = row["err_percent"]
    heads = list(next(iter(errors_of.values())))
    rows = [[name, *(f"{row[head]:#.3g}" for head in heads)] for name, row in errors_of.items()]
    return markdown_table(["defect", *heads], rows)


def agreement(*results: Result) -> str:
    """Compare single deformations with what they agree on."""
    human, animal = (one["figures"] for one in results)
    rows = [[name, *errors(human[name]), *errors(animal[name])] for name in human]
    heads = [f"{what}: {head}" for what in ("humans", "animals") for head in _HEADS]
    return markdown_table(["map", *heads], rows)


def surface(result: Result) -> str:
    """Show what neighbours along the surface gain on meshes."""
    rows = [
        [
            f"{what}s, {figures['pairs']} pairs",
            name,
            *(f"{row[key]:.2f}" for key in ("mean", "median")),
            f"{row['failed_percent']:.0f}",
        ]
        for what, figures in result["figures"].items()
        for name, row in figures.items()
        if name != "pairs"
    ]
    return markdown_table(["meshes", "map, neighbours", "mean", "median", "failed, %"], rows)


def sharpening(result: Result) -> str:
    """Show what sharpening gains on meshes."""
    rows = [
        [
            f"{what}s, {name}",
            *(f"{row[key]:.2f}" for key in ("plain", "sharpened")),
            f"{row['better_percent']:.0f} % of {row['pairs']}",
            f"{row['worst_loss']:+.2f}",
        ]
        for what, kinds in result["figures"].items()
        for name, row in kinds.items()
    ]
    heads = ["pairs", "without", "sharpened", "better", "largest change for the worse"]
    return markdown_table(heads, rows)


def same_points(*results: Result) -> str:
    """Count the pairs that were taken for the same points."""
    rows = []
    for result in results:
        taken: dict[str, list[float]] = {}
        for name, row in result["figures"].items():
            sampling, _, noise = name.split(", ")
            kind = noise if sampling == "shared" else "apart"
            taken.setdefault(kind, []).append(row["taken"])
        rows.append(
            [
                f"{result['what']}s, {result['points']:,} points",
                *(f"{sum(n):.0f} of {len(n) * result['pairs']}" for n in taken.values()),
            ]
        )
    heads = ["the same points", "with noise 0.005", "with noise 0.01", "drawn apart, any noise"]
    return markdown_table(["pairs", *heads], rows)


def damages(result: Result) -> str:
    """Show what damages cost, method by method."""
    cases = result["cases"]
    methods = list(next(iter(cases.values())))
    heads = [
        f"{method}: {head}"
        for method in methods
        for head in (("acc 5 %", "err, % of dmax", "stated")[: 3 if method == "ltenet" else 2])
    ]
    rows = []
    for name, found in cases.items():
        cells = []
        for method in methods:
            figures = found[method]
            keys = ("accuracy", "error", "stated")[: 3 if method == "ltenet" else 2]
            cells += ["-" if figures[key] is None else f"{figures[key]:.1f}" for key in keys]
        rows.append([name, *cells])
    told = f"Means over {result['pairs']} pairs, people and animals in turn."
    drawn = "![Points within 5 %, and the stated probability](../results/robustness/damages.png)"
    return "\n".join([markdown_table(["input", *heads], rows), "", told, "", drawn])


def costs(pairs: Result, growth: Result, workers: Result, atlas: Result) -> str:
    """Show what collections cost, and what that is compared with."""
    few, many = growth["growth"]
    each = f"{pairs['pairs']:,} pairs of {pairs['shapes']} shapes"
    rows = [
        [f"{each}, `match` for each (from {pairs['single_sampled']})", "single", ""],
        [f"{each}, `--all-pairs`", "direct", f"{pairs['direct_ratio']:.2f} x faster"],
        [f"{each}, `--hubs {pairs['hubs']}`", "hubs", f"{pairs['all_pairs_ratio']:.1f} x faster"],
    ]
    for row in rows:
        name = row[1]
        row[1] = f"{pairs[f'{name}_seconds']:,.0f} s"
        row[2] = ", ".join(filter(None, [row[2], f"error {pairs[f'{name}_error_percent']:.2f} %"]))
    rows += [
        [
            f"{one['shapes']} shapes to one template",
            f"{one['seconds_per_shape']:.2f} s each",
            f"{one['peak_mb']:,} MB at most",
        ]
        for one in (few, many)
    ]
    rows += [
        [f"{workers['worker_pairs']} pairs, {name}", f"{workers[f'{key}_seconds']:.0f} s", ratio]
        for name, key, ratio in (
            ("one worker", "one_worker", ""),
            ("two workers", "two_workers", f"{workers['workers_ratio']:.2f} x faster"),
        )
    ]
    name = (
        f"atlas of {atlas['atlas_shapes']:,} clouds of {atlas['atlas_points']} points, two workers"
    )
    told = f"{atlas['atlas_registered']:,} registered"
    rows.append([name, f"{atlas['atlas_seconds'] / 60:.0f} min", told])
    return markdown_table(["work", "time", ""], rows)


def quality(*results: Result) -> str:
    """Compare shape models with those of the true registration, by the mean over their modes."""
    measures = ("compactness", "generalisation", "specificity")
    names = {"people": "generated people", "faust": "FAUST"}
    rows = [
        [
            f"{result['shapes']} {names[result['set']]}",
            {"ours": "`ltenet atlas`", "cpd": "CPD to its template"}[name],
            f"{result[name]['error_percent']:.2f}",
            f"{result[name]['worst_error_percent']:.2f}",
            *(f"{result[name]['ratio'][measure]:.2f}" for measure in measures),
        ]
        for result in results
        for name in ("ours", "cpd")
    ]
    heads = ["shapes", "registration", "error, %", "worst, %"]
    return markdown_table([*heads, *(f"{measure}, x truth's" for measure in measures)], rows)


def consistency(*results: Result) -> str:
    """Show cycle error and accuracy of maps: as matched, consistent, through hubs."""
    rows = []
    for kind, result in zip(
        ("generated people", "FAUST", "clouds of people"), results, strict=True
    ):
        for name in ("matched", "consistent", "hubs_3"):
            figures = result[name]
            rows.append(
                [
                    f"{result['shapes']} {kind}",
                    {"matched": "pair by pair", "hubs_3": "`--hubs 3`"}.get(name, "`--consistent`"),
                    f"{figures['cycle_percent']:.2f}",
                    f"{figures['error_percent']:.2f}",
                    f"{figures['cycle_ratio']:.2f}" if name != "matched" else "",
                ]
            )
    return markdown_table(["shapes", "maps", "cycle, %", "error, %", "cycle, x before"], rows)


# --- parts ---------------------------------------------------------------------------------------


def errors(row: dict[str, float]) -> list[str]:
    """Cells of mean error and shares."""
    return [f"{row[_ERRORS[0]]:.2f}", *(f"{row[key]:.1f}" for key in _ERRORS[1:])]


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])


class Table(NamedTuple):
    """How a table is made, and of which results."""

    make: Callable[..., str]
    names: tuple[str, ...]


#: By the folder of their results, and by name.
TABLES = {
    "speed": {
        "compute": Table(compute, ("compute",)),
        "matching": Table(matching, ("matching",)),
        "scale": Table(scale, ("scale",)),
    },
    "robustness": {"damages": Table(damages, ("damages",))},
    "collections": {
        "costs": Table(costs, ("pairs", "growth", "workers", "atlas")),
        "quality": Table(quality, ("quality-people", "quality-faust")),
        "consistency": Table(
            consistency, ("consistency-people", "consistency-faust", "consistency-clouds")
        ),
    },
    "refinement": {
        "methods": Table(methods, ("methods",)),
        "soft": Table(soft, ("soft",)),
        "repair": Table(repair, ("repair",)),
        "agreement": Table(agreement, ("agreement-human", "agreement-animal")),
        "surface": Table(surface, ("surface",)),
        "sharpening": Table(sharpening, ("sharpening",)),
        "same-points": Table(
            same_points, ("same-points-human", "same-points-human-256", "same-points-animal")
        ),
    },
}
