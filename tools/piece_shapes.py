"""Pieces of people as objects, as sculptors and scanners leave them.

A head has hair, a hat, a bun or a collar; it stands on a plinth, or is cut off behind the ears. A
hand or a foot ends in a sleeve or a stump. All of this is added to points drawn on generated
pieces. The frame of a piece is that of its body at rest.
"""

from __future__ import annotations

import math

import numpy as np

from ltenet.bodies.body_frame import upright_rotation
from ltenet.bodies.generated import Template
from ltenet.bodies.things import TRAINING_THINGS, ThingGenerator
from ltenet.data.augmentation import add_noise
from ltenet.data.sampling import draw_density, positions_of, sample_surface
from ltenet.data.scans import add_wobble
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import axis_rotation
from ltenet.matching.frame_networks import KINDS
from tools.orientation_shapes import Framed

#: Pieces and how often they are drawn; the rest of the draws are things, which have no frame.
CHANCES = {
    "head": 0.34,
    "hand.L": 0.12,
    "hand.R": 0.12,
    "foot.L": 0.05,
    "foot.R": 0.05,
    "arm.L": 0.03,
    "arm.R": 0.03,
    "leg.L": 0.03,
    "leg.R": 0.03,
    "trunk": 0.05,
}
#: Right arms and hands are turned over, so that fingers, and thumbs, of both sides point alike.
_TURNED_OVER = ("hand.R", "arm.R")
#: Name of the shapes that are no pieces.
THING = "thing"
_THINGS = 200  # templates of things, each kept
_POINTS = (700, 2400)
#: Height of a head at rest in metres, from the top down: what has hair.
_HEAD = 0.24
_STREAMS = {"train": 11, "validation": 12}


class Pieces:
    """Pieces of generated people, and things; pair `index` depends on split and index alone."""

    def __init__(self, split: str, only: str | None = None) -> None:
        self._stream, self._only = _STREAMS[split], only
        self._generator = ThingGenerator()

    def draw(self, index: int) -> Framed:
        """Make shapes 2 index and 2 index + 1."""
        rng = np.random.default_rng([self._stream, index])
        name = self._only or str(
            rng.choice([*CHANCES, THING], p=[*CHANCES.values(), 1 - sum(CHANCES.values())])
        )
        if name == THING:
            things = [self._thing(2 * index + k, rng) for k in (0, 1)]
            return Framed((things[0], things[1]), KINDS.index("any"), (THING, THING))
        pieces = [self._piece(name, 2 * index + k, rng) for k in (0, 1)]
        return Framed((pieces[0], pieces[1]), KINDS.index("human"), (name, name))

    def _thing(self, number: int, rng: np.random.Generator) -> FloatArray:
        name = f"thing{TRAINING_THINGS[rng.integers(_THINGS)]:03d}"
        body = self._generator.draw(self._stream, number, template=name)
        template = self._generator.template(name)
        return _scanned(_drawn(body.vertices, template, rng)[0], rng)

    def _piece(self, name: str, number: int, rng: np.random.Generator) -> FloatArray:
        template = self._generator.template(f"human-{name}")
        body = self._generator.draw(self._stream, number, template=template.name)
        turn = upright_rotation(body.vertices, template)  # (3, 3)
        vertices = body.vertices @ turn.T  # (V, 3)
        points, rest = _drawn(vertices, template, rng)  # (N, 3), (N, 3)
        if name == "head":
            points = _headdress(points, rest, rng)
            if rng.random() < 0.4:
                points = _plinth(points, np.array([0.0, -1.0, 0.0]), rng)
        elif rng.random() < 0.4:
            outwards = vertices[-1] - vertices.mean(axis=0)  # (3,), the middle of a rim comes last
            points = _plinth(points, outwards / np.linalg.norm(outwards), rng)
        if rng.random() < (0.35 if name == "head" else 0.15):
            points = _cut(points, rng)
        if name in _TURNED_OVER:
            points = points * np.array([-1.0, -1.0, 1.0])
        return _scanned(points, rng)


