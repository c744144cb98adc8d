"""Cycle error and accuracy of the maps of a collection: as matched, consistent, and through hubs.

    python -m benchmarks.consistency --json                     # generated people
    python -m benchmarks.consistency --json --faust             # some registrations of FAUST

Each shape is a whole mesh with its vertices in an order of its own, or with `--clouds` a cloud of
vertices of its own choice. `cycle_percent` is the mean distance between a
point and its image round a cycle of three shapes, `error_percent` that between a partner and the
true one, both in diameters.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.atlas_quality import Registered, add_faust, faust, generated_people, shuffled
from ltenet.collections.batch import run_batch
from ltenet.collections.consistency import CycleError, make_consistent
from ltenet.collections.plan import plan_folder
from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import IntArray
from ltenet.io import save
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape


def write_clouds(given: Registered, folder: Path, points: int) -> list[IntArray]:
    """Write some vertices of each shape; return which, (points,) each."""
    folder.mkdir(parents=True)
    chosen = []
    for number, vertices in enumerate(given.vertices):
        rows = np.random.default_rng(number).permutation(len(vertices))[:points]  # (points,)
        save(Shape(vertices[rows]), folder / f"s{number:04d}.ply")
        chosen.append(rows)
    return chosen


def error_percent(files: Iterable[Path], given: Registered, rows: Sequence[IntArray]) -> float:
    """Mean distance of the partners from the true places over all maps, in diameters."""
    errors = []
    for file in files:
        source, target = (int(name[1:]) for name in file.stem.split("__"))
        found = Correspondence.load(file)
        body = given.vertices[target]  # (V, 3)
        partners = body[rows[target]][found.indices]  # (N, 3)
        away = np.linalg.norm(partners - body[rows[source]], axis=1).mean()
        errors.append(away / Shape(body).diameter)
    return round(100 * float(np.mean(errors)), 3)


def measure(given: Registered, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Match all pairs, and a few hubs to all; make both consistent."""
    if options.clouds:
        rows = write_clouds(given, folder / "shapes", options.points)
    else:
        rows = shuffled(given, folder / "shapes")
    config = MatchConfig(model="human", points=options.points, threshold=0.0)
    found: dict[str, Any] = {"shapes": len(rows), "points": options.points}
    for mode in ("all-pairs", "hubs"):
        out = folder / mode
        plan = plan_folder(folder / "shapes", mode, hubs=options.hubs)
        outcome = run_batch(plan, out, config)
        cycles = make_consistent(plan, out, outcome.pairs, every=True)
        if mode == "all-pairs":
            found["matched"] = _figures(cycles.before, out / "maps", given, rows)
        name = "consistent" if mode == "all-pairs" else f"hubs_{options.hubs}"
        found[name] = _figures(cycles.after, out / "consistent", given, rows)
        found[name] |= {"matches": len(plan.pairs), "maps": cycles.pairs}
    before = found["matched"]
    for name in ("consistent", f"hubs_{options.hubs}"):
        found[name]["cycle_ratio"] = round(
            found[name]["cycle_percent"] / before["cycle_percent"], 3
        )
        found[name]["error_ratio"] = round(
            found[name]["error_percent"] / before["error_percent"], 3
        )
    return found


def _figures(
    cycle: CycleError | None, folder: Path, given: Registered, rows: Sequence[IntArray]
) -> dict[str, Any]:
    error = error_percent(sorted(folder.glob("*.npz")), given, rows)
    return {
        "cycle_percent": round(100 * (cycle.mean if cycle else math.nan), 3),
        "error_percent": error,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=12)
    parser.add_argument("--points", type=int, default=2048, help="embedded points of each shape")
    parser.add_argument("--clouds", action="store_true", help="write that many points only")
    parser.add_argument("--hubs", type=int, default=3)
    add_faust(parser)
    parser.add_argument("--seed", type=int, default=21, help="of the generated people")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.faust:
        whole = faust(options.faust, 100)
        spread = np.linspace(0, 99, options.shapes).astype(np.int64)
        given = Registered(whole.vertices[spread], whole.faces)
    else:
        given = generated_people(options.shapes, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given, Path(folder), options)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:12} {value}")


if __name__ == "__main__":
    main()
