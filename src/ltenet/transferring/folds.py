"""Folded triangles of a deformed mesh: those that face against their surroundings.

A bending limb rotates its triangles, so normals are compared after this rotation: the one that best
takes the old edges around a triangle to the new ones. A triangle is folded if its new normal points
against its rotated old one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import face_normals
from ltenet.geometry.rotations import nearest_rotations
from ltenet.geometry.surface_graph import mesh_graph


def folded_faces(before: FloatArray, after: FloatArray, faces: IntArray) -> NDArray[np.bool_]:
    """(F,) True for triangles of the mesh `before` (N, 3) that are folded in `after` (N, 3)."""
    rotations = face_rotations(before, after, faces)  # (F, 3, 3)
    turned = np.einsum("fij,fj->fi", rotations, face_normals(before, faces))  # (F, 3)
    facing = np.einsum("fi,fi->f", turned, face_normals(after, faces))  # (F,)
    folded: NDArray[np.bool_] = facing < 0
    return folded


def face_rotations(before: FloatArray, after: FloatArray, faces: IntArray) -> FloatArray:
    """(F, 3, 3) rotations of the two-ring neighbourhood of each triangle's corners."""
    graph = mesh_graph(faces, len(before))
    start, stop = graph.nonzero()  # (E,)
    old, new = before[stop] - before[start], after[stop] - after[start]  # (E, 3)
    outer = (new[:, :, None] * old[:, None, :]).reshape(len(start), 9)  # (E, 9)
    incidence = csr_array(
        (np.ones(len(start)), (start, np.arange(len(start)))), shape=(len(before), len(start))
    )
    covariance = incidence @ outer  # (N, 9), of one ring
    covariance = covariance + graph @ covariance  # (N, 9), of two
    around = covariance[faces].sum(axis=1).reshape(-1, 3, 3)  # (F, 3, 3)
    return nearest_rotations(around)
