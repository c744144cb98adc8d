"""How many shapes per second the generators draw, on one thread.

    python -m benchmarks.shapes --json

Each generator draws blocks of consecutive shapes after a warm-up block; the figures are medians
over the blocks. Only accepted shapes count: the time of rejected poses is in it. Seconds are those
of the processor, which other programs on the machine do not lengthen; `*_per_second_wall` has
those of the clock, the same on a machine with nothing else to do.
"""

# ruff: noqa: E402 - numpy's threads are there as soon as it is imported

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import scipy

import ltenet
from ltenet.bodies import animals, humans
from ltenet.bodies.body_pairs import What, own_generator

GENERATORS: tuple[What, ...] = ("human", "animal")
#: Shapes per second that are asked of each generator.
REQUIRED = {"human": 150.0, "animal": 300.0}


class Rates(NamedTuple):
    """Median shapes per second: of processor time, and of the clock on the wall."""

    processor: float
    wall: float


def rates(what: What, blocks: int, size: int, *, seed: int = 0) -> Rates:
    """Draw blocks of shapes and time each; the first one warms up and does not count."""
    generator = own_generator(what)
    found = []
    for block in range(blocks + 1):
        start, start_wall = time.process_time(), time.perf_counter()
        for index in range(block * size, (block + 1) * size):
            generator.draw(seed, index)
        seconds, seconds_wall = time.process_time() - start, time.perf_counter() - start_wall
        found.append(Rates(size / seconds, size / seconds_wall))
    counted = found[1:]
    return Rates(
        statistics.median(one.processor for one in counted),
        statistics.median(one.wall for one in counted),
    )


def rejected_share(what: What, count: int, *, seed: int = 0) -> float | None:
    """Share of the drawn poses that are refused, counted apart from the timing."""
    generator = own_generator(what)
    owner, name = {
        "human": (humans, "draw_pose"),
        "animal": (getattr(animals, "_Maker", None), "_pose"),
    }[what]
    if not hasattr(owner, name):
        return None
    with counted_calls(owner, name) as calls:
        for index in range(count):
            generator.draw(seed, index)
    return 1.0 - count / calls[0]


@contextmanager
def counted_calls(owner: object, name: str) -> Iterator[list[int]]:
    """Count the calls of a function while the block runs."""
    original: Callable[..., object] = getattr(owner, name)
    calls = [0]

    def counting(*arguments: object, **options: object) -> object:
        calls[0] += 1
        return original(*arguments, **options)

    setattr(owner, name, counting)
    try:
        yield calls
    finally:
        setattr(owner, name, original)


def run(blocks: int, size: int) -> dict[str, object]:
    """All figures of the benchmark."""
    figures: dict[str, object] = {}
    for what in GENERATORS:
        found = rates(what, blocks, size)
        figures[f"{what}_per_second"] = found.processor
        figures[f"{what}_per_second_wall"] = found.wall
        figures[f"{what}_required"] = REQUIRED[what]
        figures[f"{what}_rejected_share"] = rejected_share(what, 2 * size)
    figures["vertices"] = {
        name: len(template.mirror)
        for what in GENERATORS
        for name, template in own_generator(what).templates.items()
    }
    figures["setting"] = {"blocks": blocks, "shapes_per_block": size, "threads": 1}
    figures["versions"] = {
        "ltenet": ltenet.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
    return figures


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--blocks", type=int, default=9, help="timed blocks of each generator")
    parser.add_argument("--size", type=int, default=100, help="shapes in a block")
    options = parser.parse_args()
    figures = run(options.blocks, options.size)
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    for what in GENERATORS:
        print(f"{what:7s}{figures[f'{what}_per_second']:7.0f} shapes per second")


if __name__ == "__main__":
    main()
