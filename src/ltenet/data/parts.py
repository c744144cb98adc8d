"""Which part of a shape is left: behind a plane, between holes, in view of a camera, one limb.

Training (`drawn_side`) and benchmarks (`partial_pairs`) draw with the same functions. All of them
answer with a mask over the vertices; the numbering of the shape stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltenet.data.augmentation import cut_region
from ltenet.data.scans import discs, facing_camera, visible_points, visible_vertices
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.cloud_normals import cloud_normals
from ltenet.geometry.normals import vertex_areas
from ltenet.geometry.surface_graph import cloud_graph, distances_along, mesh_graph
from ltenet.shape import Shape

BoolArray = NDArray[np.bool_]

PartKind = Literal["cut", "holes", "view", "limb"]

#: Least and largest share of the surface that a plane cuts off.
CUT = (0.2, 0.6)
#: Number of holes, and the least and largest share of the surface that one of them takes away.
HOLES, HOLE_AREA = 20, (0.005, 0.03)
#: Least and largest share of the surface around an end of a shape that makes a limb.
LIMB = (0.08, 0.25)
#: Regions of templates that count as limbs, by the beginnings of their names.
LIMBS = ("arm", "head", "lower")
#: Standard deviation of the depth that a camera measures, relative to the diameter of the shape.
DEPTH_NOISE = 0.003

_ENDS = 5  # ends of a body around which a limb may be: hands, feet and head
_LEVEL_VIEWS = 0.6  # cameras look less often from above and below


class Part(NamedTuple):
    """What is left of a shape.

    Attributes
    ----------
    kept
        (V,) vertices that are left.
    density
        (V,) chances of the vertices to be drawn; None if all are alike.
    towards
        (3,) unit vector to the camera, along which its noise displaces points; None without one.
    """

    kept: BoolArray
    density: FloatArray | None = None
    towards: FloatArray | None = None


def draw_part(
    kind: PartKind,
    shape: Shape,
    rng: np.random.Generator,
    *,
    regions: Mapping[str, BoolArray] | None = None,
) -> Part:
    """Draw what is left of a whole shape.

    Parameters
    ----------
    kind
        "cut": a random plane cuts off 20 to 60 % of the surface. "holes": 20 geodesic discs of 0.5
        to 3 % of the surface each are missing. "view": what one distant camera sees, the denser the
        more squarely it faces the camera. "limb": one arm, head and shoulders, or the lower body,
        if `regions` has them; else 8 to 25 % of the surface around one of its ends.
    shape
        A mesh, or a cloud: then neighbours in space stand for edges.
    rng
        Source of randomness.
    regions
        (V,) masks of named regions.
    """
    if kind == "cut":
        return Part(_cut(shape, rng))
    if kind == "holes":
        return Part(_without_holes(shape, rng))
    if kind == "view":
        return _view(shape, rng)
    named = [mask for name, mask in (regions or {}).items() if name.startswith(LIMBS)]
    if named:
        return Part(named[int(rng.integers(len(named)))])
    return Part(_around_an_end(shape, rng))


def hole_mask(
    graph: csr_array,
    vertices: NDArray[np.floating],
    area: float,
    shares: FloatArray,
    rng: np.random.Generator,
) -> BoolArray:
    """(V,) True in geodesic discs around random vertices.

    Parameters
    ----------
    graph
        (V, V) edges.
    vertices
        (V, 3) positions.
    area
        Of the whole surface.
    shares
        (H,) share of the surface that each disc would take away if it were flat.
    rng
        Chooses the centres.
    """
    radii = np.sqrt(shares * area / math.pi)  # (H,)
    centres = rng.integers(len(vertices), size=len(shares))  # (H,)
    return discs(graph, vertices, centres, radii)


def view_direction(direction: FloatArray) -> FloatArray:
    """(3,) from the shape to a camera, given (3,) in any direction: flatter, not of unit length."""
    return direction * (1.0, _LEVEL_VIEWS, 1.0)


def _cut(shape: Shape, rng: np.random.Generator) -> BoolArray:
    low, high = CUT
    share, direction = low + (high - low) * rng.random(), rng.standard_normal(3)  # (3,)
    areas = _areas(shape)  # (V,)
    # A share of the surface, not of the vertices: they crowd in hands and faces.
    spread = shape.points[rng.choice(len(areas), 4096, p=areas / areas.sum())]  # (S, 3)
    return cut_region(direction, spread, share).keeps(shape.points)


def _without_holes(shape: Shape, rng: np.random.Generator) -> BoolArray:
    low, high = HOLE_AREA
    shares = low * (high / low) ** rng.random(HOLES)  # (H,)
    return ~hole_mask(_graph(shape), shape.points, float(_areas(shape).sum()), shares, rng)


def _view(shape: Shape, rng: np.random.Generator) -> Part:
    towards = view_direction(rng.standard_normal(3))  # (3,)
    towards /= np.linalg.norm(towards)
    if shape.faces is None:
        kept = visible_points(shape.points, towards)  # (V,)
        # Which way a normal points is not known; those that are seen look at the camera.
        facing = np.abs(cloud_normals(shape.points) @ towards)  # (V,)
    else:
        kept = visible_vertices(shape.points, shape.faces, towards)  # (V,)
        facing = facing_camera(shape.points, shape.faces, towards)  # (V,)
    # A camera has as many pixels on a patch as its area seen from there.
    density = np.maximum(facing, 0.02) * _areas(shape)  # (V,)
    return Part(kept, density, towards)


def _around_an_end(shape: Shape, rng: np.random.Generator) -> BoolArray:
    """(V,) the vertices nearest along the surface to one of the ends of a shape."""
    low, high = LIMB
    graph, areas = _graph(shape), _areas(shape)
    middle = int(np.argmin(np.square(shape.points - shape.points.mean(axis=0)).sum(axis=1)))
    ends = _ends(graph, shape.points, middle)  # (E,)
    end, share = int(rng.integers(len(ends))), low + (high - low) * rng.random()
    ways = distances_along(graph, shape.points, ends[end : end + 1])[:, 0]  # (V,)
    order = np.argsort(ways, kind="stable")  # (V,)
    inside = np.cumsum(areas[order]) <= share * areas.sum()  # (V,)
    kept = np.zeros(len(shape), dtype=bool)  # (V,)
    kept[order[inside]] = True
    return kept


def _ends(graph: csr_array, points: FloatArray, start: int) -> IntArray:
    """(E,) vertices far from `start` and from each other along the surface, the farthest first."""
    nearest = distances_along(graph, points, np.array([start]))[:, 0]  # (V,)
    nearest[~np.isfinite(nearest)] = 0.0
    ends: list[int] = []
    for _ in range(_ENDS):
        ends.append(int(nearest.argmax()))
        ways = distances_along(graph, points, np.array(ends[-1:]))[:, 0]  # (V,)
        nearest = np.minimum(nearest, ways)
    return np.array(ends)


def _areas(shape: Shape) -> FloatArray:
    """(V,) surface around each vertex; of clouds, the square of the spacing."""
    if shape.faces is not None:
        return vertex_areas(shape.points, shape.faces)
    graph = _graph(shape).tocoo()
    lengths = np.linalg.norm(shape.points[graph.row] - shape.points[graph.col], axis=1)  # (E,)
    count = np.maximum(np.bincount(graph.row, minlength=len(shape)), 1)  # (V,)
    squares: FloatArray = np.square(np.bincount(graph.row, lengths, len(shape)) / count)  # (V,)
    return np.maximum(squares, 1e-30)


def _graph(shape: Shape) -> csr_array:
    """(V, V) edges of a mesh, or between neighbours in a cloud."""
    if shape.faces is not None:
        return mesh_graph(shape.faces, len(shape))
    return cloud_graph(shape.points)
