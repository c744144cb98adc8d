"""Match two generated people with the weights in the package.

    python examples/demo.py [-o out/demo]

Draws two people, embeds 1024 vertices of each, matches them by the nearest neighbour in the
embedding, carries the map to all vertices, and writes the map, coloured meshes and a picture. The
two share their numbering, so the true partner of every vertex is known and the map can be scored.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.spatial import KDTree

from ltenet import LTENet, Shape
from ltenet.data.humans import HumanGenerator
from ltenet.data.pairs import largest_distance
from ltenet.io import save
from ltenet.maps import write_map
from ltenet.metrics import accuracy, distances_to_truth
from ltenet.neighbors import cosine_topk, farthest_point_sample
from ltenet.rendering import contact_sheet, render, write_png

POINTS = 1024


def match(model: LTENet, source: Shape, target: Shape) -> NDArray[np.int64]:
    """Target vertex (N,) of every source vertex.

    The network saw shapes of about 1024 points in training, so that many are embedded; the other
    vertices of the source take the partner of the nearest one that was.
    """
    from_points, to_points = (farthest_point_sample(s.points, POINTS) for s in (source, target))
    features = [model.embed(s.subset(i)) for s, i in ((source, from_points), (target, to_points))]
    partner = to_points[cosine_topk(*features, 1).indices[:, 0].numpy()]  # (1024,)
    nearest = KDTree(source.points[from_points]).query(source.points)[1]  # (N,)
    indices: NDArray[np.int64] = partner[nearest]
    return indices


def position_colors(shape: Shape) -> NDArray[np.uint8]:
    """Colours (N, 3) by place on the shape."""
    low, high = shape.points.min(axis=0), shape.points.max(axis=0)
    return (40 + 200 * (shape.points - low) / (high - low)).astype(np.uint8)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="Match two generated people.")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/demo"))
    folder: Path = parser.parse_args().output
    generator = HumanGenerator()
    source, target = (
        Shape(generator.draw(11, index).vertices, generator.template.faces, name=name)
        for name, index in (("source", 5), ("target", 8))
    )
    torch.manual_seed(0)
    trained = LTENet.from_pretrained("human")
    diameter = largest_distance(target.points)
    table = Table(title=f"{len(source)} vertices on {len(target)}, nearest neighbour")
    for column in ("network", "within 1 %", "within 5 %", "mean error", "seconds"):
        table.add_column(column, justify="right")
    for name, model in (("untrained", LTENet(trained.config)), ("human", trained)):
        start = time.perf_counter()
        indices = match(model, source, target)
        seconds = time.perf_counter() - start
        distances = distances_to_truth(target.points[indices], target.points)  # (N,)
        shares = [f"{100 * share:.1f} %" for share in accuracy(distances, diameter, [0.01, 0.05])]
        mean = f"{100 * distances.mean() / diameter:.1f} %"
        table.add_row(name, *shares, mean, f"{seconds:.2f}")

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
    sheet = contact_sheet(tiles, columns=2, captions=["source, by its map", "target"])
    write_png(folder / "map.png", sheet, force=True)
    Console().print(table)
    Console().print(f"written to {folder}: source.ply, target.ply, map.txt, map.png")


if __name__ == "__main__":
    main()
