"""Compare generated shapes with real ones: the tables of docs/shapes.md.

    python -m tools.compare_shapes --data ../shared/data            Markdown tables
    python -m tools.compare_shapes --data ../shared/data --json     one JSON object

Needs the evaluation archives of FAUST, SHREC'19 and TOSCA. Takes some minutes; `--count` says how
many generated shapes stand for each real set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ltenet
from ltenet.data.body_pairs import own_generator
from ltenet.data.generated_set import GeneratedSet
from ltenet.data.readers import open_set
from ltenet.data.set_statistics import coverage, measure_set, spread, summarize
from ltenet.data.statistics import Measures

#: Species that stand for a class of TOSCA; those that no template has are left out.
SPECIES = {
    "cat": ("cat",),
    "dog": ("dog", "hound", "pinscher"),
    "wolf": ("wolf",),
    "horse": ("horse",),
    "centaur": ("centaur", "centaur_slender", "centaur_stout"),
    "gorilla": ("gorilla", "silverback"),
}

_MEASURED_AGAIN = 8
_SUBSETS = 50

#: Measure -> heading of its column, by table.
POSE_AND_BUILD = {
    "axis_1": "axis 1",
    "axis_2": "axis 2",
    "axis_3": "axis 3",
    "distance_p10": "distance 10 %",
    "distance_p50": "50 %",
    "distance_p90": "90 %",
    "area": "area",
}
BUILD = {
    "geodesic_p10": "geodesic 10 %",
    "geodesic_p50": "50 %",
    "geodesic_p90": "90 %",
    "thickness_p10": "thickness 10 %",
    "thickness_p50": "50 %",
    "thickness_p90": "90 %",
}
SPACINGS = {
    "vertex_spacing": "by vertex",
    "vertex_spacing_variation": "variation",
    "area_spacing": "by area",
    "area_spacing_variation": "variation",
}


class Compared(NamedTuple):
    """A real set and the generated one that stands for it."""

    real_name: str
    generated_name: str
    real: list[Measures]
    generated: list[Measures]
    again: list[Measures]  # the first real shapes, measured at other points


def comparisons(folder: Path, count: int, seed: int) -> list[Compared]:
    """Measure all sets."""
    humans = GeneratedSet("human", count, seed=seed)
    human_measures = measure_set(humans, range(count), seed=seed)
    found = []
    for name in ("faust", "shrec19"):
        tell(name)
        real = open_set(name, folder)
        measures = measure_set(real, range(len(real)), seed=seed)
        again = measure_set(real, range(_MEASURED_AGAIN), seed=seed + 1)
        found.append(Compared(name, "human", measures, human_measures, again))
    tosca = open_set("tosca", folder)
    for category in dict.fromkeys(tosca.categories):
        tell(f"tosca {category}")
        indices = [i for i, other in enumerate(tosca.categories) if other == category]
        measures = measure_set(tosca, indices, seed=seed)
        again = measure_set(tosca, indices[:_MEASURED_AGAIN], seed=seed + 1)
        species = known_species(category)
        shares = [len(part) for part in np.array_split(np.arange(count), len(species))]
        generated = [
            one
            for kind, share in zip(species, shares, strict=True)
            for one in measure_set(
                GeneratedSet("animal", share, seed=seed, category=kind), range(share), seed=seed
            )
        ]
        found.append(Compared(f"tosca {category}", ", ".join(species), measures, generated, again))
    return found


def known_species(category: str) -> list[str]:
    """Species of the generator that stand for a class of TOSCA."""
    animals = own_generator("animal")
    known = {species for name in animals.templates for species in animals.species(name)}
    return [species for species in SPECIES[category] if species in known]


def covered(compared: Compared, what: str) -> dict[str, Any] | None:
    """Coverage of the real set by the generated one and the other way, and the two spreads."""
    real = [getattr(one, what) for one in compared.real]
    generated = [getattr(one, what) for one in compared.generated]
    if any(one is None for one in (*real, *generated)):
        return None
    there, back = coverage(real, generated), coverage(generated, real)
    # More shapes come nearer to anything: as many as the real ones make a fair comparison.
    rng = np.random.default_rng(0)
    as_many = [
        coverage(real, [generated[k] for k in rng.choice(len(generated), size, replace=False)])
        for size in [min(len(real), len(generated))] * _SUBSETS
    ]
    again = [getattr(one, what) for one in compared.again]
    noise = [np.abs(one - other).mean() for one, other in zip(real, again, strict=False)]
    return {
        "noise": float(np.median(noise)),
        "real_to_generated": there.nearest,
        "real_to_as_many": float(np.mean([one.nearest for one in as_many])),
        "worst": there.farthest,
        "real_to_real": there.own,
        "generated_to_real": back.nearest,
        "generated_to_generated": back.own,
        "real_spread": spread(real),
        "generated_spread": spread(generated),
    }


def figures(found: Sequence[Compared]) -> list[dict[str, Any]]:
    """All figures as plain values."""
    return [
        {
            "real": compared.real_name,
            "generated": compared.generated_name,
            "shapes": [len(compared.real), len(compared.generated)],
            "real_measures": summarize(compared.real),
            "generated_measures": summarize(compared.generated),
            "distances": covered(compared, "distances"),
            "geodesics": covered(compared, "geodesics"),
        }
        for compared in found
    ]


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Tables of the figures."""
    parts = []
    for columns in (POSE_AND_BUILD, BUILD, SPACINGS):
        # Generated humans stand for two real sets and get one line.
        named = {"": ["", "shapes", *columns.values()]}
        for row in rows:
            for kind, size in zip(("real", "generated"), row["shapes"], strict=True):
                name = f"**{row['real']}**" if kind == "real" else f"generated {row['generated']}"
                cells = [_mean_and_sd(row[f"{kind}_measures"].get(column)) for column in columns]
                if any(cells):
                    named[name] = [name, str(size), *cells]
        parts.append(_table(list(named.values())))
    header = ["real set", "noise", "real to real", "real to as many generated"]
    header += ["real to all generated", "worst", "generated to real"]
    header += ["spread real", "spread generated"]
    keys = ("noise", "real_to_real", "real_to_as_many", "real_to_generated", "worst")
    tail = ("generated_to_real", "real_spread", "generated_spread")
    for what in ("distances", "geodesics"):
        lines = [header]
        for row in rows:
            if row[what] is not None:
                cells = [row[what][key] for key in keys + tail]
                lines.append([row["real"], *("" if c is None else f"{c:.3f}" for c in cells)])
        parts.append(f"{what.capitalize()}:\n\n{_table(lines)}")
    return "\n\n".join(parts)


def _mean_and_sd(summary: dict[str, float] | None) -> str:
    return "" if summary is None else f"{summary['mean']:.3g} ±{summary['sd']:.2g}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def tell(message: str) -> None:
    """Say on stderr how far it is."""
    print(f"measuring {message}", file=sys.stderr)


def main() -> None:
    """Command line of the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("LTENET_DATA"))
    parser.add_argument("--count", type=int, default=200, help="generated shapes for each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.data is None:
        parser.error("the folder of the benchmarks is needed: give --data or set LTENET_DATA")
    rows = figures(comparisons(Path(options.data), options.count, options.seed))
    if options.json:
        setting = {"count": options.count, "seed": options.seed, "version": ltenet.__version__}
        json.dump({"setting": setting, "comparisons": rows}, sys.stdout, indent=2)
        print()
    else:
        print(markdown(rows))


if __name__ == "__main__":
    main()
