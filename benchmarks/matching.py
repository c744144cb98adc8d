"""Seconds to match a pair: points beside coherent point drift, and whole meshes.

    python -m benchmarks.matching --json

Generated pairs of 1,024 points, each shape sampled independently, are matched alternately by the
default pipeline (weights loaded beforehand) and by pycpd's deformable registration with 100
iterations (extra `baselines`), with the same number of threads. `ratio` is the median over the
pairs of pycpd's time over ours. `meshes` is the row of two whole generated people of about 5,000
vertices, each with its vertices in random order. Errors are means in % of the target's largest
distance: speed counts only at equal accuracy.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.body_pairs import What, own_generator
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.evaluation.peers.table import make_peer
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.diameter import largest_distance
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.shape import Shape


def measure(what: What, pairs: int, points: int) -> dict[str, Any]:
    """Match pairs of samples, by both methods alternately."""
    drawn = TrainingPairs(PairConfig(what=what, points=(points, points)), 31, "validation")
    methods = {"ltenet": make_peer("ltenet", {"model": what}), "pycpd": make_peer("cpd")}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    errors: dict[str, list[float]] = {name: [] for name in methods}
    for index in range(pairs):
        pair = drawn.draw(index)
        source, target = (
            Shape(side.astype(np.float64), name=name)
            for side, name in ((pair.source, "source"), (pair.target, "target"))
        )
        for name, method in methods.items():
            start = time.perf_counter()
            found = method(source, target)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(error_percent(found.positions(target), pair.source_truth, target))
    ratios = np.array(seconds["pycpd"]) / np.array(seconds["ltenet"])
    return {
        "what": what,
        "pairs": pairs,
        "points": points,
        "seconds": {name: round(float(np.median(times)), 3) for name, times in seconds.items()},
        "err_percent": {name: round(float(np.mean(off)), 2) for name, off in errors.items()},
        "ratio": round(float(np.median(ratios)), 2),
    }


def measure_meshes(pairs: int) -> dict[str, Any]:
    """Match pairs of whole meshes of generated people, with the default options."""
    matcher = Matcher(MatchConfig(model="human", threshold=0.0))
    seconds, errors, stages, vertices = [], [], [], 0
    for index in range(pairs):
        source, target, truth = mesh_pair(2 * index)
        start = time.perf_counter()
        found = matcher.match(source, target)
        seconds.append(time.perf_counter() - start)
        errors.append(error_percent(found.positions(target), truth, target))
        stages.append(matcher.seconds)
        vertices = len(source)
    return {
        "pairs": pairs,
        "vertices": vertices,
        "seconds": round(float(np.median(seconds)), 3),
        "stages": {
            name: round(float(np.median([one[name] for one in stages])), 3) for name in stages[0]
        },
        "err_percent": round(float(np.mean(errors)), 2),
    }


def mesh_pair(index: int) -> tuple[Shape, Shape, FloatArray]:
    """Two people with vertices in random order, and the true position (N, 3) of each vertex."""
    generator = own_generator("human")
    faces = generator.templates["human"].faces.astype(np.int64)
    shapes, orders, bodies = [], [], []
    for number in (index, index + 1):
        vertices = generator.draw(31, number).vertices.astype(np.float64)  # (V, 3)
        order = np.random.default_rng(number).permutation(len(vertices))  # (V,)
        shapes.append(Shape(vertices[order], np.argsort(order)[faces], name=f"person{number}"))
        orders.append(order)
        bodies.append(vertices)
    return shapes[0], shapes[1], bodies[1][orders[0]]


def error_percent(positions: FloatArray, truth: NDArray[np.floating], target: Shape) -> float:
    """Mean distance between (N, 3) positions and the truth, in % of the largest distance."""
    distances = np.linalg.norm(positions - truth, axis=1)  # (N,)
    return 100 * float(distances.mean()) / largest_distance(target.points)


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--what", choices=("human", "animal"), default="human")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--only", choices=("points", "meshes"), help="one of the two rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.only != "meshes":
        result = measure(cast(What, options.what), options.pairs, options.points)
    if options.only != "points":
        result["meshes"] = measure_meshes(options.pairs)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.get("seconds", {}).items():
        print(f"{name:8} {value:8.2f} s a pair, mean error {result['err_percent'][name]:.2f} %")
    if "ratio" in result:
        print(f"ratio    {result['ratio']:8.2f}")
    if "meshes" in result:
        row = result["meshes"]
        print(
            f"meshes   {row['seconds']:8.2f} s a pair of {row['vertices']} vertices, "
            f"mean error {row['err_percent']:.2f} %"
        )


if __name__ == "__main__":
    main()
