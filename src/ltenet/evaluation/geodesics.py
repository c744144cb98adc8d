"""Distances along a mesh, and errors measured with them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ltenet.errors import InputError
from ltenet.evaluation.optional import optional
from ltenet.shape import FloatArray, IntArray, Shape


def geodesic_distances(shape: Shape, starts: IntArray, ends: IntArray) -> FloatArray:
    """(P,) distance along the surface from each of (P,) vertices to its (P,) other vertex.

    By the heat method, which smooths a little: right to about a per cent. Vertices on parts of the
    mesh that are not connected are infinitely far apart.
    """
    if shape.faces is None:
        raise InputError(
            f"{shape.name}: a cloud came; distances along a surface need faces; "
            "use whole meshes, or leave the geodesic error out"
        )
    edges = np.concatenate([shape.faces[:, [0, 1]], shape.faces[:, [1, 2]]])  # (E, 2)
    links = coo_array((np.ones(len(edges)), edges.T), shape=(len(shape), len(shape)))
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

    The usual unit of meshes: it does not depend on how the target stands or how large it is.
    """
    distances = geodesic_distances(shape, truth, predicted)  # (P,)
    assert shape.faces is not None
    corners = shape.points[shape.faces]  # (F, 3, 3)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # (F, 3)
    area = float(np.linalg.norm(normals, axis=1).sum() / 2)
    # Where no way leads, the way through the air is the least that can be said.
    through = np.linalg.norm(shape.points[predicted] - shape.points[truth], axis=1)  # (P,)
    distances = np.where(np.isfinite(distances), distances, through)
    return float(100 * distances.mean() / np.sqrt(area))