def _drawn(
    vertices: FloatArray, template: Template, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Points (N, 3) on a shape, unevenly dense, and where they lie at rest."""
    density = draw_density(vertices, rng, contrast=float(rng.uniform(1.0, 3.0)))  # (V,)
    count = int(rng.integers(*_POINTS))
    sample = sample_surface(vertices, template.faces, count, rng, density=density)
    rest = vertices if template.rest is None else template.rest
    return (
        positions_of(sample, vertices, template.faces),
        positions_of(sample, rest, template.faces),
    )


def _scanned(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points (N, 3) of radius 0.5, displaced smoothly, and noisy."""
    centred = points - points.mean(axis=0)  # (N, 3)
    centred *= 0.5 / math.sqrt(float(np.square(centred).sum(axis=1).mean()))
    wobbly = add_wobble(centred, 0.012 * rng.random(), rng)
    return np.asarray(add_noise(wobbly, 0.004 * rng.random(), rng), dtype=np.float64)


def _headdress(points: FloatArray, rest: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Give a head hair, a bun, a hat or a collar: (N', 3)."""
    heights = rest[:, 1].max() - rest[:, 1]  # (N,)
    head = heights < _HEAD
    middle, here = rest[head].mean(axis=0), points[head].mean(axis=0)  # (3,)
    size = float(np.linalg.norm(points[head] - here, axis=1).mean())
    towards = (rest - middle) / np.linalg.norm(rest - middle, axis=1, keepdims=True)  # (N, 3)
    low = rng.uniform(-0.6, 0.3)  # hair may end at the neck or above the ears
    scalp = head & ((towards[:, 2] < 0.25) | (towards[:, 1] > 0.55)) & (towards[:, 1] > low)
    added = [points.copy()]
    if rng.random() < 0.7:
        out = (points - here) / np.linalg.norm(points - here, axis=1, keepdims=True)  # (N, 3)
        bumps = rng.normal(size=(24, 3))  # (b, 3)
        bumps /= np.linalg.norm(bumps, axis=1, keepdims=True)
        near = np.exp((out @ bumps.T - 1) / rng.uniform(0.02, 0.3))  # (N, b)
        waves = near @ rng.uniform(0.0, 1.0, 24) / np.maximum(near.sum(axis=1), 0.3)  # (N,)
        amount = size * (rng.uniform(0.0, 0.3) + rng.uniform(0.0, 0.4) * waves)  # (N,)
        added[0] += out * (amount * scalp)[:, None]
    if rng.random() < 0.2:  # a bun
        at = np.array([rng.normal(0, 0.3), rng.uniform(-0.6, 1.0), -rng.uniform(0.0, 1.0)])
        at = here + 1.15 * size * at / np.linalg.norm(at)
        added.append(at + rng.uniform(0.15, 0.5) * size * _ball(rng, 120))
    if rng.random() < 0.12:  # the brim of a hat
        angles, radii = rng.uniform(0, math.tau, 500), rng.uniform(1.0, rng.uniform(1.3, 2.0), 500)
        brim = np.stack(
            [np.cos(angles) * radii, 0.1 * rng.normal(size=500), np.sin(angles) * radii]
        )
        tilt = axis_rotation(_unit(rng), float(rng.uniform(-25, 25)))  # (3, 3)
        up = np.array([0.0, rng.uniform(0.2, 0.7) * size, 0.0])
        added.append(here + up + size * (brim.T * [1.0, 0.5, 1.0]) @ tilt.T)
    if rng.random() < 0.3:  # clothes, a beard, long hair
        for _ in range(rng.integers(1, 5)):
            on = points[~head] if (~head).any() else points
            centre = on[rng.integers(len(on))]
            blob = _ball(rng, 100) * rng.uniform(0.1, 0.5, 3) * size
            added.append(centre + blob)
    return np.concatenate(added)


def _plinth(points: FloatArray, outwards: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Add a plinth, a sleeve or a stump at the end of a piece: one or two prisms or cones."""
    along = points @ outwards  # (N,)
    end = np.quantile(along, rng.uniform(0.9, 1.0))
    low = points[along > np.quantile(along, 0.85)]  # (n, 3)
    middle = low.mean(axis=0) + outwards * (end - low.mean(axis=0) @ outwards)  # (3,)
    width = float(np.linalg.norm(low - low.mean(axis=0), axis=1).mean())
    across = np.linalg.svd(outwards[None])[2][1:]  # (2, 3)
    size = float(np.ptp(along))
    found, start = [points], 0.0
    for _ in range(rng.integers(1, 3)):
        height = size * rng.uniform(0.08, 0.5)
        radii = width * rng.uniform(0.5, 1.6, 2)  # at both ends
        count = int(len(points) * rng.uniform(0.1, 0.3))
        angles, share = rng.uniform(0, math.tau, count), rng.random(count)
        corners = rng.choice([0, 4, 6])
        rim = np.ones(count)
        if corners:  # a prism instead of a round column
            rim = 1 / np.cos(
                (angles + math.pi / corners) % (math.tau / corners) - math.pi / corners
            )
        radius = (radii[0] + (radii[1] - radii[0]) * share) * rim  # (n,)
        lid = rng.random(count) < 0.3
        radius = np.where(lid, radius * np.sqrt(rng.random(count)), radius)
        share = np.where(lid, 1.0, share)
        ring = np.stack([np.cos(angles), np.sin(angles)], axis=1) * radius[:, None]  # (n, 2)
        found.append(middle + ring @ across + np.outer(start + share * height, outwards))
        start += height
    return np.concatenate(found)


def _cut(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Cut off a side with a plane; what was cut lies flat on the plane, as a lid does."""
    normal = _unit(rng) + np.array([0.0, -0.4, -0.6])  # mostly the back, or the bottom
    normal /= np.linalg.norm(normal)
    depth = points @ normal  # (N,)
    level = np.quantile(depth, rng.uniform(0.6, 0.95))
    flat = points - np.maximum(depth - level, 0.0)[:, None] * normal
    return flat if rng.random() < 0.7 else points[depth < level]


def _ball(rng: np.random.Generator, count: int) -> FloatArray:
    directions = rng.normal(size=(count, 3))
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def _unit(rng: np.random.Generator) -> FloatArray:
    return _ball(rng, 1)[0]
