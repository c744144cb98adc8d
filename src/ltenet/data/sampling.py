"""Points drawn from a shape: some of its vertices, or positions on its faces in proportion to area.

A surface sample remembers face and barycentric coordinates instead of positions, so that the same
points can be found on every shape with the same triangulation: that is how the truth survives
sampling by area.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import face_areas

# The bumps of an uneven density are this wide, relative to the root-mean-square radius.
_BUMP_WIDTHS = (0.3, 1.0)


class SurfaceSample(NamedTuple):
    """Positions on a triangulation: point n is the weighted mean of the corners of its face.

    Attributes
    ----------
    faces
        (N,) rows of the array of faces.
    barycentric
        (N, 3) weights of the three corners; not negative, each row sums to 1.
    """

    faces: IntArray
    barycentric: FloatArray


class Anchors(NamedTuple):
    """Vertex and surface samples in one form: point n is the weighted mean of three vertices.

    Attributes
    ----------
    corners
        (N, 3) vertices; a point at a vertex has the same one thrice.
    weights
        (N, 3) their weights, each row sums to 1.
    """

    corners: NDArray[np.integer]
    weights: FloatArray

    @classmethod
    def at_vertices(cls, vertices: IntArray) -> Anchors:
        """Anchor points at (N,) vertices."""
        first = np.broadcast_to(np.array([1.0, 0.0, 0.0]), (len(vertices), 3))  # (N, 3)
        return cls(np.repeat(vertices[:, None], 3, axis=1), first)

    def on(self, vertices: NDArray[np.floating]) -> FloatArray:
        """(N, 3) positions on the shape with these (V, 3) vertices."""
        # Corner by corner: three plain products beat one einsum of (N, 3) with (N, 3, 3).
        terms = (self.weights[:, k, None] * vertices[self.corners[:, k]] for k in range(3))
        first, second, third = terms  # (N, 3) each
        positions: FloatArray = first + second + third  # (N, 3)
        return positions

    def through(self, vertex_map: NDArray[np.integer]) -> Anchors:
        """Anchor points at the images of the corners under a (V,) map of the vertices."""
        return self._replace(corners=vertex_map[self.corners])  # (N, 3)

    def inside(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(N,) True where all three corners are among the (V,) kept vertices."""
        return faces_inside(self.corners, kept)  # (N,)

    def take(self, rows: NDArray[np.integer]) -> Anchors:
        """Keep the points at `rows`, in that order."""
        return Anchors(self.corners[rows], self.weights[rows])


def sample_vertices(
    count: int,
    available: int | IntArray,
    rng: np.random.Generator,
    *,
    weights: NDArray[np.floating] | None = None,
) -> IntArray:
    """Draw vertices without replacement, in random order.

    Parameters
    ----------
    count
        How many, N.
    available
        (A,) vertex indices to choose from, or their number for all of 0 .. A - 1.
    rng
        Source of randomness.
    weights
        (A,) relative chance of each to be drawn next; 0 is never drawn. Uniform if left out.

    Returns
    -------
    (N,) vertex indices, all different if `available` are.

    Raises
    ------
    InputError
        If fewer than `count` vertices can be drawn.
    """
    candidates = np.arange(available) if isinstance(available, int) else np.asarray(available)
    _check_count(count)
    if weights is None:
        _check_enough(count, len(candidates))
        return candidates[rng.permutation(len(candidates))[:count]].astype(np.int64)  # (N,)
    chances = _checked_weights(weights, len(candidates), "candidate vertices")  # (A,)
    possible = np.flatnonzero(chances)  # (A',)
    _check_enough(count, len(possible))
    # Exponential race: the order of arrival of clocks with rates w is successive drawing by w.
    arrival = rng.standard_exponential(len(candidates))[possible] / chances[possible]  # (A',)
    return candidates[possible[np.argsort(arrival)[:count]]].astype(np.int64)  # (N,)


def sample_surface(
    vertices: NDArray[np.floating],
    faces: NDArray[np.integer],
    count: int,
    rng: np.random.Generator,
    *,
    density: NDArray[np.floating] | None = None,
) -> SurfaceSample:
    """Draw independent points on a surface, uniformly by area or by area times a density.

    Parameters
    ----------
    vertices
        (V, 3) positions.
    faces
        (F, 3) corners of the triangles; those without area are never hit.
    count
        How many points, N.
    rng
        Source of randomness.
    density
        (V,) relative density at the vertices; a face counts with the mean of its corners.
    """
    return sample_faces(face_masses(vertices, faces, density=density), count, rng)


