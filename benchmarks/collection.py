"""What a collection costs: all pairs against single matches, growth, two workers, an atlas.

    python -m benchmarks.collection --json                        # all parts
    python -m benchmarks.collection --json --parts workers        # one of them

`pairs`: all pairs of 60 shapes. `all_pairs_ratio` is the time of calling `match` for each pair over
that of a batch through three hubs (`--all-pairs --hubs 3`), `direct_ratio` that over a batch which
refines every pair (`--all-pairs`). Of the single matches, a random sample is timed. The errors are
those of the maps of this sample.
`growth`: shapes to one template; seconds for each, and peak memory in MB of a process of its own.
`workers`: all pairs with one Dask worker over two, of one thread each.
`atlas`: many small shapes to an atlas, with two workers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.bodies.body_pairs import own_generator
from ltenet.collections.atlas import build_atlas
from ltenet.collections.atlas_files import analyse, write_atlas
from ltenet.collections.batch import Engine, run_batch
from ltenet.collections.consistency import make_consistent
from ltenet.collections.plan import Plan, plan_folder
from ltenet.collections.work import store_of
from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load, save
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import match
from ltenet.shape import Shape


class Cloud(NamedTuple):
    """Some points of a generated person, (n, 3), and where they are on others, by index."""

    body: FloatArray
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]


def person(index: int, points: int) -> Cloud:
    """Draw a person and choose some of its vertices."""
    body = own_generator("human").draw(31, index).vertices.astype(np.float64)  # (V, 3)
    rows = np.random.default_rng(index).choice(len(body), points, replace=False)  # (points,)
    return Cloud(body, np.sort(rows))


def write_people(folder: Path, count: int, points: int) -> None:
    """Write clouds of generated people."""
    folder.mkdir(parents=True)
    for index in range(count):
        cloud = person(index, points)
        save(Shape(cloud.body[cloud.rows]), folder / f"p{index:04d}.ply")


def seconds_of(work: Callable[[], object]) -> float:
    """Time a piece of work that begins with an empty store."""
    store_of.cache_clear()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def error_percent(pairs: Sequence[tuple[str, str]], folder: Path, points: int) -> float:
    """Mean distance between partners and true places, in diameters, over maps in a folder."""
    errors = []
    for names in pairs:
        source, target = (person(int(name[1:]), points) for name in names)
        found = Correspondence.load(folder / f"{names[0]}__{names[1]}.npz")
        known = found.matched  # (N,)
        partners = target.body[target.rows][found.indices[known]]  # (k, 3)
        away = np.linalg.norm(partners - target.body[source.rows][known], axis=1)  # (k,)
        errors.append(away.mean() / Shape(target.body).diameter)
    return round(100 * float(np.mean(errors)), 3)


def measure_pairs(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """All pairs: refined one by one, through hubs, and by single calls of `match`."""
    config = MatchConfig(model="human", points=options.points)
    people = work / "people"
    write_people(people, options.shapes, options.points)
    files = sorted(people.iterdir())
    pairs = [(a, b) for number, a in enumerate(files) for b in files[number + 1 :]]
    chosen = np.random.default_rng(0).permutation(len(pairs))[: options.single]
    sample = [pairs[number] for number in np.sort(chosen)]
    names = [(a.stem, b.stem) for a, b in sample]
    (work / "single").mkdir()

    def singly() -> None:
        for a, b in sample:
            found = match(load(a), load(b), config=config)
            found.save(work / "single" / f"{a.stem}__{b.stem}.npz")

    def through_hubs() -> None:
        plan = plan_folder(people, "hubs", hubs=options.hubs)
        pairs = run_batch(plan, work / "hubs", config).pairs
        make_consistent(plan, work / "hubs", pairs, every=True)

    alone = seconds_of(singly) / len(sample) * len(pairs)
    hubs = seconds_of(through_hubs)
    found: dict[str, Any] = {
        "shapes": options.shapes,
        "points": options.points,
        "pairs": len(pairs),
        "single_sampled": len(sample),
        "single_seconds": round(alone, 2),
        "hubs": options.hubs,
        "hubs_seconds": round(hubs, 2),
        "all_pairs_ratio": round(alone / hubs, 2),
        "single_error_percent": error_percent(names, work / "single", options.points),
        "hubs_error_percent": error_percent(names, work / "hubs/consistent", options.points),
    }
    if not options.no_direct:
        plan = plan_folder(people, "all-pairs")
        direct = seconds_of(lambda: run_batch(plan, work / "direct", config))
        found["direct_seconds"] = round(direct, 2)
        found["direct_ratio"] = round(alone / direct, 2)
        found["direct_error_percent"] = error_percent(names, work / "direct/maps", options.points)
    return found


def measure_growth(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Shapes to one template, each set in a process of its own."""
    rows = []
    for count in options.growth:
        people = work / f"set{count}"
        write_people(people, count, options.points)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            seconds, peak = pool.submit(_to_first, people, work, options.points).result()
        each = round(seconds / count, 3)
        rows.append({"shapes": count, "seconds_per_shape": each, "peak_mb": round(peak)})
    found: dict[str, Any] = {"growth": rows}
    if len(rows) > 1:
        found["growth_time_ratio"] = _ratio(rows, "seconds_per_shape")
        found["growth_memory_ratio"] = _ratio(rows, "peak_mb")
    return found


