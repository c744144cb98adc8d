"""Distances along a surface and through it, and the even samples that both start from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ltenet.data.sampling import SurfaceSample, positions_of, sample_faces
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import face_areas, face_normals, vertex_areas
from ltenet.geometry.surface_graph import distances_along, mesh_graph

#: Levels of the quantile functions: the middles of 64 equal parts.
LEVELS: FloatArray = (np.arange(64) + 0.5) / 64

_RAYS = 384
_SOURCES = 64


def systematic(
    places: FloatArray, masses: NDArray[np.floating], count: int, rng: np.random.Generator
) -> IntArray:
    """(N,) of the things at (M, 3) places, in proportion to (M,) masses and spread in space.

    The leaves of a tree are in an order in which neighbours in the row are neighbours in space;
    steps of equal mass along that row reach every region.
    """
    order = cKDTree(places, leafsize=1).indices.astype(np.int64)  # (M,)
    cumulative = np.cumsum(masses[order], dtype=np.float64)  # (M,)
    steps = (np.arange(count) + rng.random()) / count * cumulative[-1]  # (N,)
    found = np.searchsorted(cumulative, steps, side="right")  # (N,)
    chosen: IntArray = order[np.minimum(found, len(order) - 1)]  # (N,)
    return chosen


def even_sample(
    vertices: FloatArray, faces: IntArray, count: int, rng: np.random.Generator
) -> SurfaceSample:
    """Draw points by area as `sample_surface` does, but so that every region gets its share.

    Measures of such a sample vary much less from draw to draw.
    """
    centres = vertices[faces].mean(axis=1)  # (F, 3)
    hit = systematic(centres, face_areas(vertices, faces), count, rng)  # (N,)
    inside = sample_faces(np.ones(1), count, rng)
    return SurfaceSample(hit, inside.barycentric)


def geodesics(
    vertices: FloatArray,
    faces: IntArray,
    rng: np.random.Generator,
    *,
    sources: int = _SOURCES,
) -> FloatArray:
    """(Q,) quantiles of the distance along a surface between two of its points.

    The shortest path runs over edges and over the diagonals of neighbouring triangles: a few per
    cent too long. Parts that are not connected are not compared.

    Parameters
    ----------
    vertices
        (V, 3) positions.
    faces
        (F, 3) corners.
    rng
        Chooses the sources.
    sources
        From how many vertices the distances start; they are spread evenly by area.
    """
    masses = vertex_areas(vertices, faces)  # (V,)
    graph = mesh_graph(faces, len(vertices), diagonals=True)
    chosen = systematic(vertices, masses, sources, rng)  # (S,)
    distances = distances_along(graph, vertices, chosen)  # (V, S)
    reached = np.isfinite(distances)  # (V, S)
    weights = np.broadcast_to(masses[:, None], distances.shape)[reached]
    return _weighted_quantiles(distances[reached], weights)


def thickness(
    vertices: FloatArray, faces: IntArray, rng: np.random.Generator, *, rays: int = _RAYS
) -> FloatArray:
    """(Q,) quantiles of the way through a closed surface, straight inwards from random points.

    Rays that leave through a hole do not count. Zeros if none ends on the surface.

    Parameters
    ----------
    vertices
        (V, 3) positions.
    faces
        (F, 3) corners, all oriented outwards or all inwards.
    rng
        Chooses the points.
    rays
        How many points.
    """
    first, second, third = (vertices[faces[:, k]] for k in range(3))  # (F, 3) each
    normals = face_normals(vertices, faces)  # (F, 3)
    if float(np.einsum("fd,fd->", normals, first)) < 0.0:  # six times the volume
        normals, second, third = -normals, third, second
    sample = even_sample(vertices, faces, rays, rng)
    origins = positions_of(sample, vertices, faces)  # (R, 3)
    inwards = -normals[sample.faces]  # (R, 3)
    inwards /= np.linalg.norm(inwards, axis=1, keepdims=True)
    lengths = np.concatenate(
        [
            _way_through(origins[rows], inwards[rows], first, second, third, normals)
            for rows in np.array_split(np.arange(rays), max(1, rays * len(faces) // 2_000_000))
        ]
    )  # (R,)
    hit = lengths[np.isfinite(lengths)]
    quantiles: FloatArray = np.quantile(hit, LEVELS) if len(hit) else np.zeros(len(LEVELS))
    return quantiles


def _way_through(
    origins: FloatArray,
    directions: FloatArray,
    first: FloatArray,
    second: FloatArray,
    third: FloatArray,
    normals: FloatArray,
) -> FloatArray:
    """(R,) distance to the nearest triangle through which a ray leaves; infinite without one."""
    moments = np.cross(origins, directions)  # (R, 3)
    facing = directions @ normals.T  # (R, F) positive where the ray leaves
    inside = facing > 0.0  # (R, F)
    # A line passes a triangle inside its edges if it goes round all three the same way (Plücker).
    for start, end in ((first, second), (second, third), (third, first)):
        around = directions @ np.cross(start, end).T + moments @ (end - start).T  # (R, F)
        inside &= around >= 0.0
    offsets = np.einsum("fd,fd->f", normals, first)[None] - origins @ normals.T  # (R, F)
    along = np.full(facing.shape, np.inf)  # (R, F)
    np.divide(offsets, facing, out=along, where=inside)
    # The triangle of the origin itself is entered, not left; this guards its neighbours.
    along[along <= 1e-9] = np.inf
    nearest: FloatArray = along.min(axis=1)  # (R,)
    return nearest


def _weighted_quantiles(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(Q,) quantiles of values that count with their weights."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    middles = (cumulative - 0.5 * weights[order]) / cumulative[-1]
    quantiles: FloatArray = np.interp(LEVELS, middles, values[order])
    return quantiles
