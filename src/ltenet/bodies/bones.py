"""Bone-scaled skinning: one mesh, many builds, any pose.

A vertex v of the rest pose is seen from a bone j with head h and axis d as an axis point plus a
radial offset, ``v = h + s d + o`` with s clamped to [0, 1]. A length scale l acts on the axis point
and a thickness scale t (per world axis) on the offset, so a short and thick bone never folds over
its neighbours as it would under a plain affine map. With the world rotation G and head H of every
bone and the skinning weights w, the posed vertex is

    x = sum_j w_j ( G_j (l_j s_j d_j + t_j * o_j) + H_j ),

which is linear in (w_j) and (w_j s_j): two matrix products pose a whole mesh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.generated import Template

Floats = NDArray[np.float64]

# Products of this size stay in the cache and below the size at which BLAS starts threads, which
# would cost more than they save and get into each other's way when several processes draw shapes.
_BLOCK = 512


def pitch_rotation(degrees: float) -> Floats:
    """(3, 3) rotation that lifts what points forwards and swings forwards what points down."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])


@dataclass(frozen=True)
class Build:
    """One species (or a blend of two) in its rest pose.

    Attributes
    ----------
    vertices
        (3, V) float32, coordinates first, so that posing runs over contiguous rows.
    axis_weights
        (J, V) float32, skinning weight times the clamped axis coordinate, ``w_j s_j``.
    heads, tails
        (J, 3) ends of the bones.
    radii
        (J,) mean distance of a bone's own vertices from its axis.
    soles
        (J,) height of each head above the ground when its limb stands; meant for paws.
    """

    vertices: NDArray[np.float32]
    axis_weights: NDArray[np.float32]
    heads: Floats
    tails: Floats
    radii: Floats
    soles: Floats


@dataclass(frozen=True)
class Rig:
    """A template with its bones and with the builds that share its numbering.

    Attributes
    ----------
    template
        Faces, mirror and the other labels of the numbering.
    bones
        J names; parents come before their children.
    parents
        (J,) int, -1 for the root, which is bone 0.
    generations
        Bone indices by depth in the tree, the root left out.
    weights
        (J, V) float32 skinning weights; columns sum to one.
    builds
        Species name -> its rest pose.
    """

    template: Template
    bones: tuple[str, ...]
    parents: NDArray[np.int64]
    generations: tuple[NDArray[np.int64], ...]
    weights: NDArray[np.float32]
    builds: dict[str, Build]

    def index(self, bone: str) -> int:
        """Position of a bone in all arrays of J bones."""
        return self.bones.index(bone)


class Placement(NamedTuple):
    """World placement of every bone: what the kinematics hand to the skinning.

    Attributes
    ----------
    rotations
        (J, 3, 3) world rotations G.
    heads
        (J, 3) world heads H.
    tails
        (J, 3) world tails.
    """

    rotations: Floats
    heads: Floats
    tails: Floats


