"""What sharpening gains on generated meshes with triangulations of their own.

    python -m benchmarks.sharpening --json

Held-back people and animals turned at random are matched with and without the last step of
`coherent`. Errors are mean distances along the edges of the target, scaled to area 1, times 100;
for two poses of one individual, which are nearly isometric, and for two individuals of one species.
The bodies are neither those of training nor those of `ltenet bench generated_r`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from ltenet.data.generated_meshes import Body, GeneratedMeshes
from ltenet.evaluation.bench.mesh_scoring import edge_distances
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.config import MatchConfig
from ltenet.matching.extending import to_every_vertex
from ltenet.matching.matcher import Matcher
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent
from ltenet.shape import Shape

#: Seed of the bodies: odd, as validation is.
STREAM = 53
KINDS: tuple[Body, ...] = ("human", "animal")


def errors(shapes: GeneratedMeshes, matcher: Matcher, pair: int) -> list[float]:
    """Mean error of one pair without and with sharpening."""
    source, target = (int(index) for index in shapes.pairs[pair])
    meshes = [turned(shapes.shape(index), index) for index in (source, target)]
    best = matcher.choose(matcher.prepare(meshes[0]), matcher.prepare(meshes[1]))
    listed = shapes.listed(source, target)
    faces = meshes[1].faces
    assert faces is not None
    distances = edge_distances(meshes[1].points, faces)  # (V, V)
    found = []
    for sharp in (False, True):
        options = Coherent(one_to_one=False, sharpen=sharp)
        refined = best._replace(refined=refine_pair(best.pair, options))
        landing, _ = to_every_vertex(refined, np.ones(len(best.pair.source)))
        predicted = landing.indices[listed.source]  # (R,)
        found.append(100 * float(distances[listed.target, predicted].mean()))
    return found


def turned(shape: Shape, index: int) -> Shape:
    """Turn a shape at random, the same way each time."""
    turn: FloatArray = Rotation.random(random_state=index).as_matrix()
    return Shape(shape.points @ turn.T, shape.faces, name=shape.name)


def measure(what: Body, pairs: int) -> dict[str, Any]:
    """Figures of both kinds of pairs of one generator."""
    shapes = GeneratedMeshes(f"{what} meshes", (what,), STREAM)
    matcher = Matcher(MatchConfig(model=what, threshold=0.0))
    individuals = shapes.pairs // 2  # (P, 2)
    alike = individuals[:, 0] == individuals[:, 1]  # (P,)
    figures = {}
    for name, chosen in (("one individual", alike), ("two individuals", ~alike)):
        rows = np.array(
            [errors(shapes, matcher, pair) for pair in np.flatnonzero(chosen)[:pairs].tolist()]
        )  # (p, 2)
        figures[name] = {
            "pairs": len(rows),
            "plain": round(float(rows[:, 0].mean()), 3),
            "sharpened": round(float(rows[:, 1].mean()), 3),
            "better_percent": round(100 * float((rows[:, 1] < rows[:, 0]).mean()), 1),
            "worst_loss": round(float((rows[:, 1] - rows[:, 0]).max()), 3),
        }
    return figures


def run(
    doc: str | None,
    measure: Callable[[Body, int], dict[str, Any]],
    told: Callable[[Any], str],
    *,
    pairs: int,
    what: str,
) -> None:
    """Run a benchmark of pairs from each generator; `told` writes one row of its figures."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--pairs", type=int, default=pairs, help=what)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    figures = {kind: measure(kind, options.pairs) for kind in KINDS}
    if options.json:
        print(json.dumps({**vars(options), "figures": figures}, indent=2))
        return
    for kind, rows in figures.items():
        for name, row in rows.items():
            print(f"{kind}, {name}: {told(row)}")


def main() -> None:
    """Measure what sharpening gains."""

    def told(row: dict[str, float]) -> str:
        return f"{row['plain']:.2f} -> {row['sharpened']:.2f}"

    run(__doc__, measure, told, pairs=10, what="of each kind, at most 20")


if __name__ == "__main__":
    main()
