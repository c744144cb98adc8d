"""How much faster and smaller the compute core is than `ltenet.method.plain`, in one process.

    python -m benchmarks.compute --json

Both run alternately on the same points and the same weights; figures are medians. The reference
convolves every edge, channels first, as public DGCNN code does; for one embedding the ratio to
`plain` itself, which takes edges as the rows of one matrix product and is quicker on a CPU, is
given as well. Only ratios carry over to another machine. Peak memory is the growth of the resident
set over the first step, each variant in a process of its own.
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
import torch.nn.functional as F
from torch import Tensor, nn

import ltenet
from ltenet.method import plain
from ltenet.method.encoder import DGCNN
from ltenet.method.losses import objective

POINTS, SHAPES, PAIRS = 1024, 8, 4
Variant = Literal["ltenet", "reference"]


class ConvolvedEdgeConv(plain.EdgeConv):
    """The same layer with edges as the pixels of a 1 x 1 convolution, channels first."""

    def forward(self, features: Tensor, indices: Tensor) -> Tensor:
        """Map (B, N, C) features with (B, N, k) neighbours to (B, N, C')."""
        neighbors = plain.gather(features, indices)  # (B, N, k, C)
        center = features[:, :, None].expand_as(neighbors)  # (B, N, k, C)
        edges = torch.cat([neighbors - center, center], dim=-1)  # (B, N, k, 2 C)
        images = edges.permute(0, 3, 1, 2).contiguous()  # (B, 2 C, N, k)
        images = F.conv2d(images, self.weight[:, :, None, None])  # (B, C', N, k)
        norm = self.norm
        images = F.batch_norm(  # (B, C', N, k)
            images, norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.training
        )
        return F.leaky_relu(images, 0.2).amax(dim=3).transpose(1, 2)  # (B, N, C')


def plain_network(encoder: DGCNN, *, convolved: bool = True) -> nn.Module:
    """Return the plain network with the weights of the fast one, in the same mode."""
    network = plain.DGCNN()
    if convolved:
        for layer in network.layers:
            layer.__class__ = ConvolvedEdgeConv
    network.load_state_dict(encoder.state_dict())
    return network.train(encoder.training)


def shapes(count: int, *, seed: int = 0) -> Tensor:
    """Points (count, POINTS, 3) on ellipsoids of about human size."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(count, POINTS, 3, generator=generator)
    directions = torch.nn.functional.normalize(directions, dim=-1)
    axes = 0.2 + 0.6 * torch.rand(count, 1, 3, generator=generator)
    return directions * axes


def training_step(network: nn.Module, source: Tensor, target: Tensor) -> None:
    """One forward and backward pass of the paper's objective over a batch of pairs."""
    network.zero_grad(set_to_none=True)
    both = torch.cat([source, target])  # (2 B, N, 3)
    if not isinstance(network, DGCNN):
        features = network(both)  # (2 B, N, D)
        loss = plain.objective(source, target, *features.chunk(2))
    else:
        graphs = network.graphs_of(both)
        features = network(both, graphs)  # (2 B, N, D)
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


def encoder_pass(network: nn.Module, points: Tensor) -> None:
    """One forward and backward pass of the encoder in training."""
    network.zero_grad(set_to_none=True)
    network(points).square().mean().backward()


def embed(network: nn.Module, points: Tensor) -> None:
    """One evaluation of the encoder."""
    with torch.no_grad():
        network(points)


def alternate(run: Callable[[Variant], None], rounds: int) -> tuple[float, float]:
    """Median seconds of ours and of the reference, run alternately after one warm-up each."""
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
    training_step(encoder, points[:1], points[1:2])
    encoder.zero_grad(set_to_none=True)
    network = encoder if variant == "ltenet" else plain_network(encoder)
    gc.collect()
    # Linux: "5" sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_resident()
    training_step(network, points[:PAIRS], points[PAIRS:])
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
    """Measure every figure of the benchmark."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    encoder = DGCNN()
    points = shapes(SHAPES)
    source, target = points[:PAIRS], points[PAIRS : 2 * PAIRS]

    encoder.eval()
    networks: dict[Variant, nn.Module] = {"ltenet": encoder, "reference": plain_network(encoder)}
    products = plain_network(encoder, convolved=False)
    ours_embed, plain_embed = alternate(lambda v: embed(networks[v], points[:1]), 3 * rounds)
    product_embed = statistics.median(alternate(lambda _: embed(products, points[:1]), rounds))
    for network in networks.values():
        network.train()
    ours_train, plain_train = alternate(lambda v: encoder_pass(networks[v], points), rounds)
    ours_step, plain_step = alternate(lambda v: training_step(networks[v], source, target), rounds)
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
