"""What a shape is like, in numbers that need no landmarks: to compare generated and real shapes.

Pose and build together: principal axes and distances between random points, relative to the
root-mean-square radius R of the surface. Build alone, nearly the same in every pose: geodesic
distances and thickness, relative to the square root of the area A. And how evenly 1024 points lie
when drawn from vertices or by area. Distributions are kept as quantile functions at `LEVELS`, so
that the mean absolute difference of two of them is their Wasserstein distance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from ltenet.data.sampling import positions_of, sample_surface, sample_vertices
from ltenet.data.surface_distances import LEVELS, even_sample, geodesics, systematic, thickness
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.normals import face_areas
from ltenet.shape import Shape

#: Points drawn for the spacing: what the model is given.
SPACING_POINTS = 1024

_SURFACE_POINTS = 4096
_DISTANCE_POINTS = 1024


class Spacing(NamedTuple):
    """Distances to the nearest other point of a sample, relative to the sample's own radius.

    Attributes
    ----------
    mean
        Their mean.
    variation
        Their standard deviation divided by their mean: 0 on a regular grid.
    """

    mean: float
    variation: float


class Measures(NamedTuple):
    """Measures of one shape; those that need faces are None for a cloud.

    Attributes
    ----------
    radius
        R, in the shape's unit.
    area
        A / R².
    axes
        (3,) standard deviations along the principal axes over R, largest first; their squares sum
        to 1.
    distances
        (Q,) quantiles of the distance between two random surface points, over R.
    geodesics
        (Q,) quantiles of the distance along the surface between two random points, over √A.
    thickness
        (Q,) quantiles of the way from a random surface point straight inwards to the other side,
        over √A.
    vertex_spacing, area_spacing
        Spacing of `SPACING_POINTS` points drawn from the vertices, and by area. None for a shape
        with fewer vertices.
    """

    radius: float
    area: float | None
    axes: FloatArray
    distances: FloatArray
    geodesics: FloatArray | None
    thickness: FloatArray | None
    vertex_spacing: Spacing | None
    area_spacing: Spacing | None


def measure(
    shape: Shape, rng: np.random.Generator, *, surface: FloatArray | None = None
) -> Measures:
    """Measure one shape.

    Parameters
    ----------
    shape
        A mesh, or a cloud; of a cloud, what needs faces is left out.
    rng
        Chooses points, rays and sources.
    surface
        (S, 3) points that lie evenly on the surface of a cloud, where there are such.
    """
    faces = None if shape.faces is None or len(shape.faces) == 0 else shape.faces
    if faces is not None:
        sample = even_sample(shape.points, faces, _SURFACE_POINTS, rng)
        points = positions_of(sample, shape.points, faces)  # (S, 3)
        drawn = sample_surface(shape.points, faces, SPACING_POINTS, rng)
        by_area = spacing(positions_of(drawn, shape.points, faces))
        area = float(face_areas(shape.points, faces).sum())
    else:
        points = shape.points if surface is None else surface  # (S, 3)
        area, by_area = 0.0, None
        if surface is not None and len(surface) >= SPACING_POINTS:
            by_area = spacing(rng.permutation(surface)[:SPACING_POINTS])
    by_vertex = None
    if len(shape) >= SPACING_POINTS:
        by_vertex = spacing(shape.points[sample_vertices(SPACING_POINTS, len(shape), rng)])
    radius, unit = rms_radius(points), math.sqrt(area)
    count = min(_DISTANCE_POINTS, len(points))
    spread_out = points[systematic(points, np.ones(len(points)), count, rng)]  # (D, 3)
    return Measures(
        radius=radius,
        area=None if faces is None else area / radius**2,
        axes=principal_axes(points) / radius,
        distances=pair_distances(spread_out) / radius,
        geodesics=None if faces is None else geodesics(shape.points, faces, rng) / unit,
        thickness=None if faces is None else thickness(shape.points, faces, rng) / unit,
        vertex_spacing=by_vertex,
        area_spacing=by_area,
    )


def rms_radius(points: FloatArray) -> float:
    """Root-mean-square distance of (N, 3) points to their mean."""
    return float(np.sqrt(np.square(points - points.mean(axis=0)).sum(axis=1).mean()))


def principal_axes(points: FloatArray) -> FloatArray:
    """(3,) standard deviations of (N, 3) points along their principal axes, largest first."""
    centred = points - points.mean(axis=0)  # (N, 3)
    values: FloatArray = np.linalg.eigvalsh(centred.T @ centred / len(points))[::-1]  # (3,)
    return np.sqrt(np.maximum(values, 0.0))


def pair_distances(points: FloatArray) -> FloatArray:
    """(Q,) quantiles of the distances between all pairs of (N, 3) points."""
    quantiles: FloatArray = np.quantile(pdist(points), LEVELS)
    return quantiles


def spacing(points: FloatArray) -> Spacing:
    """Spacing of (N, 3) points."""
    nearest = cKDTree(points).query(points, k=2)[0][:, 1] / rms_radius(points)  # (N,)
    mean = float(nearest.mean())
    return Spacing(mean, float(nearest.std()) / mean)
