"""Match two generated people with the weights in the package.

    python examples/demo.py [-o out/demo]

Draws two people, turns one of them at random, matches every vertex, and writes the map with its
confidence, coloured meshes and a picture. The two share their numbering, so the true partner of
every vertex is known and the map can be scored.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ltenet
from ltenet import Shape
from ltenet.bodies.humans import HumanGenerator
from ltenet.data.augmentation import random_rotation
from ltenet.drawing.rendering import write_png
from ltenet.io import save
from ltenet.matching.config import MatchConfig
from ltenet.metrics import accuracy, distances_to_truth
from ltenet.viewer.colors import color_frame, position_colors
from ltenet.viewer.picture import picture


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="Match two generated people.")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/demo"))
    folder: Path = parser.parse_args().output
    generator = HumanGenerator()
    source, target = (
        Shape(
            generator.draw(11, index).vertices.astype(np.float64),
            generator.template.faces.astype(np.int64),
            name=name,
        )
        for name, index in (("source", 5), ("target", 8))
    )
    turned = source.rotated(random_rotation("any", np.random.default_rng(0)))
    diameter = target.diameter
    table = Table(title=f"{len(source)} vertices onto {len(target)}")
    for column in ("map", "within 1 %", "within 5 %", "mean error", "seconds"):
        table.add_column(column, justify="right")
    for name, shape, config in (
        ("nearest neighbour", source, MatchConfig(refine="none")),
        ("refined", source, MatchConfig()),
        ("refined, source turned", turned, MatchConfig()),
    ):
        start = time.perf_counter()
        found = ltenet.match(shape, target, config=config)
        seconds = time.perf_counter() - start
        places = found.thresholded(0.0).positions()  # (N, 3)
        distances = distances_to_truth(places, target.points)  # (N,)
        shares = [f"{100 * share:.1f} %" for share in accuracy(distances, diameter, [0.01, 0.05])]
        mean = f"{100 * distances.mean() / diameter:.1f} %"
        table.add_row(name, *shares, mean, f"{seconds:.1f}")
        if name == "refined":
            result = found

    folder.mkdir(parents=True, exist_ok=True)
    result.save(folder / "map.npz", force=True)
    result.save(folder / "map.csv", force=True)
    colors = position_colors(target.points, color_frame(target.points))  # (M, 3)
    template = replace(target, colors=colors)
    save(template, folder / "target.ply", force=True)
    colored = ltenet.transfer(result, template, onto=source, what="colors")
    save(colored, folder / "source.ply", force=True)
    write_png(folder / "map.png", picture(source, target, result), force=True)
    console = Console()
    console.print(table)
    matched = f"{result.matched.mean():.1%} of the vertices matched"
    console.print(f"model chosen: {result.details['model']}; {matched}")
    console.print(f"written to {folder}: map.npz, map.csv, source.ply, target.ply, map.png")


if __name__ == "__main__":
    main()
