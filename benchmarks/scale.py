"""How time and memory of `ltenet.match` grow with the number of points.

    python -m benchmarks.scale --points 1000000 --json

Two generated people, sampled independently by area with 1k, 10k, ... points up to N, are matched
with the default settings, each size in its own process to measure its peak memory. `runs` lists
points, seconds of the whole match (weights loaded), peak memory in GB, and the seconds of each
stage; `growth` is the slope of log seconds over log points between the last two sizes, 1 where the
time is linear. `--plot FILE.png` plots it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np


def sizes_up_to(points: int) -> list[int]:
    """1k, 10k, ... and N itself."""
    sizes = [1000]
    while sizes[-1] * 10 < points:
        sizes.append(sizes[-1] * 10)
    return [size for size in sizes if size < points] + [points]


def measure(points: int, model: str) -> dict[str, Any]:
    """Match two people with this many points each."""
    from ltenet.bodies.body_pairs import own_generator
    from ltenet.data.sampling import positions_of, sample_surface
    from ltenet.matching.config import MatchConfig
    from ltenet.matching.matcher import Matcher
    from ltenet.shape import Shape

    generator = own_generator("human")
    faces = generator.templates["human"].faces
    shapes = []
    for index in (0, 1):
        vertices = generator.draw(2024, index).vertices
        rng = np.random.default_rng(index)
        drawn = positions_of(
            sample_surface(vertices, faces, points, rng), vertices, faces
        )  # (N, 3)
        shapes.append(Shape(drawn, name=f"person{index}"))
    matcher = Matcher(MatchConfig(model=model))
    start = time.perf_counter()
    matcher.match(*shapes)
    return {
        "points": points,
        "seconds": round(time.perf_counter() - start, 3),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
        "stages": {stage: round(value, 3) for stage, value in matcher.seconds.items()},
    }


def plot(runs: list[dict[str, Any]], path: str) -> None:
    """Seconds and memory over points, with a line of slope 1 beside them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    points = np.array([run["points"] for run in runs], dtype=float)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, key, label in zip(axes, ("seconds", "peak_gb"), ("seconds", "peak GB"), strict=True):
        values = np.array([run[key] for run in runs])
        axis.loglog(points, values, "o-")
        axis.loglog(points, values[-1] * points / points[-1], "--", color="gray", label="linear")
        axis.set_xlabel("points of each shape")
        axis.set_ylabel(label)
        axis.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=1_000_000, help="the largest size")
    parser.add_argument("--model", default="auto")
    parser.add_argument("--plot", help="PNG file for the curves")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--single", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.single:
        print(json.dumps(measure(options.points, options.model)))
        return
    runs = []
    for size in sizes_up_to(options.points):
        command = [sys.executable, "-m", "benchmarks.scale", "--single"]
        command += ["--points", str(size), "--model", options.model]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    result: dict[str, Any] = {"model": options.model, "runs": runs}
    if len(runs) > 1:
        last = runs[-2:]
        ratio = np.log(last[1]["seconds"] / last[0]["seconds"])
        result["growth"] = float(ratio / np.log(last[1]["points"] / last[0]["points"]))
    if options.plot:
        plot(runs, options.plot)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for run in runs:
        print(f"{run['points']:>9,} points  {run['seconds']:8.2f} s  {run['peak_gb']:.2f} GB")


if __name__ == "__main__":
    main()
