"""Learn to match people from nothing, in half a minute, without a single label.

Draws two generated people, trains a small LTENet on others with the paper's objective, matches the
two by the nearest neighbour in the embedding, and writes maps, coloured meshes and a picture:

    python examples/demo.py [--steps 80] [-o out/demo]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ltenet import LTENet, Shape
from ltenet.data.humans import HumanGenerator
from ltenet.data.pairs import largest_distance
from ltenet.data.training_pairs import PairConfig, TrainingPairs
from ltenet.encoder import EncoderConfig
from ltenet.io import save
from ltenet.losses import objective
from ltenet.maps import write_map
from ltenet.metrics import accuracy, distances_to_truth
from ltenet.model import ModelConfig
from ltenet.neighbors import cosine_topk
from ltenet.rendering import contact_sheet, render, write_png

MODEL = ModelConfig(
    encoder=EncoderConfig(widths=(32, 64, 128), dimension=128, neighbors=20), radius=0.5
)
PAIRS = PairConfig(what="human", sampling="independent", by="area", points=(512, 512))


def train(model: LTENet, steps: int, *, batch_size: int = 4) -> None:
    """Minimise the paper's objective on generated pairs, without their known correspondences."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=5e-4)
    pairs = TrainingPairs(PAIRS, seed=1)
    model.train()
    console = Console(stderr=True)
    for step in track(range(steps), description="learning without labels", console=console):
        batch = [pairs.draw(step * batch_size + number) for number in range(batch_size)]
        source = torch.from_numpy(np.stack([pair.source for pair in batch]))  # (B, N, 3)
        target = torch.from_numpy(np.stack([pair.target for pair in batch]))  # (B, N, 3)
        loss = objective(source, target, *model(source, target), measure=MODEL.divergence).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def match(model: LTENet, source: Shape, target: Shape) -> NDArray[np.int64]:
    """Target vertex (N,) of every source vertex: the nearest in the embedding."""
    best = cosine_topk(model.embed(source), model.embed(target), 1)
    return best.indices[:, 0].numpy()


def position_colors(shape: Shape) -> NDArray[np.uint8]:
    """Colours (N, 3) by place on the shape."""
    low, high = shape.points.min(axis=0), shape.points.max(axis=0)
    return (40 + 200 * (shape.points - low) / (high - low)).astype(np.uint8)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="Learn to match people without labels.")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/demo"))
    options = parser.parse_args()
    torch.manual_seed(0)

    generator = HumanGenerator()
    source, target = (
        Shape(body.vertices, generator.template.faces, name=name)
        for name, body in zip(
            "source target".split(), (generator.draw(11, 5), generator.draw(11, 8))
        )
    )
    model = LTENet(MODEL)
    diameter = largest_distance(target.points)
    table = Table(title=f"{len(source)} vertices on {len(target)}, nearest neighbour")
    for column in ("network", "within 1 %", "within 5 %", "mean error", "seconds"):
        table.add_column(column, justify="right")
    for name, steps in (("untrained", 0), (f"{options.steps} steps", options.steps)):
        if steps:
            train(model, steps)
        start = time.perf_counter()
        indices = match(model, source, target)
        seconds = time.perf_counter() - start
        # The two share their numbering, so the truth is the vertex of the same number.
        distances = distances_to_truth(target.points[indices], target.points)
        shares = accuracy(distances, diameter, [0.01, 0.05])
        table.add_row(
            name,
            f"{100 * shares[0]:.1f} %",
            f"{100 * shares[1]:.1f} %",
            f"{100 * distances.mean() / diameter:.1f} %",
            f"{seconds:.2f}",
        )

    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    colors = position_colors(target)  # (M, 3)
    colored = (
        Shape(source.points, source.faces, colors[indices], name="source"),
        Shape(target.points, target.faces, colors, name="target"),
    )
    for shape in colored:
        save(shape, folder / f"{shape.name}.ply", force=True)
    write_map(folder / "map.txt", indices, force=True)
    tiles = [render(s.points, s.faces, colors=s.colors, size=(480, 480)) for s in colored]
    captions = ["source, coloured by its map", "target"]
    write_png(folder / "map.png", contact_sheet(tiles, columns=2, captions=captions), force=True)
    Console().print(table)
    Console().print(f"written to {folder}: source.ply, target.ply, map.txt, map.png")


if __name__ == "__main__":
    main()
