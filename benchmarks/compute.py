"""How much faster and smaller the compute core is than the plain reference, in one process.

    python -m benchmarks.compute --json

Both are run alternately on the same points and the same weights; figures are medians. The
reference convolves every edge, channels first, as DGCNN is usually written; for one embedding the
ratio to the quicker variant with edges as rows of a matrix product stands beside it. Only ratios
mean anything on another machine. Peak memory is measured in child processes, one each, as
the growth of the resident set over the first step.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import scipy
import torch
from torch import Tensor

import ltenet
from benchmarks import reference
from ltenet.encoder import DGCNN
from ltenet.losses import objective

POINTS, SHAPES, PAIRS = 1024, 8, 4
Variant = Literal["ltenet", "reference"]


def shapes(count: int, *, seed: int = 0) -> Tensor:
    """Points (count, POINTS, 3) on ellipsoids of about human size."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(count, POINTS, 3, generator=generator)
    directions = torch.nn.functional.normalize(directions, dim=-1)
    axes = 0.2 + 0.6 * torch.rand(count, 1, 3, generator=generator)
    return directions * axes


def training_step(encoder: DGCNN, source: Tensor, target: Tensor, variant: Variant) -> None:
    """One forward and backward pass of the paper's objective over a batch of pairs."""
    encoder.zero_grad(set_to_none=True)
    both = torch.cat([source, target])  # (2 B, N, 3)
    if variant == "reference":
        features = reference.ReferenceDGCNN(encoder)(both)  # (2 B, N, D)
        loss = reference.objective(source, target, *features.chunk(2))
    else:
        graphs = encoder.graphs_of(both)
        features = encoder(both, graphs)  # (2 B, N, D)
        starts = torch.arange(len(both))[:, None, None] * POINTS
        neighbors = graphs[0].indices.view(len(both), POINTS, -1) - starts  # (2 B, N, k)
        source_neighbors, target_neighbors = neighbors.chunk(2)
        loss = objective(
            source,
            target,
            *features.chunk(2),
            source_neighbors=source_neighbors,
            target_neighbors=target_neighbors,
        ).total
    loss.backward()


def encoder_pass(encoder: DGCNN, points: Tensor, variant: Variant) -> None:
    """One forward and backward pass of the encoder in training."""
    encoder.zero_grad(set_to_none=True)
    network = encoder if variant == "ltenet" else reference.ReferenceDGCNN(encoder)
    network(points).square().mean().backward()


def embed(encoder: DGCNN, points: Tensor, variant: Variant) -> None:
    """One evaluation of the encoder."""
    network = encoder if variant == "ltenet" else reference.ReferenceDGCNN(encoder)
    with torch.no_grad():
        network(points)


def embed_by_products(encoder: DGCNN, points: Tensor) -> None:
    """One evaluation of the quicker plain variant: edges as rows of one matrix product."""
    with torch.no_grad():
        reference.ReferenceDGCNN(encoder, convolution=False)(points)


def alternate(run: Callable[[Variant], None], rounds: int) -> tuple[float, float]:
    """Median seconds of ours and of the reference, run in turns after one warm-up each."""
    variants: tuple[Variant, Variant] = ("ltenet", "reference")
    seconds: dict[Variant, list[float]] = {variant: [] for variant in variants}
    for number in range(rounds + 1):
        for variant in variants:
            # Ours is short: several repeats give its median the same weight.
            for _ in range(3 if variant == "ltenet" else 1):
                start = time.perf_counter()
                run(variant)
                if number > 0:
                    seconds[variant].append(time.perf_counter() - start)
        gc.collect()
    return statistics.median(seconds["ltenet"]), statistics.median(seconds["reference"])


def gemm_peak(rounds: int = 15) -> float:
    """Return the largest measured rate of a matrix product in this process, in flop/s."""
    size = 1536
    first, second = torch.randn(size, size), torch.randn(size, size)
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        first @ second
        rates.append(2 * size**3 / (time.perf_counter() - start))
    return max(rates)


