"""What a collection costs: all pairs against single matches, one worker against two, and growth.

    python -m benchmarks.collection --json

`all_pairs_ratio`: seconds of `match` for each pair over seconds of a batch of all pairs.
`workers_ratio`: seconds of a batch with one Dask worker over seconds with two.
`growth`: seconds per shape to one template, for a small and a large set, and peak memory in MB.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.bodies.body_pairs import own_generator
from ltenet.collections.batch import Engine, run_batch
from ltenet.collections.plan import plan_folder
from ltenet.collections.work import store_of
from ltenet.io import load, save
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.shape import Shape


def write_people(folder: Path, count: int, points: int) -> None:
    """Write clouds of generated people."""
    folder.mkdir(parents=True)
    generator = own_generator("human")
    for index in range(count):
        vertices = generator.draw(31, index).vertices.astype(np.float64)
        rows = np.random.default_rng(index).choice(len(vertices), points, replace=False)
        save(Shape(vertices[np.sort(rows)]), folder / f"p{index:04d}.ply")


def seconds_of_batch(
    folder: Path, out: Path, config: MatchConfig, *, workers: int = 0, to_first: bool = False
) -> float:
    """Time a batch of all pairs, or of each shape to the first."""
    templates = sorted(folder.iterdir())[:1] if to_first else []
    plan = plan_folder(folder, "to" if to_first else "all-pairs", templates=templates)
    store_of.cache_clear()
    start = time.perf_counter()
    run_batch(plan, out, config, engine=Engine(workers))
    return time.perf_counter() - start


def measure(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Run the three measurements."""
    config = MatchConfig(model="human", points=options.points)
    people = work / "people"
    write_people(people, options.shapes, options.points)
    together = seconds_of_batch(people, work / "all", config)
    files = sorted(people.iterdir())
    matcher = Matcher(config)
    pairs = [(a, b) for number, a in enumerate(files) for b in files[number + 1 :]]
    step = max(1, len(pairs) // options.single)
    start = time.perf_counter()
    for source, target in pairs[::step]:
        matcher.match(load(source), load(target))
    alone = (time.perf_counter() - start) / len(pairs[::step]) * len(pairs)
    found: dict[str, Any] = {
        "shapes": options.shapes,
        "points": options.points,
        "all_pairs_seconds": round(together, 2),
        "single_seconds": round(alone, 2),
        "all_pairs_ratio": round(alone / together, 2),
    }
    if options.workers:
        one, two = (
            seconds_of_batch(people, work / f"workers{count}", config, workers=count)
            for count in (1, 2)
        )
        found["workers_ratio"] = round(one / two, 2)
    growth = []
    for count in options.growth:
        set_folder = work / f"set{count}"
        write_people(set_folder, count, options.points)
        seconds = seconds_of_batch(set_folder, work / f"to{count}", config, to_first=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        each = round(seconds / count, 3)
        growth.append({"shapes": count, "seconds_per_shape": each, "peak_mb": round(peak)})
    found["growth"] = growth
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=60, help="for all pairs")
    parser.add_argument("--points", type=int, default=1024, help="of each shape")
    parser.add_argument("--single", type=int, default=30, help="pairs that are matched singly")
    parser.add_argument("--growth", type=int, nargs="*", default=[20, 200])
    parser.add_argument("--workers", action="store_true", help="also 1 against 2 Dask workers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = measure(options, Path(work))
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
