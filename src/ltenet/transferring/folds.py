"""Which triangles of a bent mesh are folded over: they face the wrong way in their surroundings.

A limb that bends turns its triangles with it, so normals are compared after the turn: around each
triangle the rotation that best takes the old edges to the new ones is found, and the old normal is
turned by it. A triangle is folded if its new normal points against that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltenet.shape import FloatArray, IntArray
from ltenet.surface_graph import mesh_graph
from ltenet.transferring.surface import face_normals


def folded_faces(before: FloatArray, after: FloatArray, faces: IntArray) -> NDArray[np.bool_]:
    """Triangles (F,) of the mesh `before` (N, 3) that are folded in `after` (N, 3)."""
    rotations = face_rotations(before, after, faces)  # (F, 3, 3)
    turned = np.einsum("fij,fj->fi", rotations, face_normals(before, faces))  # (F, 3)
    facing = np.einsum("fi,fi->f", turned, face_normals(after, faces))  # (F,)
    folded: NDArray[np.bool_] = facing < 0
    return folded


def face_rotations(before: FloatArray, after: FloatArray, faces: IntArray) -> FloatArray:
    """Rotations (F, 3, 3) of the surroundings of each triangle: two rings of its corners."""
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


def nearest_rotations(matrices: FloatArray) -> FloatArray:
    """Rotations (R, 3, 3) nearest to (R, 3, 3) matrices."""
    left, _, right = np.linalg.svd(matrices)
    left[:, :, 2] *= np.where(np.linalg.det(left @ right) < 0, -1.0, 1.0)[:, None]
    rotations: FloatArray = left @ right
    return rotations
