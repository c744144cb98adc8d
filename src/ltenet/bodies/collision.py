"""Does a posed body pass through itself? A quick answer from sparse points, in numpy alone.

A check holds some *probe* vertices of one body part against some *surface* vertices, with their
normals, of another. A probe is inside when it lies behind the tangent plane of the surface vertex
nearest to it; how far behind is its depth. Both sets are sparse (tens of probes, hundreds of
surface points), which makes a body cost well under a millisecond and the depth accurate to a few
millimetres: enough to refuse bad poses, not to resolve contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.geometry.farthest_points import farthest_point_sample

# A probe counts as inside only if the step to the nearest surface vertex is mostly along the
# normal; beside the open border of a part it is not, and "behind the plane" means nothing there.
_LEAST_COSINE = 0.5


class CollisionCheck(NamedTuple):
    """Vertices of one part that must not be inside another part.

    Attributes
    ----------
    probes
        (P,) vertex indices that may enter.
    surface
        (S,) vertex indices that are entered; keep them about as far apart as the part is thin.
    allowance
        Depth that is forgiven, where soft flesh gives way; in the unit of the shapes.
    """

    probes: NDArray[np.int64]
    surface: NDArray[np.int64]
    allowance: float = 0.0


class CollisionTest:
    """Self-collision test for all the bodies of one template.

    Parameters
    ----------
    faces
        (F, 3) faces of the template, oriented outwards.
    checks
        Pairs (probes, surface) of vertex indices, or `CollisionCheck`.
    reach
        Probes farther than this from every surface vertex are outside, in the unit of the shapes.
    rank
        The depth of a check is that of its ``rank``-th deepest probe, so that one stray vertex
        does not condemn a body.
    """

    def __init__(
        self,
        faces: ArrayLike,
        checks: Sequence[CollisionCheck | tuple[ArrayLike, ArrayLike]],
        *,
        reach: float = 0.12,
        rank: int = 2,
    ) -> None:
        self._checks = [
            CollisionCheck(np.asarray(probes, np.int64), np.asarray(surface, np.int64), *allowance)
            for probes, surface, *allowance in checks
        ]
        empty = [
            i for i, check in enumerate(self._checks) if not check.probes.size * check.surface.size
        ]
        if empty or not self._checks:
            raise ValueError(
                f"got {len(self._checks)} collision checks of which {len(empty)} are empty "
                f"(numbers {empty}), expected probes and a surface in each; try leaving empty "
                "parts out"
            )
        self._reach = reach
        self._rank = rank
        used = np.unique(np.concatenate([check.surface for check in self._checks]))  # (U,)
        self._used = used
        self._quads = _ring_quads(np.asarray(faces, np.int64), used)  # (U, 4)
        self._rows = [np.searchsorted(used, check.surface) for check in self._checks]
        self._probes = _Groups([check.probes for check in self._checks])
        self._surfaces = _Groups([check.surface for check in self._checks])

    def depth(self, vertices: NDArray[np.floating]) -> float:
        """Worst penetration over all checks, 0 if there is none.

        Parameters
        ----------
        vertices
            (V, 3) body in the numbering of the template.
        """
        return float(max(self.depths(vertices)))

    def depths(self, vertices: NDArray[np.floating]) -> list[float]:
        """Penetration of each check, in the order in which they were given."""
        points = np.asarray(vertices, np.float32)  # (V, 3)
        depths = [0.0] * len(self._checks)
        # Most limbs are nowhere near each other, and their bounding boxes tell so at once.
        low, high = self._surfaces.boxes(points)  # (C, 3), (C, 3)
        probe_low, probe_high = self._probes.boxes(points)  # (C, 3), (C, 3)
        near = (probe_low < high + self._reach) & (probe_high > low - self._reach)  # (C, 3)
        close = np.flatnonzero(near.all(1)).tolist()
        if not close:
            return depths
        normals = self._normals(points)  # (U, 3)
        for number in close:
            check = self._checks[number]
            depth = self._check_depth(
                points[check.probes], points[check.surface], normals[self._rows[number]]
            )
            depths[number] = max(depth - check.allowance, 0.0)
        return depths

    def _normals(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute unit normals (U, 3) of the surface vertices, from four neighbours around each."""
        corners = points[self._quads]  # (U, 4, 3)
        u = corners[:, 2] - corners[:, 0]  # (U, 3)
        v = corners[:, 3] - corners[:, 1]  # (U, 3)
        normals = np.empty_like(u)  # (U, 3)
        normals[:, 0] = u[:, 1] * v[:, 2] - u[:, 2] * v[:, 1]
        normals[:, 1] = u[:, 2] * v[:, 0] - u[:, 0] * v[:, 2]
        normals[:, 2] = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
        length = np.sqrt(np.einsum("ij,ij->i", normals, normals))  # (U,)
        normals /= np.maximum(length, 1e-12)[:, None]
        return normals

    def _check_depth(
        self,
        probes: NDArray[np.float32],
        surface: NDArray[np.float32],
        normals: NDArray[np.float32],
    ) -> float:
        low, high = surface.min(0) - self._reach, surface.max(0) + self._reach  # (3,), (3,)
        probes = probes[((probes > low) & (probes < high)).all(1)]  # (P', 3)
        if len(probes) < self._rank:
            return 0.0
        centre = (low + high) / 2  # (3,); keeps the expanded squares below accurate in float32
        probes, surface = probes - centre, surface - centre
        # |p - s|^2 up to the constant |p|^2, which does not change which s is nearest.
        closeness = probes @ surface.T - 0.5 * np.einsum("ij,ij->i", surface, surface)  # (P', S)
        nearest = closeness.argmax(1)  # (P',)
        step = surface[nearest] - probes  # (P', 3)
        depth = np.einsum("ij,ij->i", step, normals[nearest])  # (P',)
        distance = np.sqrt(np.einsum("ij,ij->i", step, step))  # (P',)
        depth[(depth < _LEAST_COSINE * distance) | (distance > self._reach)] = 0.0
        return float(np.partition(depth, len(depth) - self._rank)[len(depth) - self._rank])


