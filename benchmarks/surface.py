"""What it gains that neighbours of the embedding keep to the surface of a mesh.

    python -m benchmarks.surface --json

Held-back people and animals with triangulations of their own, turned at random, are matched with
neighbours in space and along the surface, by the same weights. Errors are mean distances along the
edges of the target, scaled to area 1, times 100. The bodies are neither those of training nor those
of `ltenet bench generated_r`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.sharpening import run, turned
from ltenet.data.generated_meshes import Body, GeneratedMeshes
from ltenet.evaluation.bench.mesh_scoring import edge_distances
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.matching.networks import Networks
from ltenet.refinement.options import Method

#: Seed of the bodies: odd, as validation is.
STREAM = 55
METHODS: dict[str, Method] = {"nearest neighbour": "none", "refined": "coherent"}
#: Mean error of a map that failed.
_FAILED = 5.0


def matcher_of(model: str, refine: Method, *, surface: bool) -> Matcher:
    """Match with or without neighbours along the surface."""
    matcher = Matcher(MatchConfig(model=model, refine=refine, threshold=0.0))
    matcher.networks = tuple(_along(networks, surface) for networks in matcher.networks)
    return matcher


def _along(networks: Networks, surface: bool) -> Networks:
    model = deepcopy(networks.model)  # weights that are read once are shared by all matchers
    encoder = replace(model.config.encoder, surface=surface)
    model.config = replace(model.config, encoder=encoder)
    model.encoder.config = encoder
    return networks._replace(model=model)


def errors(shapes: GeneratedMeshes, matchers: list[Matcher], pair: int) -> FloatArray:
    """Mean error of one pair by each matcher."""
    source, target = (int(index) for index in shapes.pairs[pair])
    meshes = [turned(shapes.shape(index), index) for index in (source, target)]
    listed, faces = shapes.listed(source, target), meshes[1].faces
    assert faces is not None
    distances = edge_distances(meshes[1].points, faces)  # (V, V)
    maps = [matcher.match(*meshes).indices[listed.source] for matcher in matchers]  # (R,) each
    return 100 * np.array([float(distances[listed.target, found].mean()) for found in maps])


def measure(what: Body, pairs: int) -> dict[str, Any]:
    """Figures of one generator."""
    shapes = GeneratedMeshes(f"{what} meshes", (what,), STREAM)
    matchers = [
        matcher_of(what, refine, surface=surface)
        for refine in METHODS.values()
        for surface in (False, True)
    ]
    rows = np.array([errors(shapes, matchers, pair) for pair in range(pairs)])  # (P, 4)
    figures: dict[str, Any] = {"pairs": pairs}
    for number, name in enumerate(METHODS):
        own = rows[:, 2 * number : 2 * number + 2]  # (P, 2)
        for column, kind in enumerate(("space", "surface")):
            figures[f"{name}, {kind}"] = {
                "mean": round(float(own[:, column].mean()), 3),
                "median": round(float(np.median(own[:, column])), 3),
                "failed_percent": round(100 * float((own[:, column] > _FAILED).mean()), 1),
            }
    return figures


def main() -> None:
    """Measure what neighbours along the surface gain."""
    run(__doc__, measure, str, pairs=24, what="of each generator, at most 40")


if __name__ == "__main__":
    main()
