"""Seconds to match a pair: the whole pipeline beside pycpd's deformable registration, in one run.

    python -m benchmarks.matching --json

Generated pairs, each shape drawn by itself, are matched in turns by the default pipeline (weights
read beforehand) and by coherent point drift with 100 iterations (extra `baselines`), both with all
threads. `ratio` is the median over the pairs of pycpd's time over ours; errors are means in % of
the target's largest distance, so that nobody is fast by doing nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, cast

import numpy as np

from ltenet.data.body_pairs import What
from ltenet.data.diameter import largest_distance
from ltenet.data.training_pairs import PairConfig, TrainingPairs
from ltenet.evaluation.methods import make_method
from ltenet.shape import Shape


def measure(what: What, pairs: int, points: int) -> dict[str, Any]:
    """Match pairs in turns."""
    drawn = TrainingPairs(PairConfig(what=what, points=(points, points)), 31, "validation")
    methods = {"ltenet": make_method("ltenet", {"model": what}), "pycpd": make_method("cpd")}
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
            away = np.linalg.norm(found.positions(target) - pair.source_truth, axis=1)  # (N,)
            errors[name].append(100 * float(away.mean()) / largest_distance(target.points))
    ratios = np.array(seconds["pycpd"]) / np.array(seconds["ltenet"])
    return {
        "what": what,
        "pairs": pairs,
        "points": points,
        "seconds": {name: round(float(np.median(times)), 3) for name, times in seconds.items()},
        "err_percent": {name: round(float(np.mean(off)), 2) for name, off in errors.items()},
        "ratio": round(float(np.median(ratios)), 2),
    }


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--what", choices=("human", "animal"), default="human")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    result = measure(cast(What, options.what), options.pairs, options.points)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result["seconds"].items():
        print(f"{name:8} {value:8.2f} s a pair, mean error {result['err_percent'][name]:.2f} %")
    print(f"ratio    {result['ratio']:8.2f}")


if __name__ == "__main__":
    main()
