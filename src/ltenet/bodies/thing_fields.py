"""Signed distances to the parts of a thing, and the smooth surface around all of them.

A bone with head a, axis d, radii r0 and r1, normal n and flatness q has at a point x, with
``s = clip((x - a) . d / |d|^2, 0, 1)`` and ``o = x - a - s d``, the stretched offset
``p = o + (q - 1) (o . n) n``. Its distance is ``|p| (|p| - r(s)) / |p + (q - 1) (p . n) n|``,
exact around round bones of even radius and right to first order near the surface of others. The
union is smooth: ``-w log sum_j exp(-d_j / w)``.
"""

from __future__ import annotations

import numpy as np

from ltenet.bodies.bones import Floats, axis_coordinates
from ltenet.bodies.thing_skeletons import Bore, Ring, Skeleton


def bone_distances(skeleton: Skeleton, points: Floats) -> Floats:
    """(J, N) signed distances of (N, 3) points from the bones, each with its rings."""
    along = axis_coordinates(points, skeleton.heads, skeleton.tails)  # (J, N)
    distances = np.empty_like(along)  # (J, N)
    for bone, share in enumerate(along):
        start, axis = skeleton.heads[bone], skeleton.tails[bone] - skeleton.heads[bone]
        offsets = points - start - share[:, None] * axis  # (N, 3)
        first, last = skeleton.radii[bone]
        radius = first + (last - first) * share  # (N,)
        extra, normal = skeleton.flatness[bone] - 1.0, skeleton.normals[bone]
        stretched = offsets + extra * (offsets @ normal)[:, None] * normal  # (N, 3)
        length = np.linalg.norm(stretched, axis=1)  # (N,)
        slope = stretched + extra * (stretched @ normal)[:, None] * normal  # (N, 3)
        steep = np.maximum(np.linalg.norm(slope, axis=1), 1e-12)  # (N,)
        distances[bone] = np.maximum(length, 1e-12) * (length - radius) / steep
    for ring in skeleton.rings:
        np.minimum(distances[ring.bone], _ring_distances(ring, points), out=distances[ring.bone])
    return distances


def field(skeleton: Skeleton, points: Floats, *, softness: float) -> Floats:
    """(N,) negative inside the thing, positive outside; `softness` rounds off where parts meet."""
    exponents = -bone_distances(skeleton, points) / softness  # (J, N)
    largest = exponents.max(axis=0)  # (N,)
    union = -softness * (largest + np.log(np.exp(exponents - largest).sum(axis=0)))  # (N,)
    for bore in skeleton.bores:
        cut = -_bore_distances(bore, points)  # (N,)
        union = softness * np.logaddexp(union / softness, cut / softness)  # smooth maximum
    result: Floats = union
    return result


def _ring_distances(ring: Ring, points: Floats) -> Floats:
    offsets = points - ring.centre  # (N, 3)
    height = offsets @ ring.axis  # (N,)
    across = np.linalg.norm(offsets - height[:, None] * ring.axis, axis=1)  # (N,)
    distances: Floats = np.hypot(across - ring.radius, height) - ring.thickness  # (N,)
    return distances


def _bore_distances(bore: Bore, points: Floats) -> Floats:
    share = axis_coordinates(points, bore.start[None], bore.stop[None])[0]  # (N,)
    nearest = bore.start + share[:, None] * (bore.stop - bore.start)  # (N, 3)
    distances: Floats = np.linalg.norm(points - nearest, axis=1) - bore.radius  # (N,)
    return distances
