"""How well weights match real shapes by the nearest neighbour, under both protocols.

    python -m benchmarks.accuracy WEIGHTS --set faust --data DIR --json

`shared` is the protocol of the papers: both clouds hold the same surface points. `independent`
draws each shape by itself, as scans are. Figures are means over the pairs, then mean and standard
deviation over the sampling seeds. No orientation, no refinement.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

import numpy as np
import torch

from ltenet.data.pairs import benchmark_pair
from ltenet.data.readers import open_set
from ltenet.data.shapeset import ShapeSet
from ltenet.metrics import TOLERANCES, map_error
from ltenet.model import LTENet
from ltenet.neighbors import cosine_topk

SAMPLINGS = ("shared", "independent")
FIGURES = ("acc_1", "acc_5", "err_percent", "err_dpc", "seconds")


def measure_pair(
    model: LTENet, shapes: ShapeSet, pair: int, *, sampling: Any, seed: int
) -> tuple[float, ...]:
    """`FIGURES` of one pair."""
    drawn = benchmark_pair(shapes, pair, sampling=sampling, seed=seed)
    start = time.perf_counter()
    best = cosine_topk(model.embed(drawn.source), model.embed(drawn.target), 1)
    seconds = time.perf_counter() - start
    predicted = drawn.target[best.indices[:, 0].cpu().numpy()]  # (N, 3)
    error = map_error(predicted, drawn.truth, drawn.diameter, divisor=shapes.error_divisor)
    at_1, at_5 = (100 * error.accuracy[np.isclose(TOLERANCES, t)][0] for t in (0.01, 0.05))
    return at_1, at_5, error.err_percent, error.err_dpc, seconds


def measure(
    model: LTENet, shapes: ShapeSet, *, pairs: int | None, seeds: list[int]
) -> dict[str, dict[str, dict[str, float]]]:
    """Mean and spread over the seeds, for each sampling and figure."""
    chosen = list(range(len(shapes.pairs)))
    if pairs is not None and pairs < len(chosen):
        chosen = np.random.default_rng(0).choice(chosen, pairs, replace=False).tolist()
    results = {}
    for sampling in SAMPLINGS:
        rows = np.array(
            [
                np.mean(
                    [measure_pair(model, shapes, p, sampling=sampling, seed=s) for p in chosen],
                    axis=0,
                )
                for s in seeds
            ]
        )  # (seeds, figures)
        results[sampling] = {
            name: {"mean": float(column.mean()), "std": float(column.std())}
            for name, column in zip(FIGURES, rows.T, strict=True)
        }
    return results


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("weights", help="name or folder of the weights")
    parser.add_argument("--set", dest="sets", action="append", help="faust, shrec19 or tosca")
    parser.add_argument("--data", default=os.environ.get("LTENET_DATA", "../shared/data"))
    parser.add_argument("--pairs", type=int, default=None, help="a random part of the pairs")
    parser.add_argument("--seeds", default="0,1,2", help="sampling seeds, with commas")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = LTENet.from_pretrained(options.weights)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    figures: dict[str, Any] = {"weights": options.weights, "seeds": seeds, "pairs": options.pairs}
    for name in options.sets or ["faust", "shrec19"]:
        figures[name] = measure(
            model, open_set(name, options.data), pairs=options.pairs, seeds=seeds
        )
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    for name in options.sets or ["faust", "shrec19"]:
        for sampling, row in figures[name].items():
            cells = "  ".join(f"{key} {v['mean']:.2f}±{v['std']:.2f}" for key, v in row.items())
            print(f"{name:8s} {sampling:12s} {cells}")


if __name__ == "__main__":
    main()