def sample_faces(
    masses: NDArray[np.floating], count: int, rng: np.random.Generator
) -> SurfaceSample:
    """Draw points on faces in proportion to their (F,) masses, evenly inside each face."""
    _check_count(count)
    cumulative = np.cumsum(masses, dtype=np.float64)  # (F,)
    total = float(cumulative[-1]) if len(cumulative) else 0.0
    if not (np.isfinite(total) and total > 0.0):
        raise InputError(
            f"got {len(masses)} faces with a total area (times density) of {total}, expected a "
            "positive, finite area for sampling by area; try sampling by vertex"
        )
    # "right" skips faces without area; the minimum guards the last step against rounding.
    last = np.searchsorted(cumulative, total, side="left")
    hit = np.searchsorted(cumulative, rng.random(count) * total, side="right")  # (N,)
    u, v = rng.random((2, count))  # (N,), (N,)
    outside = u + v > 1.0  # the far half of the parallelogram folds back onto the triangle
    u, v = np.where(outside, 1.0 - u, u), np.where(outside, 1.0 - v, v)
    barycentric = np.stack([np.maximum(1.0 - u - v, 0.0), u, v], axis=1)  # (N, 3)
    return SurfaceSample(np.minimum(hit, last).astype(np.int64), barycentric)


def positions_of(
    sample: SurfaceSample, vertices: NDArray[np.floating], faces: NDArray[np.integer]
) -> FloatArray:
    """Positions of the sample on one shape of its triangulation.

    Parameters
    ----------
    sample
        N points, drawn on this or on another shape.
    vertices
        (V, 3) positions of the vertices of this shape.
    faces
        (F, 3) the triangulation, the same as when the sample was drawn.

    Returns
    -------
    (N, 3)
    """
    if len(sample.faces) and int(sample.faces.max()) >= len(faces):
        raise InputError(
            f"got a sample on face {int(sample.faces.max())} for a shape with {len(faces)} faces, "
            "expected the triangulation it was drawn on; try the faces of that template"
        )
    return Anchors(faces[sample.faces], sample.barycentric).on(vertices)  # (N, 3)


def faces_inside(faces: NDArray[np.integer], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(F,) True for faces (F, 3) whose three corners are among the (V,) kept vertices."""
    inside: NDArray[np.bool_] = kept[faces[:, 0]] & kept[faces[:, 1]] & kept[faces[:, 2]]  # (F,)
    return inside


def face_masses(
    vertices: NDArray[np.floating],
    faces: NDArray[np.integer],
    *,
    density: NDArray[np.floating] | None = None,
) -> NDArray[np.floating]:
    """(F,) areas times the mean density (V,) of the corners, see `sample_surface`."""
    areas = face_areas(vertices, faces)  # (F,)
    if density is None:
        return areas
    chances = _checked_weights(density, len(vertices), "vertices")  # (V,)
    first, second, third = (chances[faces[:, k]] for k in range(3))  # (F,) each
    masses: FloatArray = areas * (first + second + third) / 3.0  # (F,)
    return masses


def draw_density(
    vertices: NDArray[np.floating], rng: np.random.Generator, *, contrast: float, bumps: int = 5
) -> FloatArray:
    """Smooth random density over a surface, as scanners and hand-made meshes have it.

    The logarithm of the density is a sum of Gaussian bumps, some up and some down, around random
    vertices: ``contrast ** f(x)`` with f scaled to run from 0 to 1 over the shape.

    Parameters
    ----------
    vertices
        (V, 3) positions.
    rng
        Source of randomness.
    contrast
        Highest density divided by the lowest, at least 1.
    bumps
        How many.

    Returns
    -------
    (V,) from 1 to `contrast`.
    """
    if contrast < 1.0:
        raise InputError(
            f"got a density contrast of {contrast}, expected highest over lowest, at least 1; try "
            "1 for an even density"
        )
    # One row per coordinate and per bump: contiguous rows are three times faster here.
    points = np.ascontiguousarray(vertices.T, dtype=np.float32)  # (3, V)
    points = points - points.mean(axis=1, keepdims=True)  # (3, V)
    square = np.einsum("dv,dv->v", points, points)  # (V,)
    radius = math.sqrt(float(square.mean()))
    centres = points[:, rng.integers(points.shape[1], size=bumps)].T  # (K, 3)
    widths = radius * rng.uniform(*_BUMP_WIDTHS, size=(bumps, 1)).astype(np.float32)  # (K, 1)
    heights = rng.uniform(-1.0, 1.0, size=bumps).astype(np.float32)  # (K,)
    if radius == 0.0:
        return np.ones(points.shape[1])  # (V,)
    distance = square - 2.0 * centres @ points + np.square(centres).sum(axis=1)[:, None]  # (K, V)
    field = heights @ np.exp(distance / (-2.0 * widths**2))  # (V,)
    low, span = float(field.min()), float(np.ptp(field))
    slope = math.log(contrast) / span if span > 0.0 else 0.0
    density: FloatArray = np.exp(slope * (field - low)).astype(np.float64)  # (V,)
    return density


def _check_count(count: int) -> None:
    if count < 1:
        raise InputError(
            f"got a count of {count} points, expected at least 1; try a positive number"
        )


def _check_enough(count: int, available: int) -> None:
    if available < count:
        raise InputError(
            f"got {available} vertices for {count} points, expected at least as many for sampling "
            "without replacement; try fewer points, or sampling by area"
        )


def _checked_weights(weights: NDArray[np.floating], count: int, what: str) -> FloatArray:
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (count,) or not (np.isfinite(checked) & (checked >= 0.0)).all():
        raise InputError(
            f"got weights of shape {checked.shape} for {count} {what}, expected one finite, "
            "non-negative number for each; try 0 for what must not be drawn"
        )
    return checked
