"""How well clutter is told from surfaces: what is lost of the surface, and what is left of clutter.

    python -m benchmarks.outliers [--bodies N] [--points N ...] [--seed S] [--json]

Clouds of generated people and animals, sampled in the ways of `WAYS`, with uniform clutter in their
bounding box. "lost" is the share (%) of surface points that are left out; "left" the share (%) of
clutter farther than 5 % of the body's size from its surface that is not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from ltenet.bodies.body_pairs import What, own_generator
from ltenet.data.scans import visible_vertices
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.matching.outliers import inliers
from ltenet.shape import Shape

Generator = np.random.Generator
SHARES = (0.0, 0.05, 0.1, 0.2)


def body(what: What, seed: int, index: int) -> tuple[FloatArray, IntArray]:
    """Vertices and faces of a generated body."""
    generator = own_generator(what)
    vertices = generator.draw(seed, index).vertices.astype(np.float64)
    sizes = {template.faces.max() + 1: template for template in generator.templates.values()}
    return vertices, sizes[len(vertices)].faces.astype(np.int64)


def on_surface(
    points: FloatArray,
    faces: IntArray,
    count: int,
    rng: Generator,
    density: FloatArray | None = None,
) -> FloatArray:
    """(count, 3) points drawn by area, and by a (V,) density."""
    corners = points[faces]  # (F, 3, 3)
    sides = corners[:, 1:] - corners[:, :1]  # (F, 2, 3)
    shares = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)  # (F,)
    if density is not None:
        shares = shares * density[faces].mean(axis=1)
    chosen = rng.choice(len(faces), count, p=shares / shares.sum())
    two = rng.random((count, 2))
    two = np.where(two.sum(axis=1, keepdims=True) > 1, 1 - two, two)
    weights = np.c_[1 - two.sum(axis=1), two]  # (count, 3)
    return np.asarray(np.einsum("nk,nkc->nc", weights, corners[chosen]))


def _vertices(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    return points[rng.choice(len(points), min(count, len(points)), replace=False)]


def _height(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    heights = points[:, 1]
    density = np.exp(1.5 * (heights - heights.mean()) / heights.std())
    return on_surface(points, faces, count, rng, density)


def _near_scanner(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    size = np.ptp(points)
    eye = points.mean(axis=0) + rng.normal(size=3) * [1, 0.3, 1] * size
    away = np.linalg.norm(points - eye, axis=1)
    return on_surface(points, faces, count, rng, 1 / np.maximum(away, 0.1 * size) ** 3)


def _one_side(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    seen = visible_vertices(points, faces, np.array([0.2, 0.1, 1.0]))
    return on_surface(points, faces[seen[faces].all(axis=1)], count, rng)


def _noisy(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    drawn = on_surface(points, faces, count, rng)
    width = 0.005 * np.linalg.norm(np.ptp(points, axis=0))
    noisy: FloatArray = drawn + width * rng.normal(size=drawn.shape)
    return noisy


def _half_on_a_tenth(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    away = np.linalg.norm(points - points[rng.integers(len(points))], axis=1)
    dense = np.where(away < np.quantile(away, 0.1), 9.0, 1.0)
    return on_surface(points, faces, count, rng, dense)


def _cut_off(points: FloatArray, faces: IntArray, count: int, rng: Generator) -> FloatArray:
    heights = points[:, 1]
    upper = faces[(heights[faces] > np.quantile(heights, 0.35)).all(axis=1)]
    return on_surface(points, upper, count, rng)


#: Ways to sample a body.
WAYS: dict[str, Callable[[FloatArray, IntArray, int, Generator], FloatArray]] = {
    "vertices": _vertices,
    "even": on_surface,
    "denser with height": _height,
    "denser near a scanner": _near_scanner,
    "one side": _one_side,
    "noise": _noisy,
    "half on a tenth": _half_on_a_tenth,
    "cut off": _cut_off,
}


def measure(way: str, count: int, bodies: int, seed: int) -> dict[float, list[float]]:
    """Mean share (%) of the surface that is lost, and of far clutter that is left, by clutter."""
    found: dict[float, list[list[float]]] = {share: [] for share in SHARES}
    for what in ("human", "animal"):
        for index in range(bodies):
            rng = np.random.default_rng([seed, index, count])
            points, faces = body(what, seed, index)
            cloud = WAYS[way](points, faces, count, rng)
            size = np.linalg.norm(np.ptp(points, axis=0))
            surface = KDTree(np.concatenate([points, on_surface(points, faces, 10_000, rng)]))
            low, high = cloud.min(axis=0), cloud.max(axis=0)
            for share in SHARES:
                clutter = rng.uniform(low, high, (int(share * len(cloud)), 3))
                kept = np.zeros(len(cloud) + len(clutter), bool)
                kept[inliers(Shape(np.concatenate([cloud, clutter])))] = True
                far = surface.query(clutter)[0] > 0.05 * size if share else np.zeros(0, bool)
                left = (kept[len(cloud) :] & far).sum() / max(far.sum(), 1)
                found[share].append([100 * (1 - kept[: len(cloud)].mean()), 100 * left])
    return {share: np.mean(rows, axis=0).round(2).tolist() for share, rows in found.items()}


def summary(by_way: dict[str, dict[float, list[float]]]) -> list[dict[str, Any]]:
    """Mean and worst way, for each share of clutter."""
    rows = []
    for share in SHARES:
        lost, left = np.array([figures[share] for figures in by_way.values()]).T
        rows.append(
            {
                "clutter": share,
                "lost_mean": round(float(lost.mean()), 2),
                "lost_worst": round(float(lost.max()), 2),
                "left_mean": round(float(left.mean()), 1),
                "left_worst": round(float(left.max()), 1),
            }
        )
    return rows


def main(argv: list[str] | None = None) -> None:
    """Measure all ways; print figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outliers", description=__doc__)
    parser.add_argument("--bodies", type=int, default=3, help="people, and as many animals")
    parser.add_argument("--points", type=int, nargs="+", default=[500, 1024, 4096])
    parser.add_argument("--seed", type=int, default=1907)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    found: dict[str, Any] = {"bodies": chosen.bodies, "seed": chosen.seed, "points": {}}
    for count in chosen.points:
        by_way = {way: measure(way, count, chosen.bodies, chosen.seed) for way in WAYS}
        found["points"][str(count)] = summary(by_way)
        if not chosen.json:
            for row in found["points"][str(count)]:
                print(count, row, flush=True)
    if chosen.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