def _to_first(people: Path, work: Path, points: int) -> tuple[float, float]:
    plan = plan_folder(people, "to", templates=sorted(people.iterdir())[:1])
    config = MatchConfig(model="human", points=points)
    seconds = seconds_of(lambda: run_batch(plan, work / f"{people.name}-out", config))
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _ratio(rows: list[dict[str, Any]], name: str) -> float:
    return round(float(rows[-1][name]) / max(float(rows[0][name]), 1e-9), 3)


def measure_workers(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """All pairs with one Dask worker, and with two."""
    config = MatchConfig(model="human", points=options.points)
    people = work / "crowd"
    write_people(people, options.worker_shapes, options.points)
    plan = plan_folder(people, "all-pairs")

    def seconds(workers: int) -> float:
        return seconds_of(
            lambda: run_batch(plan, work / f"workers{workers}", config, engine=Engine(workers))
        )

    one, two = seconds(1), seconds(2)
    return {
        "worker_pairs": len(plan.pairs),
        "one_worker_seconds": round(one, 2),
        "two_workers_seconds": round(two, 2),
        "workers_ratio": round(one / two, 2),
    }


def measure_atlas(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Many small shapes to an atlas, with its statistics and files."""
    people, out = work / "many", work / "atlas"
    write_people(people, options.atlas_shapes, options.atlas_points)
    out.mkdir()
    plan: Plan = plan_folder(people, "sequence")
    config = MatchConfig(model="human", points=options.atlas_points)
    found: list[int] = []

    def build() -> None:
        atlas = build_atlas(plan.specimens, out, config, engine=Engine(options.atlas_workers))
        write_atlas(atlas, analyse(atlas), out)
        found.append(len(atlas.registered))

    seconds = seconds_of(build)
    return {
        "atlas_shapes": options.atlas_shapes,
        "atlas_points": options.atlas_points,
        "atlas_registered": found[0],
        "atlas_seconds": round(seconds, 1),
    }


_PARTS = {
    "pairs": measure_pairs,
    "growth": measure_growth,
    "workers": measure_workers,
    "atlas": measure_atlas,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=list(_PARTS), default=list(_PARTS))
    parser.add_argument("--shapes", type=int, default=60, help="for all pairs")
    parser.add_argument("--points", type=int, default=1024, help="of each shape")
    parser.add_argument("--hubs", type=int, default=3, help="that all pairs go through")
    parser.add_argument("--single", type=int, default=60, help="pairs that are matched singly")
    parser.add_argument("--no-direct", action="store_true", help="do not refine all pairs")
    parser.add_argument("--growth", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--worker-shapes", type=int, default=30, help="for one and two workers")
    parser.add_argument("--atlas-shapes", type=int, default=1000)
    parser.add_argument("--atlas-points", type=int, default=512, help="of each shape")
    parser.add_argument("--atlas-workers", type=int, default=2, help="0 works without Dask")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    for part in options.parts:
        with tempfile.TemporaryDirectory() as work:
            found |= _PARTS[part](options, Path(work))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:22} {value}")


if __name__ == "__main__":
    main()
