"""The template of a thing: its skeleton, skinned by a smooth surface and meshed once.

Everything follows from one number. The surface is found on a grid by surface nets, its vertices
are pulled onto it by Newton's method and spread evenly along it, and skinning weights follow from
the distances to the bones. On a mirrored skeleton the grid is mirrored too, so that every vertex
has its partner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from ltenet.bodies.bones import Floats, Rig, generations, make_build
from ltenet.bodies.generated import Template, part_sizes
from ltenet.bodies.thing_fields import bone_distances, field
from ltenet.bodies.thing_growth import draw_skeleton, draw_symmetry
from ltenet.bodies.thing_skeletons import Skeleton, Symmetry
from ltenet.errors import InputError
from ltenet.geometry.arrays import IntArray
from ltenet.geometry.normals import vertex_normals
from ltenet.geometry.surface_graph import mesh_graph
from ltenet.geometry.surface_nets import surface_net
from ltenet.shape import CANONICAL_RADIUS

_MIRROR = np.array([-1.0, 1.0, 1.0])
#: Stream of the templates, apart from those of the bodies.
_STREAM = 7_919
_VERTICES = 2000.0  # about so many
_THINNEST = 0.9  # radius and half thickness in cells of the grid
_MARGIN = 3  # cells around the bones' own extent
_LEAST_KEPT = 0.97  # share of the vertices that must hang together
_LEAST, _MOST = 600, 6000  # vertices of a template
_SETTLING = 3


class ThingRig(NamedTuple):
    """A rig with what posing a thing needs besides.

    Attributes
    ----------
    rig
        Bones, weights and the template; its one build is named after the symmetry.
    skeleton
        The bones at rest, in the units of the template.
    normals
        (V, 3) of the vertices at rest.
    """

    rig: Rig
    skeleton: Skeleton
    normals: Floats


def thing_symmetry(number: int) -> Symmetry:
    """Symmetry of the template with this number, without building it."""
    return draw_symmetry(np.random.default_rng([_STREAM, number]))


def make_thing(number: int, name: str) -> ThingRig:
    """Build the template with this number; skeletons that fall apart as a mesh are drawn again."""
    symmetry = thing_symmetry(number)
    for attempt in range(1, 100):  # from 1: numpy pads short seeds with zeros
        skeleton = draw_skeleton(np.random.default_rng([_STREAM, number, attempt]), symmetry)
        skeleton, cell = _meshable(skeleton)
        softness = float(np.clip(0.25 * np.median(skeleton.radii), 0.012, 0.04))
        found = _meshed(skeleton, cell, softness)
        if found is not None:
            return _rigged(name, skeleton, *found)
    raise InputError(
        f"got no skeleton of template {number} that gives a mesh, expected one in 100 tries; try "
        "another number"
    )


def _meshable(skeleton: Skeleton) -> tuple[Skeleton, float]:
    """Choose the cell for about the same number of vertices, and thicken what it would lose."""
    lengths = np.linalg.norm(skeleton.tails - skeleton.heads, axis=1)  # (J,)
    girth = 2 * np.pi * skeleton.radii.mean(axis=1) / np.sqrt(skeleton.flatness)  # (J,)
    area = float((girth * (lengths + skeleton.radii.mean(axis=1))).sum())
    cell = float(np.clip(np.sqrt(1.5 * area / _VERTICES), 0.022, 0.045))
    radii = np.maximum(skeleton.radii, 1.2 * _THINNEST * cell)  # (J, 2)
    flatness = np.clip(skeleton.flatness, 1.0, radii.min(axis=1) / (_THINNEST * cell))  # (J,)
    rings = tuple(
        ring._replace(thickness=max(ring.thickness, _THINNEST * cell)) for ring in skeleton.rings
    )
    return replace(skeleton, radii=radii, flatness=flatness, rings=rings), cell


def _meshed(skeleton: Skeleton, cell: float, softness: float) -> tuple[Floats, IntArray] | None:
    """Vertices and faces, None if the surface falls apart or has an unusual number of vertices."""
    reach = skeleton.radii.max(axis=1, keepdims=True)  # (J, 1)
    ends = [skeleton.heads - reach, skeleton.heads + reach, skeleton.tails - reach]
    ends.append(skeleton.tails + reach)
    ends += [
        ring.centre[None] + s * (ring.radius + ring.thickness)
        for ring in skeleton.rings
        for s in (-1, 1)
    ]
    corners = np.concatenate(ends)  # (E, 3)
    low, high = corners.min(axis=0), corners.max(axis=0)  # (3,) each
    half = np.maximum(-low[0], high[0])  # mirrored about x = 0, which halves a cell
    counts = np.ceil((high - low) / cell).astype(int) + 2 * _MARGIN  # (3,)
    counts[0] = 2 * (int(np.ceil(half / cell)) + _MARGIN)
    origin = low - _MARGIN * cell  # (3,)
    origin[0] = -0.5 * (counts[0] - 1) * cell
    axes = [origin[axis] + cell * np.arange(counts[axis]) for axis in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)  # (X Y Z, 3)
    values = field(skeleton, grid, softness=softness).reshape(counts)  # (X, Y, Z)
    if not (values < 0).any():
        return None
    vertices, faces = surface_net(values, origin, cell)
    graph = mesh_graph(faces, len(vertices))
    _, labels = csgraph.connected_components(graph, directed=False)
    largest = int(np.bincount(labels).argmax())
    kept = labels == largest  # (V,)
    if kept.mean() < _LEAST_KEPT or not _LEAST <= kept.sum() <= _MOST:
        return None
    place = np.cumsum(kept) - 1  # (V,)
    faces = place[faces[kept[faces[:, 0]]]]
    return _settled(skeleton, vertices[kept], faces, softness), faces


def _settled(skeleton: Skeleton, vertices: Floats, faces: IntArray, softness: float) -> Floats:
    """Spread vertices along the surface and pull them back onto it."""
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    both = np.concatenate([edges, edges[:, ::-1]])  # (2 E, 2)
    degree = np.bincount(both[:, 0], minlength=len(vertices))  # (V,)
    step = 1e-4
    for _ in range(_SETTLING):
        sums = [np.bincount(both[:, 0], axis[both[:, 1]], len(vertices)) for axis in vertices.T]
        middles = np.stack(sums, axis=1) / degree[:, None]  # (V, 3)
        normals = vertex_normals(vertices, faces)  # (V, 3)
        pull = 0.5 * (middles - vertices)  # (V, 3)
        vertices = vertices + pull - (pull * normals).sum(axis=1, keepdims=True) * normals
        shifts = np.concatenate([np.zeros((1, 3)), step * np.eye(3)])  # (4, 3)
        tried = (vertices[None] + shifts[:, None]).reshape(-1, 3)  # (4 V, 3)
        value, *ahead = field(skeleton, tried, softness=softness).reshape(4, -1)  # (V,) each
        slope = (np.stack(ahead, axis=1) - value[:, None]) / step  # (V, 3)
        square = np.maximum(np.square(slope).sum(axis=1), 0.25)  # (V,)
        vertices = vertices - (value / square).clip(-0.02, 0.02)[:, None] * slope
    return vertices


def _rigged(name: str, skeleton: Skeleton, vertices: Floats, faces: IntArray) -> ThingRig:
    """Rig of a mesh, scaled to the canonical radius about its middle."""
    mirror = _mirror(skeleton, vertices)  # (V,)
    if skeleton.symmetry != "free":
        vertices = 0.5 * (vertices + vertices[mirror] * _MIRROR)  # exact, beyond rounding
    middle = vertices.mean(axis=0) * (0.0, 1.0, 1.0)  # (3,)
    radius = np.sqrt(np.square(vertices - middle).sum(axis=1).mean())
    scale = CANONICAL_RADIUS / float(radius)
    weights = _weights(skeleton, vertices)  # (J, V)
    rest = ((vertices - middle) * scale).astype(np.float32)  # (V, 3)
    heads, tails = ((ends - middle) * scale for ends in (skeleton.heads, skeleton.tails))
    template = Template(
        name=name,
        faces=faces.astype(np.int32),
        mirror=mirror.astype(np.int32),
        side=np.where(mirror == np.arange(len(mirror)), 0, np.sign(rest[:, 0])).astype(np.int8),
        front=np.zeros(len(rest), dtype=np.int8),
        opposite=np.arange(len(rest), dtype=np.int32),
        size=part_sizes(rest, weights).astype(np.float32),
        rest=rest,
        regions=_regions(skeleton, weights),
    )
    build = make_build(rest, heads, tails, weights)
    bones = tuple(f"bone{number}" for number in range(len(heads)))
    parents = skeleton.parents
    rig = Rig(template, bones, parents, generations(parents), weights, {skeleton.symmetry: build})
    scaled = replace(skeleton, heads=heads, tails=tails, radii=skeleton.radii * scale)
    return ThingRig(rig, scaled, vertex_normals(rest, template.faces))


def _mirror(skeleton: Skeleton, vertices: Floats) -> IntArray:
    """(V,) vertex at the mirrored place of each; itself without a mirror."""
    everyone = np.arange(len(vertices))
    if skeleton.symmetry == "free":
        return everyone
    mirror = np.asarray(cKDTree(vertices).query(vertices * _MIRROR)[1])  # (V,)
    # A vertex whose partner was lost to rounding stands for itself: the map is an involution.
    return np.where(mirror[mirror] == everyone, mirror, everyone)


def _weights(skeleton: Skeleton, vertices: Floats) -> NDArray[np.float32]:
    """(J, V) skinning weights: a bone's share fades with the distance from its surface."""
    fade = 0.4 * skeleton.radii.mean(axis=1) / np.sqrt(skeleton.flatness) + 0.01  # (J,)
    exponents = -np.abs(bone_distances(skeleton, vertices)) / fade[:, None]  # (J, V)
    shares = np.exp(exponents - exponents.max(axis=0))  # (J, V)
    shares[shares < 0.02] = 0.0
    weights: NDArray[np.float32] = (shares / shares.sum(axis=0)).astype(np.float32)  # (J, V)
    return weights


def _regions(skeleton: Skeleton, weights: NDArray[np.float32]) -> dict[str, NDArray[np.bool_]]:
    """Masks (V,) of the limbs, and of all but each."""
    owner = skeleton.limbs[np.argmax(weights, axis=0)]  # (V,)
    regions = {}
    for limb in np.unique(owner):
        alone = owner == limb  # (V,)
        if 0.08 < alone.mean() < 0.92:
            regions[f"limb{limb}"], regions[f"rest{limb}"] = alone, ~alone
    return regions
