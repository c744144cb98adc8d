"""Damaged inputs: accuracy of the map and the probability it states, refined and by features alone.

    python -m benchmarks.robustness [--pairs N] [--kinds KIND ...] [--json]

Pairs of generated people, 1,024 vertices each; both shapes are damaged alike. "accuracy" is the
share (%) of the source's own points within 5 % of the target's diameter of their true partner.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import numpy as np

from ltenet.bodies.body_pairs import own_generator
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.matching.summary import summarize
from ltenet.shape import Shape

Damage = Callable[[FloatArray, np.random.Generator], FloatArray]


def _outliers(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    more = rng.uniform(points.min(axis=0), points.max(axis=0), (len(points) // 5, 3))
    return np.concatenate([points, more])


def _strays(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.concatenate([points, 1000 * rng.normal(size=(10, 3))])


#: Damages keep the first points in place; what they add comes behind.
DAMAGES: dict[str, Damage] = {
    "clean": lambda points, rng: points,
    "noise": lambda points, rng: points + 0.01 * np.ptp(points) * rng.normal(size=points.shape),
    "outliers": _outliers,
    "strays": _strays,
    "duplicates": lambda points, rng: np.concatenate([points, points[::4]]),
    "double_walls": lambda points, rng: np.concatenate([points, 0.98 * points]),
    "tiny": lambda points, rng: 1e-6 * points,
    "huge": lambda points, rng: 1e6 * points,
    "mirrored": lambda points, rng: points * [-1, 1, 1],
}


def measure(kind: str, pairs: int, seed: int = 0) -> dict[str, float]:
    """Mean accuracy and stated probability of both ways to match."""
    generator, figures = own_generator("human"), {}
    for name, refine in (("ours", "coherent"), ("features", "none")):
        matcher = Matcher(MatchConfig(model="human", threshold=0.0, refine=refine))  # type: ignore[arg-type]
        right, stated = [], []
        for pair in range(pairs):
            rng = np.random.default_rng([seed, pair])
            source, target = (generator.draw(321, 2 * pair + i).vertices for i in range(2))
            rows, columns = (rng.choice(len(source), 1024, replace=False) for _ in range(2))
            damage = DAMAGES[kind]
            shapes = [
                Shape(damage(p.astype(np.float64), rng)) for p in (source[rows], target[columns])
            ]
            clean = Shape(target.astype(np.float64))
            scale = {"tiny": 1e-6, "huge": 1e6}.get(kind, 1.0)
            truth = scale * clean.points[rows] * ([-1, 1, 1] if kind == "mirrored" else 1)
            found = matcher.match(*shapes)
            errors = np.linalg.norm(found.positions()[:1024] - truth, axis=1)
            right.append(np.mean(errors <= 0.05 * scale * clean.diameter))  # NaN is wrong
            stated.append(summarize(found).mean_probability or 0.0)
        figures[f"{name}_accuracy"] = round(100 * float(np.mean(right)), 1)
        figures[f"{name}_stated"] = round(100 * float(np.mean(stated)), 1)
    return figures


def main(argv: list[str] | None = None) -> None:
    """Measure every kind of damage, or some; print figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robustness", description=__doc__)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=list(DAMAGES), default=list(DAMAGES))
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    figures = {}
    for kind in chosen.kinds:
        figures[kind] = measure(kind, chosen.pairs)
        if not chosen.json:
            print(kind, figures[kind], flush=True)
    if chosen.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