def generations(parents: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Bones by depth, the root left out, from the (J,) parents of each."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for bone, parent in enumerate(parents[1:], start=1):
        depth[bone] = depth[parent] + 1
    return tuple(np.flatnonzero(depth == k) for k in range(1, int(depth.max()) + 1))


def axis_coordinates(points: Floats, heads: Floats, tails: Floats) -> Floats:
    """Clamped axis coordinate s of every point on every bone.

    Parameters
    ----------
    points
        (V, 3)
    heads, tails
        (J, 3)

    Returns
    -------
    (J, V) in [0, 1]
    """
    axes = tails - heads  # (J, 3)
    along = axes @ points.T - np.sum(axes * heads, axis=1, keepdims=True)  # (J, V)
    share: Floats = along / np.sum(axes * axes, axis=1, keepdims=True)  # (J, V)
    return share.clip(0.0, 1.0)


def make_build(
    vertices: NDArray[np.float32], heads: Floats, tails: Floats, weights: NDArray[np.float32]
) -> Build:
    """Precompute what posing needs from a rest mesh.

    Parameters
    ----------
    vertices
        (V, 3) rest pose.
    heads, tails
        (J, 3)
    weights
        (J, V)
    """
    points = vertices.astype(np.float64)  # (V, 3)
    along = axis_coordinates(points, heads, tails)  # (J, V)
    owner = np.argmax(weights, axis=0)  # (V,)
    columns = np.arange(len(points))
    axis_points = heads[owner] + along[owner, columns][:, None] * (tails - heads)[owner]  # (V, 3)
    distance = np.linalg.norm(points - axis_points, axis=1)  # (V,)
    count = np.bincount(owner, minlength=len(heads))  # (J,)
    radii = np.bincount(owner, distance, minlength=len(heads)) / np.maximum(count, 1)  # (J,)
    return Build(
        vertices=np.ascontiguousarray(vertices.T, dtype=np.float32),
        axis_weights=(weights * along).astype(np.float32),
        heads=heads,
        tails=tails,
        radii=radii,
        soles=heads[:, 1].copy(),
    )


def blend_builds(first: Build, second: Build, amount: float) -> Build:
    """Mix two builds of one rig, linearly and at the size of the first.

    Parameters
    ----------
    amount
        Share of the second.
    """
    size, other = (np.linalg.norm(b.tails - b.heads, axis=1).sum() for b in (first, second))
    keep, add = 1.0 - amount, amount * float(size / other)
    return Build(
        vertices=np.float32(keep) * first.vertices + np.float32(add) * second.vertices,
        # At unit scales these have no effect, and the jitter of an individual is small.
        axis_weights=first.axis_weights,
        heads=keep * first.heads + add * second.heads,
        tails=keep * first.tails + add * second.tails,
        radii=keep * first.radii + add * second.radii,
        soles=keep * first.soles + add * second.soles,
    )


def scaled_skeleton(
    rig: Rig, build: Build, lengths: Floats, thickness: Floats
) -> tuple[Floats, Floats]:
    """Local offset of every bone's head from its parent's head, and its axis, after scaling.

    Parameters
    ----------
    lengths
        (J,) length scales l.
    thickness
        (J, 3) thickness scales t.

    Returns
    -------
    offsets, axes : each (J, 3), in rest axes; the offset of the root is its rest head.
    """
    axes = build.tails - build.heads  # (J, 3)
    parents = rig.parents[1:]
    parent_axes = axes[parents]  # (J-1, 3)
    relative = build.heads[1:] - build.heads[parents]  # (J-1, 3)
    share = np.sum(relative * parent_axes, axis=1) / np.sum(parent_axes**2, axis=1)  # (J-1,)
    on_axis = np.clip(share, 0.0, 1.0)[:, None] * parent_axes  # (J-1, 3)
    offsets = np.empty_like(build.heads)  # (J, 3)
    offsets[0] = build.heads[0]
    offsets[1:] = lengths[parents, None] * on_axis + thickness[parents] * (relative - on_axis)
    return offsets, lengths[:, None] * axes


def place_bones(rig: Rig, offsets: Floats, axes: Floats, rotations: Floats) -> Placement:
    """Forward kinematics.

    Parameters
    ----------
    offsets, axes
        (J, 3) each, from :func:`scaled_skeleton`.
    rotations
        (J, 3, 3) local rotations in rest axes, carried along by the parents.
    """
    motions = np.zeros((len(offsets), 4, 4))  # (J, 4, 4), homogeneous; world motions in the end
    motions[:, :3, :3], motions[:, :3, 3], motions[:, 3, 3] = rotations, offsets, 1.0
    for bones in rig.generations:
        motions[bones] = motions[rig.parents[bones]] @ motions[bones]
    world, heads = motions[:, :3, :3], motions[:, :3, 3]
    return Placement(world, heads, heads + (world @ axes[:, :, None])[:, :, 0])


def skin(
    rig: Rig, build: Build, thickness: Floats, axes: Floats, placement: Placement
) -> NDArray[np.float32]:
    """Vertices of a posed build.

    Parameters
    ----------
    thickness
        (J, 3) thickness scales t.
    axes
        (J, 3) scaled axes, ``l_j d_j``.
    placement
        World placement of the bones.

    Returns
    -------
    (V, 3) float32
    """
    linear = placement.rotations * thickness[:, None, :]  # (J, 3, 3)
    shift = placement.heads - (linear @ build.heads[:, :, None])[:, :, 0]  # (J, 3)
    rest_axes = build.tails - build.heads  # (J, 3)
    stretched = (placement.rotations @ axes[:, :, None])[:, :, 0]  # (J, 3)
    along = stretched - (linear @ rest_axes[:, :, None])[:, :, 0]  # (J, 3)
    affine = np.concatenate([linear.reshape(-1, 9), shift], axis=1).astype(np.float32)  # (J, 12)
    shear = along.astype(np.float32)  # (J, 3)
    posed = np.empty((build.vertices.shape[1], 3), dtype=np.float32)  # (V, 3)
    for start in range(0, len(posed), _BLOCK):
        part = slice(start, start + _BLOCK)
        blended = affine.T @ rig.weights[:, part]  # (12, n)
        x, y, z = build.vertices[:, part]
        moved = blended[9:] + shear.T @ build.axis_weights[:, part]  # (3, n)
        for row in range(3):
            moved[row] += blended[3 * row] * x
            moved[row] += blended[3 * row + 1] * y
            moved[row] += blended[3 * row + 2] * z
        posed[part] = moved.T
    return posed


def segment_distances(start: Floats, axis: Floats, other: Floats, other_axis: Floats) -> Floats:
    """Distance between pairs of line segments.

    Parameters
    ----------
    start, axis
        (P, 3) first segments, ``start + s axis`` with s in [0, 1].
    other, other_axis
        (P, 3) second segments.

    Returns
    -------
    (P,)
    """
    gap = start - other  # (P, 3)
    a = np.einsum("pi,pi->p", axis, axis)  # (P,)
    e = np.einsum("pi,pi->p", other_axis, other_axis)  # (P,)
    b = np.einsum("pi,pi->p", axis, other_axis)  # (P,)
    c = np.einsum("pi,pi->p", axis, gap)  # (P,)
    f = np.einsum("pi,pi->p", other_axis, gap)  # (P,)
    denominator = np.maximum(a * e - b * b, 1e-12)  # (P,)
    s = np.clip((b * f - c * e) / denominator, 0.0, 1.0)  # (P,)
    t = np.clip((b * s + f) / e, 0.0, 1.0)  # (P,)
    s = np.clip((b * t - c) / a, 0.0, 1.0)  # (P,)
    nearest = gap + s[:, None] * axis - t[:, None] * other_axis  # (P, 3)
    return np.asarray(np.sqrt(np.einsum("pi,pi->p", nearest, nearest)))  # (P,)