class _Groups:
    """Bounding boxes of several groups of vertices at once."""

    def __init__(self, members: Sequence[NDArray[np.int64]]) -> None:
        self._members = np.concatenate(members)  # (sum of sizes,)
        self._starts = np.cumsum([0, *(len(group) for group in members[:-1])])  # (C,)

    def boxes(self, points: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Find the lowest and highest corners, (C, 3) each."""
        gathered = points[self._members]
        low = np.minimum.reduceat(gathered, self._starts)
        return low, np.maximum.reduceat(gathered, self._starts)


def spread(points: NDArray[np.floating], members: ArrayLike, count: int) -> NDArray[np.int64]:
    """Choose evenly spread vertices of a part by farthest-point sampling.

    Parameters
    ----------
    points
        (V, 3) template in its rest pose.
    members
        (M,) vertex indices of the part.
    count
        How many to keep; all of them if the part has fewer.

    Returns
    -------
    (min(M, count),) vertex indices, ascending.
    """
    indices = np.asarray(members, np.int64)  # (M,)
    if len(indices) <= count:
        return np.sort(indices)
    return np.sort(indices[farthest_point_sample(points[indices], count)])


def _ring_quads(faces: NDArray[np.int64], vertices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Four neighbours evenly around each vertex, counter-clockwise seen from outside: (U, 4).

    The diagonals of that quadrilateral span the tangent plane; their cross product is the normal.
    """
    following: dict[int, dict[int, int]] = {int(vertex): {} for vertex in vertices}
    for face in faces[np.isin(faces, vertices).any(1)].tolist():
        for corner in range(3):
            ring = following.get(face[corner])
            if ring is not None:
                ring[face[(corner + 1) % 3]] = face[(corner + 2) % 3]
    quads = np.empty((len(vertices), 4), np.int64)
    for row, vertex in enumerate(vertices.tolist()):
        successor = following[vertex]
        if not successor:
            raise ValueError(
                f"got vertex {vertex} without a face in a collision surface, expected vertices "
                "with normals; try leaving isolated vertices out"
            )
        ends = set(successor) - set(successor.values())  # not empty at the border of an open mesh
        ring_order = [min(ends) if ends else min(successor)]
        while ring_order[-1] in successor and len(ring_order) <= len(successor):
            ring_order.append(successor[ring_order[-1]])
        if ring_order[-1] == ring_order[0]:
            ring_order.pop()
        quads[row] = [ring_order[(len(ring_order) * quarter) // 4] for quarter in range(4)]
    return quads
