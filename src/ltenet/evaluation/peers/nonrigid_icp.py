"""Non-rigid ICP with optimal steps [Amberg et al. 2007].

Every point has an affine map of its own. For a stiffness a, nearest points u_i alternate with the
least-squares solution of

    sum_i w_i |X_i [x_i, 1] - u_i|^2 + a^2 sum_edges |(X_i - X_j) G|^2,

a sparse linear system; then the stiffness falls. G weighs the shift against the linear part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, kron
from scipy.sparse.linalg import splu
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.landing import carried, landed, thinned
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.cloud_normals import cloud_normals
from ltenet.geometry.surface_graph import surface_graph
from ltenet.shape import Shape

#: Least cosine between the normals of a point and of its nearest one.
_LIKE = 0.5
#: Weight of the shift in the difference of two maps, for targets of unit radius.
_SHIFT = 1.0


@dataclass(frozen=True, kw_only=True)
class NonRigidICP:
    """Local affine maps of falling stiffness, then the nearest points.

    Attributes
    ----------
    stiff, soft
        First and last stiffness.
    levels
        How many, evenly spaced in their logarithm.
    iterations
        Nearest points and solutions at each.
    points
        Shapes with more points are thinned to this many; the others follow their neighbours.
    """

    stiff: float = 20.0
    soft: float = 0.3
    levels: int = 8
    iterations: int = 3
    points: int = 1024

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        points, frame = (shape.normalized(radius=1.0).points for shape in (source, target))
        chosen, among = thinned(points, self.points), thinned(frame, self.points)
        start = np.ascontiguousarray(points[chosen])  # (n, 3)
        faces = source.faces if len(chosen) == len(source) else None
        moved = self.register(start, frame[among], faces)  # (n, 3)
        return landed(source, target, carried(points, start, moved - start), frame)

    def register(
        self, points: FloatArray, goal: FloatArray, faces: IntArray | None = None
    ) -> FloatArray:
        """(N, 3) points, moved to (M, 3) points of about unit radius."""
        tree, normals = KDTree(goal), cloud_normals(goal)
        differences = edge_differences(points, faces)  # (4 E, 4 N)
        places = position_matrix(points)  # (N, 4 N)
        moved = points
        for stiffness in np.geomspace(self.stiff, self.soft, self.levels):
            for _ in range(self.iterations):
                nearest = tree.query(moved)[1]  # (N,)
                like = np.einsum("nd,nd->n", cloud_normals(moved), normals[nearest])  # (N,)
                # Up to sign: the side that a cloud's normals take is a guess.
                weights = (np.abs(like) >= _LIKE).astype(np.float64)  # (N,)
                maps = solved(places, differences, weights, goal[nearest], float(stiffness))
                moved = places @ maps  # (N, 3)
        return moved


def position_matrix(points: FloatArray) -> csr_array:
    """(N, 4 N) with [x_i, 1] in the four columns of point i: times the maps it gives positions."""
    count = len(points)
    values = np.concatenate([points, np.ones((count, 1))], axis=1)  # (N, 4)
    rows = np.repeat(np.arange(count), 4)
    return csr_array((values.reshape(-1), (rows, np.arange(4 * count))), (count, 4 * count))


def edge_differences(points: FloatArray, faces: IntArray | None) -> csr_array:
    """(4 E, 4 N) differences of the maps at both ends of each edge of the surface graph."""
    start, stop = surface_graph(points, faces).nonzero()  # (2 E,) each
    once = start < stop
    start, stop = start[once], stop[once]  # (E,)
    edges = np.arange(len(start))
    ends = coo_array(
        (
            np.concatenate([-np.ones(len(start)), np.ones(len(start))]),
            (np.concatenate([edges, edges]), np.concatenate([start, stop])),
        ),
        (len(start), len(points)),
    )
    return csr_array(kron(ends, diags_array([1.0, 1.0, 1.0, _SHIFT])))


def solved(
    places: csr_array,
    differences: csr_array,
    weights: FloatArray,
    goals: FloatArray,
    stiffness: float,
) -> FloatArray:
    """(4 N, 3) maps that minimise the energy of the module's docstring.

    Parameters
    ----------
    places, differences
        See `position_matrix` and `edge_differences`.
    weights
        (N,) of the goals.
    goals
        (N, 3)
    """
    fit = diags_array(weights) @ places  # (N, 4 N)
    system = places.T @ fit + stiffness**2 * (differences.T @ differences)  # (4 N, 4 N)
    # Parts without any goal keep to where they are instead of making the system singular.
    system = system + 1e-8 * diags_array(np.ones(system.shape[0]))
    still = np.tile(np.eye(4)[:, :3], (places.shape[0], 1))  # (4 N, 3)
    maps: FloatArray = splu(system.tocsc()).solve(fit.T @ goals + 1e-8 * still)
    return maps
