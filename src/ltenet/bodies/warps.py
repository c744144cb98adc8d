"""Smooth changes of form of a whole shape: stretching, bending, twisting, waves and bumps.

Every warp takes (V, 3) vertices and returns moved ones in the same order, so that the
correspondence between two warps of one template stays exact. Bending and twisting are Barr's
deformations [Barr 1984].
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.bones import Floats
from ltenet.bodies.generated import GeneratedBody
from ltenet.geometry.normals import unit_vectors, vertex_normals

_WAVES = 5
#: Share of the forms with bumps, and how many they have.
_BUMPY, _BUMPS = 0.5, 12
#: Largest slope of the waves: below 1 no two points change places.
_STEEPEST = 0.6


def draw_warp(
    vertices: NDArray[np.floating], rng: np.random.Generator, *, strength: float = 1.0
) -> tuple[Floats, str]:
    """Warp (V, 3) vertices at random; also the names of what was done, such as "bend twist".

    Parameters
    ----------
    strength
        1 for changes as between individuals of a class: stretches by about 25 %, bends and twists
        up to 60 degrees end to end, waves of a tenth of the size.
    """
    warped, names = np.array(vertices, dtype=np.float64), []
    chances, amounts = rng.random(4), strength * rng.uniform(0.2, 1.0, 4)
    frame = random_frame(rng)  # (3, 3)
    if chances[0] < 0.6:
        warped = stretched(warped, frame, np.exp(amounts[0] * rng.normal(0.0, 0.25, 3)))
        names.append("stretch")
    if chances[1] < 0.4:
        warped = bent(warped, frame, 60.0 * amounts[1])
        names.append("bend")
    if chances[2] < 0.3:
        warped = twisted(warped, frame, 60.0 * amounts[2] * rng.choice([-1.0, 1.0]))
        names.append("twist")
    if chances[3] < 0.5:
        warped = waved(warped, 0.1 * amounts[3], rng)
        names.append("wave")
    return warped, " ".join(names)


def draw_form(
    vertices: NDArray[np.floating],
    faces: NDArray[np.integer],
    rng: np.random.Generator,
    *,
    strength: float,
) -> Floats:
    """Give a body (V, 3) a form that its generator does not make: a warp, and often bumps.

    Parameters
    ----------
    faces
        (F, 3), oriented outwards.
    strength
        Of the warp, see `draw_warp`; bumps have heights of up to 6 % of it, relative to the
        root-mean-square radius.
    """
    warped, _ = draw_warp(vertices, rng, strength=strength)
    if rng.random() < _BUMPY:
        offsets = warped - warped.mean(axis=0)  # (V, 3)
        radius = max(math.sqrt(float(np.square(offsets).sum(axis=1).mean())), 1e-12)
        height = 0.06 * strength * rng.random()
        heights = bump_heights(offsets / radius, rng, count=_BUMPS, height=height)  # (V,)
        warped += radius * heights[:, None] * vertex_normals(warped, faces)
    return warped


def formed(
    body: GeneratedBody,
    faces: NDArray[np.integer],
    rng: np.random.Generator,
    *,
    chance: float,
    strength: float,
) -> GeneratedBody:
    """Give a body another form with this chance, see `draw_form`."""
    if rng.random() >= chance:
        return body
    vertices = draw_form(body.vertices, faces, rng, strength=strength)  # (V, 3)
    return replace(body, vertices=vertices.astype(np.float32))


def random_frame(rng: np.random.Generator) -> Floats:
    """(3, 3) orthonormal rows, uniform over all frames."""
    upper, lower = np.linalg.qr(rng.standard_normal((3, 3)))
    frame: Floats = (upper * np.sign(np.diag(lower))).T  # (3, 3)
    return frame


def stretched(vertices: Floats, frame: Floats, factors: Floats) -> Floats:
    """Scale about the mean by (3,) factors along the rows of a frame."""
    middle = vertices.mean(axis=0)  # (3,)
    result: Floats = (vertices - middle) @ frame.T * factors @ frame + middle  # (V, 3)
    return result


def bent(vertices: Floats, frame: Floats, degrees: float) -> Floats:
    """Bend the first axis of a frame towards the second, by this angle between the two ends.

    The axis through the middle keeps its length: ``x -> (sin(k x) (1/k - y), 1/k - cos(k x)
    (1/k - y))`` with the curvature k.
    """
    if abs(degrees) < 1e-6:
        return np.array(vertices)
    middle = vertices.mean(axis=0)  # (3,)
    along, across, third = ((vertices - middle) @ frame.T).T  # (V,) each
    curvature = math.radians(degrees) / max(float(np.ptp(along)), 1e-12)
    # Nothing may reach the centre of the circle: it would fold over.
    curvature = min(curvature, 0.8 / max(float(across.max()), 1e-12))
    radius = 1.0 / curvature - across  # (V,)
    angle = curvature * along  # (V,)
    moved = np.stack([np.sin(angle) * radius, 1.0 / curvature - np.cos(angle) * radius, third], 1)
    result: Floats = moved @ frame + middle  # (V, 3)
    return result


def twisted(vertices: Floats, frame: Floats, degrees: float) -> Floats:
    """Twist about the first axis of a frame, by this angle between the two ends."""
    middle = vertices.mean(axis=0)  # (3,)
    along, first, second = ((vertices - middle) @ frame.T).T  # (V,) each
    angle = math.radians(degrees) * along / max(float(np.ptp(along)), 1e-12)  # (V,)
    cosine, sine = np.cos(angle), np.sin(angle)  # (V,) each
    moved = np.stack([along, cosine * first - sine * second, sine * first + cosine * second], 1)
    result: Floats = moved @ frame + middle  # (V, 3)
    return result


def waved(vertices: Floats, amplitude: float, rng: np.random.Generator) -> Floats:
    """Move vertices by a sum of long plane waves, a free warp of space that never folds.

    Parameters
    ----------
    amplitude
        Root-mean-square length of the displacement, relative to the root-mean-square radius;
        less where the waves would be too steep.
    """
    offsets = vertices - vertices.mean(axis=0)  # (V, 3)
    radius = max(math.sqrt(float(np.square(offsets).sum(axis=1).mean())), 1e-12)
    directions = unit_vectors(rng.standard_normal((_WAVES, 3)))  # (K, 3)
    lengths = radius * rng.uniform(1.5, 5.0, _WAVES)  # (K,)
    numbers = math.tau * directions / lengths[:, None]  # (K, 3)
    pushes = rng.standard_normal((_WAVES, 3)) * lengths[:, None]  # (K, 3), long waves push more
    phases = rng.uniform(0.0, math.tau, _WAVES)  # (K,)
    shift = np.sin(offsets @ numbers.T + phases) @ pushes  # (V, 3)
    spread = max(math.sqrt(float(np.square(shift).sum(axis=1).mean())), 1e-12)
    steep = float(np.linalg.norm(pushes, axis=1) @ np.linalg.norm(numbers, axis=1))
    result: Floats = vertices + min(amplitude * radius / spread, _STEEPEST / steep) * shift
    return result


def bump_heights(
    vertices: NDArray[np.floating], rng: np.random.Generator, *, count: int, height: float
) -> Floats:
    """(V,) heights of Gaussian bumps and dents around random vertices.

    Parameters
    ----------
    height
        Standard deviation of the height of a bump.
    """
    points = np.asarray(vertices, dtype=np.float64)  # (V, 3)
    centres = points[rng.integers(len(points), size=count)]  # (K, 3)
    heights = height * rng.standard_normal(count)  # (K,)
    # At least three times as wide as high: the surface does not overtake itself.
    widths = np.maximum(rng.uniform(0.06, 0.2, count), 3 * np.abs(heights))  # (K,)
    squares = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)  # (V, K)
    squares -= 2 * points @ centres.T
    result: Floats = np.exp(-squares / (2 * np.square(widths))) @ heights  # (V,)
    return result
