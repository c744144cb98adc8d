"""Damaged inputs: error of the map and the probability it states, ours beside other methods.

    python -m benchmarks.robustness [--pairs N] [--cases NAME ...] [--dpc WEIGHTS] [--plot FILE]
                                    [--json]

Pairs of generated people and of generated animals, half and half; `benchmarks.damages` lists the
damages. "accuracy" is the share (%) of the source's own points that come to lie within 5 % of the
target's diameter of their true place, "error" their mean distance from it (% of the diameter), and
"stated" the mean probability (%) that the map states for them. Unmatched points count as wrong, and
are left out of the error. Coherent point drift sees shapes thinned to 400 points. DPC needs weights
that `ltenet import-dpc` made; without them it is left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.damages import DAMAGES, Body, Damage, cloud
from ltenet.bodies.body_pairs import What, draw_two_bodies, own_generator
from ltenet.correspondence import Correspondence
from ltenet.evaluation.optional import optional
from ltenet.evaluation.peers.table import PairMatcher, make_peer
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.shape import Shape

#: Stream of the generators, which no training draws from.
_STREAM = 4711
_CPD = {"points": 400}
_KINDS: tuple[What, ...] = ("human", "animal")
Figures = dict[str, dict[str, dict[str, float | None]]]


def bodies(pair: int) -> tuple[str, list[Body], FloatArray]:
    """Two undamaged bodies of one template, the weights for them, and the target's vertices."""
    kind = _KINDS[pair % 2]
    generator = own_generator(kind)
    rng = np.random.default_rng([_STREAM, pair])
    drawn = draw_two_bodies(generator, pair, rng, stream=_STREAM, same_category=True)
    faces = next(
        template.faces.astype(np.int64)
        for template in generator.templates.values()
        if template.faces.max() + 1 == len(drawn[0].vertices)
    )
    made = [
        Body(body.vertices.astype(np.float64), faces, np.arange(len(body.vertices)))
        for body in drawn
    ]
    return kind, made, made[1].points


def damaged(damage: Damage, whole: Sequence[Body], rng: np.random.Generator) -> list[Body]:
    """Both bodies as they are matched."""
    source, target = whole
    found = [damage.hurt(source, rng)]
    if damage.both:
        return [*found, damage.hurt(target, rng)]
    return [*found, target if damage.meshes else cloud(target, rng)]


def score(found: Correspondence, source: Body, target: Body, truth: FloatArray) -> FloatArray:
    """(3,) accuracy, error and stated probability; `truth` (V, 3) are the target's vertices."""
    own = source.origin >= 0  # (N,)
    true = (truth * target.factors)[source.origin[own]]  # (n, 3)
    width = Shape(truth * target.factors).diameter
    distances = np.linalg.norm(found.positions()[own] - true, axis=1) / width  # (n,)
    distances[~found.matched[own]] = np.nan
    placed = distances[np.isfinite(distances)]
    stated = np.nan if found.scores is None else 100 * found.scores[own].mean()
    error = 100 * placed.mean() if len(placed) else np.nan
    return np.array([100 * np.mean(distances <= 0.05), error, stated])  # NaN is not within


def methods(kind: str, damage: Damage, dpc: str | None) -> dict[str, PairMatcher]:
    """Methods by name, ours first."""
    made = {
        "ltenet": make_peer("ltenet", {"model": kind, "mirror": damage.mirror}),
        "cpd": make_peer("cpd", _CPD),
    }
    if dpc is not None:
        made["dpc"] = make_peer("embedding", {"model": dpc})
    return made


def measure(name: str, pairs: int, dpc: str | None = None) -> dict[str, dict[str, float | None]]:
    """Mean figures of every method over the pairs."""
    damage = DAMAGES[name]
    scores: dict[str, list[FloatArray]] = {}
    for pair in range(pairs):
        kind, whole, truth = bodies(pair)
        rng = np.random.default_rng([_STREAM, pair, 1])
        source, target = damaged(damage, whole, rng)
        shapes = [Shape(body.points, body.faces) for body in (source, target)]
        for method, match in methods(kind, damage, dpc).items():
            row = score(match(*shapes), source, target, truth)
            scores.setdefault(method, []).append(row)
    return {
        method: {
            key: None if np.isnan(value) else round(float(value), 2)
            for key, value in zip(
                ("accuracy", "error", "stated"), np.mean(rows, axis=0), strict=True
            )
        }
        for method, rows in scores.items()
    }


def plot(cases: Figures, path: Path) -> None:
    """Draw accuracies as bars, and the stated probability as marks."""
    figure = optional("matplotlib.figure").Figure(
        figsize=(7, 1 + 0.33 * len(cases)), layout="constrained"
    )
    axes: Any = figure.subplots()
    names, rows = list(cases), np.arange(len(cases))
    listed = list(next(iter(cases.values())))
    height = 0.8 / len(listed)
    for place, (method, color) in enumerate(
        zip(listed, ("#0072b2", "#e69f00", "#009e73"), strict=False)
    ):
        values = [cases[name][method]["accuracy"] or 0.0 for name in names]
        axes.barh(rows + (place - 0.5) * height, values, height, color=color, label=method)
    stated = [cases[name]["ltenet"]["stated"] or 0.0 for name in names]
    axes.plot(stated, rows - 0.5 * height, "k|", markersize=9, label="probability it states")
    axes.set(yticks=rows, yticklabels=names, xlim=(0, 100), xlabel="points within 5 %, in %")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=len(listed) + 1, frameon=False)
    with atomic_path(path, force=True) as temporary:
        figure.savefig(temporary, dpi=110, metadata={"Software": None})


def text(cases: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> str:
    """Write the figures for people."""
    lines = []
    for name, found in cases.items():
        cells = [
            f"{method} " + ", ".join(f"{key} {value}" for key, value in row.items())
            for method, row in found.items()
        ]
        lines.append(f"{name}: " + "; ".join(cells))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    """Measure every damage, or some; print figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robustness", description=__doc__)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--cases", nargs="+", choices=list(DAMAGES), default=list(DAMAGES))
    parser.add_argument("--dpc", metavar="WEIGHTS", help="folder that `ltenet import-dpc` wrote")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="picture to draw (extra `plot`)")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    cases: Figures = {}
    for name in chosen.cases:
        cases[name] = measure(name, chosen.pairs, chosen.dpc)
        if not chosen.json:
            print(text({name: cases[name]}), flush=True)
    if chosen.plot is not None:
        plot(cases, chosen.plot)
    if chosen.json:
        print(json.dumps({"pairs": chosen.pairs, "cases": cases}, indent=2))


if __name__ == "__main__":
    main()