def embed_flops(encoder: DGCNN) -> int:
    """Floating-point operations in the matrix products of one embedding."""
    config = encoder.config
    inputs = (3, *config.widths[:-1])
    per_point = sum(2 * 2 * a * b for a, b in zip(inputs, config.widths, strict=True))
    return POINTS * (per_point + 2 * sum(config.widths) * config.dimension)


def _peak_of_step(variant: Variant, threads: int, answer: multiprocessing.Queue[float]) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    encoder = DGCNN().train()
    points = shapes(2 * PAIRS)
    # Libraries allocate their own buffers once; a small step keeps these out of the figure.
    training_step(encoder, points[:1], points[1:2], "ltenet")
    encoder.zero_grad(set_to_none=True)
    gc.collect()
    # Linux: "5" sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_resident()
    training_step(encoder, points[:PAIRS], points[PAIRS:], variant)
    answer.put(_peak_resident() - before)


def _peak_resident() -> float:
    """Largest resident set of this process, in bytes (getrusage would tell the parent's too)."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1]) * 1024


def peak_of_step(variant: Variant, threads: int) -> float:
    """Bytes that one training step needs at its peak, in a process of its own (Linux only)."""
    context = multiprocessing.get_context("spawn")
    answer: multiprocessing.Queue[float] = context.Queue()
    process = context.Process(target=_peak_of_step, args=(variant, threads, answer))
    process.start()
    peak = answer.get()
    process.join()
    return peak


def run(rounds: int, threads: int) -> dict[str, object]:
    """All figures of the benchmark."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    encoder = DGCNN()
    points = shapes(SHAPES)
    source, target = points[:PAIRS], points[PAIRS : 2 * PAIRS]

    encoder.eval()
    ours_embed, plain_embed = alternate(lambda v: embed(encoder, points[:1], v), 3 * rounds)
    product_embed = statistics.median(
        alternate(lambda _: embed_by_products(encoder, points[:1]), rounds)
    )
    encoder.train()
    ours_train, plain_train = alternate(lambda v: encoder_pass(encoder, points, v), rounds)
    ours_step, plain_step = alternate(lambda v: training_step(encoder, source, target, v), rounds)
    peak = gemm_peak()
    ours_bytes, plain_bytes = (peak_of_step(v, threads) for v in ("ltenet", "reference"))
    return {
        "embed_ratio": plain_embed / ours_embed,
        "embed_ratio_to_products": product_embed / ours_embed,
        "encoder_train_ratio": plain_train / ours_train,
        "step_ratio": plain_step / ours_step,
        "step_memory_ratio": ours_bytes / plain_bytes,
        "gemm_share": embed_flops(encoder) / ours_embed / peak,
        "gemm_share_train": 3 * SHAPES * embed_flops(encoder) / ours_train / peak,
        "seconds": {
            "embed": {
                "ltenet": ours_embed,
                "reference": plain_embed,
                "reference_by_products": product_embed,
            },
            "encoder_train": {"ltenet": ours_train, "reference": plain_train},
            "step": {"ltenet": ours_step, "reference": plain_step},
        },
        "step_peak_bytes": {"ltenet": ours_bytes, "reference": plain_bytes},
        "gemm_peak_gflops": peak / 1e9,
        "setting": {
            "points": POINTS,
            "encoder_shapes": SHAPES,
            "step_pairs": PAIRS,
            "graph_neighbors": encoder.config.neighbors,
            "neighbors": 10,
            "dimension": encoder.config.dimension,
            "rounds": rounds,
            "threads": threads,
        },
        "versions": {
            "ltenet": ltenet.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
    }


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of the slow parts")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    figures = run(options.rounds, options.threads)
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    for name in ("embed_ratio", "encoder_train_ratio", "step_ratio", "step_memory_ratio"):
        print(f"{name:22s} {figures[name]:.3g}")


if __name__ == "__main__":
    main()
