"""What a scanner or a remesher does to a surface: hidden sides, holes, density, slow drift.

Everything here answers with a mask, a density or moved points; the numbering of the shape stays.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import ConvexHull

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import vertex_normals
from ltenet.geometry.surface_graph import distances_along

BoolArray = NDArray[np.bool_]

# A pixel of the depth buffer is as wide as a typical edge; surfaces less than this many pixels
# behind the front one count as seen, or steep ones would hide themselves.
_DEPTH_SLACK = 3.0
_CAMERA = 10.0  # distance of a distant camera from a cloud, in radii of the cloud
_FLIP = 3.0  # exponent of the radius of the sphere that points are flipped about
_CURVATURE_RANGE = 8.0  # largest curvature over the median that counts, and its inverse
_WOBBLE_WAVES = 6


def visible_vertices(
    vertices: NDArray[np.floating], faces: NDArray[np.integer], towards: FloatArray
) -> BoolArray:
    """Which vertices a distant camera sees: they face it, and nothing is in front of them.

    An orthographic depth buffer of vertices and face centres, with pixels as wide as an edge.

    Parameters
    ----------
    vertices
        (V, 3) positions.
    faces
        (F, 3) oriented outwards.
    towards
        (3,) direction from the shape to the camera.

    Returns
    -------
    (V,)
    """
    ahead = _unit_direction(towards)  # (3,)
    points = np.asarray(vertices, dtype=np.float64)  # (V, 3)
    corners = points[faces]  # (F, 3, 3)
    edge = float(np.median(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)))
    across = np.cross(ahead, np.eye(3)[np.abs(ahead).argmin()])  # (3,)
    across /= np.linalg.norm(across)
    frame = np.stack([across, np.cross(ahead, across), ahead], axis=1)  # (3, 3)
    seen = np.concatenate([points, corners.mean(axis=1)]) @ frame  # (V + F, 3)
    pixels = np.floor((seen[:, :2] - seen[:, :2].min(axis=0)) / max(edge, 1e-12)).astype(np.int64)
    flat = pixels[:, 0] * (pixels[:, 1].max() + 1) + pixels[:, 1]  # (V + F,)
    nearest = np.full(int(flat.max()) + 1, -np.inf)
    np.maximum.at(nearest, flat, seen[:, 2])
    count = len(points)
    unhidden = seen[:count, 2] >= nearest[flat[:count]] - _DEPTH_SLACK * edge  # (V,)
    facing = facing_camera(points, faces, ahead) > 0.0  # (V,)
    visible: BoolArray = unhidden & facing  # (V,)
    return visible


def visible_points(points: NDArray[np.floating], towards: FloatArray) -> BoolArray:
    """(V,) which of (V, 3) points of a cloud a distant camera sees.

    Hidden point removal [Katz, Tal and Basri 2007]: points are flipped to the outside of a sphere
    around the camera, and those on the convex hull of the result are seen.
    """
    ahead = _unit_direction(towards)  # (3,)
    centred = np.asarray(points, dtype=np.float64) - np.mean(points, axis=0)  # (V, 3)
    size = float(np.linalg.norm(centred, axis=1).max())
    rays = centred - _CAMERA * size * ahead  # (V, 3), from the camera
    lengths = np.linalg.norm(rays, axis=1, keepdims=True)  # (V, 1)
    flipped = rays * (2 * 10.0**_FLIP * lengths.max() / lengths - 1)  # (V, 3)
    hull = ConvexHull(np.concatenate([flipped, np.zeros((1, 3))])).vertices
    visible = np.zeros(len(centred), dtype=bool)  # (V,)
    visible[hull[hull < len(centred)]] = True
    return visible


def facing_camera(
    vertices: NDArray[np.floating], faces: NDArray[np.integer], towards: FloatArray
) -> FloatArray:
    """(V,) cosine of the angle between normals and the direction (3,) to the camera."""
    normals = vertex_normals(np.asarray(vertices, dtype=np.float64), faces)  # (V, 3)
    cosines: FloatArray = normals @ _unit_direction(towards)  # (V,)
    return cosines


def _unit_direction(towards: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(towards))
    if not (math.isfinite(length) and length > 0.0):
        raise InputError(
            f"a view along {np.asarray(towards).tolist()}: got no direction, expected three finite "
            "numbers that are not all 0; try (0, 0, 1)"
        )
    unit: FloatArray = np.asarray(towards, dtype=np.float64) / length  # (3,)
    return unit


def discs(
    graph: csr_array, vertices: NDArray[np.floating], centres: IntArray, radii: FloatArray
) -> BoolArray:
    """(V,) True inside geodesic discs, measured along the edges.

    Parameters
    ----------
    graph
        (V, V) edges of the mesh.
    vertices
        (V, 3) positions.
    centres, radii
        (H,) vertices and lengths.
    """
    points = np.asarray(vertices, dtype=np.float64)  # (V, 3)
    reach = float(np.max(radii, initial=0.0))
    ways = distances_along(graph, points, centres, reach=reach)  # (V, H)
    return np.asarray((ways <= radii).any(axis=1))  # (V,)


def curvatures(vertices: NDArray[np.floating], faces: NDArray[np.integer]) -> FloatArray:
    """(V,) how fast the normal turns along the edges at each vertex; the median is 1.

    Clipped to a factor of 8 on both sides, so that a crease does not outweigh the rest.
    """
    points = np.asarray(vertices, dtype=np.float64)  # (V, 3)
    normals = vertex_normals(points, faces)  # (V, 3)
    # Every face sends an edge out of each of its corners: together they go all around a vertex.
    start, stop = faces.T.reshape(-1), faces[:, [1, 2, 0]].T.reshape(-1)  # (3 F,) each
    turn, length = np.zeros(len(start)), np.zeros(len(start))  # (3 F,) each
    for axis in range(3):
        turn += np.square(normals[start, axis] - normals[stop, axis])
        length += np.square(points[start, axis] - points[stop, axis])
    slope = np.sqrt(turn / np.maximum(length, 1e-24))  # (3 F,)
    sums = np.bincount(start, slope, len(points))  # (V,)
    mean = sums / np.maximum(np.bincount(start, minlength=len(points)), 1)  # (V,)
    middle = float(np.median(mean))
    if middle <= 0.0:
        return np.ones(len(points))
    relative: FloatArray = np.clip(mean / middle, 1 / _CURVATURE_RANGE, _CURVATURE_RANGE)
    return relative


def add_wobble(
    points: NDArray[np.floating], amplitude: float, rng: np.random.Generator
) -> FloatArray:
    """Copy of (N, 3) points displaced by a smooth random field, as drifting scanners do.

    The field is a sum of plane waves one half to two shapes long; `amplitude` is its
    root-mean-square length.
    """
    moved = np.array(points, dtype=np.float64)  # (N, 3)
    if amplitude <= 0.0:
        return moved
    radius = math.sqrt(float(np.square(moved - moved.mean(axis=0)).sum(axis=1).mean()))
    directions = rng.standard_normal((_WOBBLE_WAVES, 3))  # (K, 3)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = 2.0 * max(radius, 1e-12) * 2.0 ** rng.uniform(-1.0, 1.0, _WOBBLE_WAVES)  # (K,)
    phases = rng.uniform(0.0, math.tau, _WOBBLE_WAVES)  # (K,)
    pushes = rng.standard_normal((_WOBBLE_WAVES, 3))  # (K, 3)
    waves = np.sin(math.tau * moved @ (directions / lengths[:, None]).T + phases)  # (N, K)
    field = waves @ pushes  # (N, 3)
    spread = math.sqrt(float(np.square(field).sum(axis=1).mean()))
    moved += amplitude / max(spread, 1e-12) * field
    return moved
