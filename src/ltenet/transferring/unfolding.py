"""Unfold a deformed mesh: relax the surroundings of folded triangles as rigidly as possible.

As-rigid-as-possible deformation [Sorkine & Alexa 2007] of the points around folded triangles: their
edges approach the original ones, rotated and scaled like their surroundings. All other points stay.
Triangles that are still folded are relaxed again with wider surroundings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import splu

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.rotations import nearest_rotations
from ltenet.geometry.surface_graph import mesh_graph
from ltenet.transferring.folds import folded_faces

#: Rings around a folded triangle that are relaxed, round by round.
_RINGS = (1, 1, 1, 2, 2, 3)
#: Tolerated share of folded triangles: a real bend folds about as many.
_FEW = 0.003
#: Alternations of rotations and positions in one round.
_TURNS = 4
#: Rings over which rotation and scale are averaged.
_SURROUNDINGS = 3
#: Weight that holds a point in place, relative to one edge, if it is fixed and if it is free.
_HELD, _FREE = 1e3, 0.2


def unfolded(before: FloatArray, after: FloatArray, faces: IntArray) -> FloatArray:
    """(N, 3) points near `after` (N, 3) with fewer folds; `before` is the undeformed mesh."""
    graph = mesh_graph(faces, len(before))
    best, fewest = after, len(faces) + 1
    for rings in _RINGS:
        folded = folded_faces(before, after, faces)
        if folded.sum() < fewest:
            best, fewest = after, int(folded.sum())
        if fewest <= _FEW * len(faces):
            break
        free = np.zeros(len(before), bool)
        free[faces[folded]] = True
        for _ in range(rings):
            free |= graph @ free.astype(np.float64) > 0
        after = _relaxed(graph, before, after, free)
    return best


def _relaxed(
    graph: csr_array, before: FloatArray, after: FloatArray, free: NDArray[np.bool_]
) -> FloatArray:
    """(N, 3) points: free ones with edges as rigid as possible, the others unchanged."""
    start, stop = graph.nonzero()  # (E,)
    inside = free[start] | free[stop]
    start, stop = start[inside], stop[inside]
    touched, ends = np.unique(np.concatenate([start, stop]), return_inverse=True)  # (n,)
    first, second = ends.reshape(2, -1)  # (E,)
    count = len(touched)
    old = before[stop] - before[start]  # (E, 3)
    links = csr_array((np.ones(len(first)), (first, second)), shape=(count, count))
    gather = csr_array(
        (np.ones(len(first)), (first, np.arange(len(first)))), shape=(count, len(first))
    )
    hold = np.where(free[touched], _FREE, _HELD)  # (n,)
    system = diags_array(hold + links.sum(axis=1)) - links
    factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    kept = hold[:, None] * after[touched]  # (n, 3)
    points = after[touched]
    for _ in range(_TURNS):
        new = points[second] - points[first]  # (E, 3)
        frames = _frames(links, gather, old, new)  # (n, 3, 3)
        turned = np.einsum("eij,ej->ei", frames[first] + frames[second], old) / 2  # (E, 3)
        points = factor.solve(kept - gather @ turned)
    result: FloatArray = after.copy()
    result[touched] = points
    return result


def _frames(links: csr_array, gather: csr_array, old: FloatArray, new: FloatArray) -> FloatArray:
    """(n, 3, 3) scaled rotations that best take the old edges around each point to the new ones."""
    outer = (new[:, :, None] * old[:, None, :]).reshape(-1, 9)  # (E, 9)
    sizes = np.stack([np.square(new).sum(axis=1), np.square(old).sum(axis=1)], axis=1)  # (E, 2)
    sums = gather @ np.concatenate([outer, sizes], axis=1)  # (n, 11)
    for _ in range(_SURROUNDINGS):
        sums = sums + links @ sums
    scale = np.sqrt(sums[:, 9] / np.maximum(sums[:, 10], 1e-300))  # (n,)
    frames: FloatArray = scale[:, None, None] * nearest_rotations(sums[:, :9].reshape(-1, 3, 3))
    return frames
