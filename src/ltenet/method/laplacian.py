"""Eigenfunctions of the Laplacian of a shape, from low to high frequency.

They are invariant under isometries, up to sign and to rotations within an eigenspace, and are to a
surface what sines and cosines are to a circle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.eigenvectors import lowest_eigenvectors

#: Neighbours of a point that define the surface of a cloud.
_CLOUD_NEIGHBORS = 30
#: Shapes up to this size, or this many times the number of functions, are decomposed as dense
#: matrices; the sparse solver needs more room.
_DENSE_POINTS, _DENSE_FUNCTIONS = 128, 4
#: Least share of the area of a point.
_LEAST_SHARE = 1e-9


class LaplacianBasis(NamedTuple):
    """The first k eigenfunctions of a shape whose surface is scaled to area 1.

    Attributes
    ----------
    values
        (k,) float64 eigenvalues, ascending, the first about 0.
    functions
        (N, k) float64, orthonormal: ``functions.T @ (masses[:, None] * functions)`` is the
        identity.
    masses
        (N,) float64 share of the area around each point, summing to 1.
    """

    values: Tensor
    functions: Tensor
    masses: Tensor


def laplacian_basis(points: Tensor, k: int, *, faces: Tensor | None = None) -> LaplacianBasis:
    """Compute the first k eigenfunctions of a mesh or a cloud.

    Uses the intrinsic Delaunay Laplacian [Sharp & Crane 2020], which is robust to bad triangles,
    holes and non-manifold edges.

    Parameters
    ----------
    points
        (N, 3) on any device; computed on the CPU, returned on the device.
    k
        Number of functions, at most N.
    faces
        (F, 3) triangles, or None for a cloud.
    """
    count = len(points)
    if points.ndim != 2 or points.shape[1] != 3 or not 1 <= k <= count or count < 4:
        raise InputError(
            f"got {k} functions on points {tuple(points.shape)}, expected (N, 3) with at least 4 "
            "points and 1 to N functions; try fewer functions"
        )
    coordinates = points.detach().cpu().numpy().astype(np.float64)  # (N, 3)
    if not np.isfinite(coordinates).all() or np.ptp(coordinates, axis=0).max() == 0.0:
        raise InputError(
            "got points that are not finite or all coincide, expected a shape with an extent; try "
            "removing the damaged points"
        )
    if faces is None:
        found = _decomposed(coordinates, None, k)
    else:
        found = _mesh_functions(coordinates, faces.detach().cpu().numpy().astype(np.int64), k)
    return LaplacianBasis(
        *(torch.from_numpy(np.ascontiguousarray(array)).to(points.device) for array in found)
    )


def _mesh_functions(coordinates: Any, triangles: Any, k: int) -> tuple[Any, Any, Any]:
    """Decompose a mesh; vertices without triangles take the values of the nearest one with some."""
    used, corners = np.unique(triangles, return_inverse=True)  # (U,), (3 F,)
    if len(used) < max(4, k):
        raise InputError(
            f"got {len(used)} vertices with triangles for {k} functions, expected at least 4, and "
            "as many as functions; try leaving out the faces to work on the points alone"
        )
    compact = corners.reshape(-1, 3)  # (F, 3)
    values, functions, masses = _decomposed(coordinates[used], compact, k)
    if len(used) == len(coordinates):
        return values, functions, masses
    nearest = KDTree(coordinates[used]).query(coordinates)[1]  # (N,)
    nearest[used] = np.arange(len(used))  # also where two coincide
    shares = np.zeros(len(coordinates))  # (N,)
    shares[used] = masses
    return values, functions[nearest], shares


def _decomposed(coordinates: Any, triangles: Any, k: int) -> tuple[Any, Any, Any]:
    """Values (k,), functions (N, k) and masses (N,), see `LaplacianBasis`."""
    stiffness, masses = _laplacian(coordinates, triangles)  # (N, N) sparse, (N,)
    count = len(masses)
    # With area 1 the functions of a small and a large shape agree.
    masses = np.maximum(masses / masses.sum(), _LEAST_SHARE)  # (N,)
    masses /= masses.sum()
    if count <= max(_DENSE_POINTS, _DENSE_FUNCTIONS * k):
        values, functions = eigh(stiffness.toarray(), np.diag(masses), subset_by_index=(0, k - 1))
    else:
        values, functions = _sparse_eigenvectors(stiffness, masses, k)
    order = np.argsort(values, kind="stable")  # (k,)
    return values[order], functions[:, order], masses


def _laplacian(coordinates: Any, triangles: Any) -> tuple[Any, Any]:
    """Symmetric matrix (N, N) of the Dirichlet energy, and the area (N,) around each point."""
    import robust_laplacian as robust  # not needed by those who match clouds

    # The library merges points by absolute tolerances: scale the shape to unit size.
    scaled = coordinates - coordinates.mean(axis=0)  # (N, 3)
    scaled = scaled / np.abs(scaled).max()
    if triangles is not None:
        stiffness, mass = robust.mesh_laplacian(scaled, triangles)
    else:
        neighbors = min(_CLOUD_NEIGHBORS, len(scaled) - 1)
        stiffness, mass = robust.point_cloud_laplacian(scaled, n_neighbors=neighbors)
    masses = np.asarray(mass.diagonal())  # (N,)
    if not (np.isfinite(masses).all() and masses.sum() > 0 and np.isfinite(stiffness.data).all()):
        raise InputError(
            "got a surface without area or with damaged triangles, expected one with an area; try "
            "leaving out the faces to work on the points alone"
        )
    return stiffness, masses


def _sparse_eigenvectors(stiffness: Any, masses: Any, k: int) -> tuple[Any, Any]:
    """Smallest eigenvalues (k,) and their vectors (N, k)."""
    try:
        return lowest_eigenvectors(stiffness, masses, k)
    except (RuntimeError, np.linalg.LinAlgError) as error:  # also of the sparse factorisation
        raise InputError(
            f"got no convergence for the {k} lowest eigenfunctions of {len(masses)} points "
            f"({error}), expected a surface in few pieces; try leaving out the faces, or fewer "
            "functions"
        ) from None
