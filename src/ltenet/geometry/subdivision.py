"""Divide each triangle into four: more vertices on the same surface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ltenet.geometry.arrays import FloatArray, IntArray


class Subdivision(NamedTuple):
    """A mesh divided several times; its first vertices are those of the mesh.

    Attributes
    ----------
    edges
        For each level, the edges (E, 2) that it halves.
    faces
        (F, 3) after the last level.
    """

    edges: tuple[IntArray, ...]
    faces: IntArray

    def positions(self, points: FloatArray) -> FloatArray:
        """(N, 3) all vertices, from the (V, 3) points of the mesh."""
        for level in self.edges:
            points = np.concatenate([points, points[level].mean(axis=1)])
        return points


def subdivide(faces: IntArray, count: int, *, levels: int) -> Subdivision:
    """Halve the edges of a mesh of `count` vertices `levels` times."""
    edges = []
    for _ in range(levels):
        sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]], axis=2)  # (F, 3, 2)
        halved, number = np.unique(sides.reshape(-1, 2), axis=0, return_inverse=True)  # (E, 2)
        middle = number.reshape(-1, 3) + count  # (F, 3), of sides 01, 12 and 20
        first, second, third = faces.T  # (F,) each
        corners = [
            (first, middle[:, 0], middle[:, 2]),
            (second, middle[:, 1], middle[:, 0]),
            (third, middle[:, 2], middle[:, 1]),
            tuple(middle.T),
        ]
        faces = np.concatenate([np.stack(three, axis=1) for three in corners])
        edges.append(halved)
        count += len(halved)
    return Subdivision(tuple(edges), faces)
