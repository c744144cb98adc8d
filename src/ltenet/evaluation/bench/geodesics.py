"""Distances along a mesh, and errors measured with them."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from ltenet.errors import InputError
from ltenet.evaluation.optional import optional
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import face_areas
from ltenet.geometry.surface_graph import sparse_graph
from ltenet.shape import Shape


def geodesic_distances(shape: Shape, starts: IntArray, ends: IntArray) -> FloatArray:
    """(P,) distance along the surface from each of (P,) vertices to its (P,) other vertex.

    By the heat method (Crane, Weischedel and Wardetzky 2013), accurate to about one per cent.
    Vertices on parts of the mesh that are not connected are infinitely far apart.
    """
    if shape.faces is None:
        raise InputError(
            f"{shape.name}: got a cloud, expected a mesh: distances along a surface need faces; "
            "try whole meshes, or leave the geodesic error out"
        )
    edges = np.concatenate([shape.faces[:, [0, 1]], shape.faces[:, [1, 2]]])  # (E, 2)
    links = sparse_graph(np.ones(len(edges)), edges[:, 0], edges[:, 1], len(shape))
    part = connected_components(links, directed=False)[1]  # (V,)
    solver = optional("potpourri3d").MeshHeatMethodDistanceSolver(
        np.array(shape.points), np.array(shape.faces)
    )
    distances = np.full(len(starts), np.inf)  # (P,)
    for start in np.unique(starts):
        rows = np.flatnonzero((starts == start) & (part[ends] == part[start]))
        distances[rows] = solver.compute_distance(int(start))[ends[rows]]
    distances[starts == ends] = 0.0
    return distances


def geodesic_error(shape: Shape, predicted: IntArray, truth: IntArray) -> float:
    """Mean distance along the surface from true to predicted vertices, as % of sqrt(area).

    The usual unit for meshes; it depends on neither pose nor scale.
    """
    distances = geodesic_distances(shape, truth, predicted)  # (P,)
    assert shape.faces is not None
    area = float(face_areas(shape.points, shape.faces).sum())
    # Unconnected parts: the Euclidean distance is a lower bound.
    through = np.linalg.norm(shape.points[predicted] - shape.points[truth], axis=1)  # (P,)
    distances = np.where(np.isfinite(distances), distances, through)
    return float(100 * distances.mean() / np.sqrt(area))
