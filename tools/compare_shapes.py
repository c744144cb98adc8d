"""Compare generated shapes with real ones: the tables of docs/shapes.md.

    python -m tools.compare_shapes --data ../shared/data            Markdown tables
    python -m tools.compare_shapes --data ../shared/data --json     one JSON object

Needs the evaluation archives of FAUST, SHREC'19 and TOSCA. Takes some minutes; `--count` says how
many generated shapes stand for each real set, `--only` names the sets: faust, shrec19, classes of
TOSCA such as cat, and density for unevenly drawn points.
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
from ltenet.bodies.body_pairs import own_generator
from ltenet.data.augmentation import Augmentation, draw_uneven
from ltenet.data.generated_set import GeneratedSet
from ltenet.data.readers import open_set
from ltenet.data.sampling import positions_of, sample_surface, sample_vertices
from ltenet.data.set_statistics import measure_set, spread, summarize
from ltenet.data.statistics import SPACING_POINTS, Measures, spacing
from tools.set_coverage import coverage

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

#: Options `density` and `detail` of an augmentation, by kind of shape.
UNEVEN = {
    "human": ((0.0, 0.0), (10.0, 0.0), (100.0, 0.0), (0.0, 0.5), (0.0, 1.0), (10.0, 1.0)),
    "animal": ((0.0, 0.0), (10.0, 0.0), (100.0, 0.0), (0.0, 2.0), (0.0, 4.0), (10.0, 4.0)),
}

HUMAN_SETS = ("faust", "shrec19")
DENSITY = "density"

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


def comparisons(folder: Path, count: int, seed: int, only: Sequence[str]) -> list[Compared]:
    """Measure the chosen sets."""
    found = []
    human_measures: list[Measures] = []
    for name in (name for name in HUMAN_SETS if name in only):
        tell(name)
        if not human_measures:
            humans = GeneratedSet("human", count, seed=seed)
            human_measures = measure_set(humans, range(count), seed=seed)
        real = open_set(name, folder)
        measures = measure_set(real, range(len(real)), seed=seed)
        again = measure_set(real, range(_MEASURED_AGAIN), seed=seed + 1)
        found.append(Compared(name, "human", measures, human_measures, again))
    chosen = [category for category in SPECIES if category in only]
    tosca = open_set("tosca", folder) if chosen else None
    for category in dict.fromkeys(tosca.categories) if tosca else ():
        if category not in chosen:
            continue
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


def density_figures(count: int, seed: int) -> list[dict[str, Any]]:
    """Spacing of points drawn from the vertices with an uneven density, as training may do it."""
    rows = []
    for what, settings in UNEVEN.items():
        shapes = GeneratedSet(what, count, seed=seed)
        for density, detail in settings:
            tell(f"{what} with density {density:g} and detail {detail:g}")
            values = [uneven_spacings(shapes, k, seed, density, detail) for k in range(count)]
            row: dict[str, Any] = {"what": what, "density": density, "detail": detail}
            for name, column in zip(("vertex", "area"), np.transpose(values), strict=True):
                low, high = np.percentile(column, [5, 95])
                figures = {"mean": float(column.mean()), "p5": float(low), "p95": float(high)}
                row[name] = figures
            rows.append(row)
    return rows


def uneven_spacings(
    shapes: GeneratedSet, index: int, seed: int, density: float, detail: float
) -> tuple[float, float]:
    """Variation of the spacing of points drawn from the vertices, and by area."""
    template = shapes.templates[shapes.bodies[index].template]
    points, faces = shapes.shape(index).points, template.faces
    rng = np.random.default_rng([seed, index])
    augmentation = Augmentation(density=density, detail=detail)
    weights = draw_uneven(augmentation, points, rng, size=template.size)
    chosen = sample_vertices(SPACING_POINTS, len(points), rng, weights=weights)
    drawn = sample_surface(points, faces, SPACING_POINTS, rng, density=weights)
    on_surface = positions_of(drawn, points, faces)
    return spacing(points[chosen]).variation, spacing(on_surface).variation


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


def markdown(rows: Sequence[dict[str, Any]], densities: Sequence[dict[str, Any]]) -> str:
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
    lines = [["generated", "density", "detail", "variation by vertex", "5 % to 95 %"]]
    lines[0] += ["variation by area", "5 % to 95 %"]
    for row in densities:
        cells = [row["what"], *(f"{row[key]:g}" for key in ("density", "detail"))]
        for one in (row["vertex"], row["area"]):
            cells += [f"{one['mean']:.3f}", f"{one['p5']:.2f} to {one['p95']:.2f}"]
        lines.append(cells)
    parts.append(_table(lines))
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
    known = [*HUMAN_SETS, *SPECIES, DENSITY]
    parser.add_argument("--only", nargs="+", choices=known, default=known, metavar="SET")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.data is None:
        parser.error("got no folder of the benchmarks; give --data or set LTENET_DATA")
    uneven = DENSITY in options.only
    densities = density_figures(options.count, options.seed) if uneven else []
    rows = figures(comparisons(Path(options.data), options.count, options.seed, options.only))
    if options.json:
        setting = {"count": options.count, "seed": options.seed, "version": ltenet.__version__}
        content = {"setting": setting, "comparisons": rows, "densities": densities}
        json.dump(content, sys.stdout, indent=2)
        print()
    else:
        print(markdown(rows, densities))


if __name__ == "__main__":
    main()
