"""Smooth functions of a shape, from slow to quick: eigenfunctions of its Laplacian.

Bending a shape without stretching it leaves them as they are, up to sign and to rotations among
those that are equally quick. They are to a surface what sines and cosines are to a circle.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse import diags
from scipy.sparse.linalg import ArpackError, eigsh
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.errors import InputError, MissingError

#: Points around each that make the surface of a cloud.
_CLOUD_NEIGHBORS = 30
#: Shapes this small are decomposed as dense matrices; the sparse solver needs room to work in.
_DENSE_POINTS = 128
#: Shift that makes the sparse system regular, and least share of the surface of a point.
_SHIFT, _LEAST_SHARE = 1e-6, 1e-9


class LaplacianBasis(NamedTuple):
    """The k slowest functions of a shape whose surface is scaled to area 1.

    Attributes
    ----------
    values
        (k,) float64 eigenvalues, ascending, the first about 0.
    functions
        (N, k) float64, orthonormal: ``functions.T @ (masses[:, None] * functions)`` is the
        identity.
    masses
        (N,) float64 share of the surface that each point stands for; they sum to 1.
    """

    values: Tensor
    functions: Tensor
    masses: Tensor

    def coefficients(self, values: Tensor) -> Tensor:
        """(k, C) of the combination of the functions that is nearest to (N, C) values."""
        return self.functions.T @ (self.masses[:, None] * values)  # (k, C)


def laplacian_basis(points: Tensor, k: int, *, faces: Tensor | None = None) -> LaplacianBasis:
    """Compute the k slowest functions of a mesh or of a cloud.

    Uses the intrinsic Delaunay Laplacian of Sharp and Crane, which bad triangles, holes and
    edges with more than two faces do not break.

    Parameters
    ----------
    points
        (N, 3) on any device; the work is done on the CPU and the result goes back there.
    k
        How many functions, at most N.
    faces
        (F, 3) triangles, or None for a cloud.
    """
    count = len(points)
    if points.ndim != 2 or points.shape[1] != 3 or not 1 <= k <= count or count < 4:
        raise InputError(
            f"{k} functions on points {tuple(points.shape)} were asked for; (N, 3) with at least 4 "
            "points and a number of functions from 1 to N is needed; ask for fewer functions"
        )
    coordinates = points.detach().cpu().numpy().astype(np.float64)  # (N, 3)
    if not np.isfinite(coordinates).all() or np.ptp(coordinates, axis=0).max() == 0.0:
        raise InputError(
            "points that are not finite or that all coincide came; a shape with an extent is "
            "needed; remove the damaged points"
        )
    if faces is None:
        found = _decomposed(coordinates, None, k)
    else:
        found = _mesh_functions(coordinates, faces.detach().cpu().numpy().astype(np.int64), k)
    return LaplacianBasis(
        *(torch.from_numpy(np.ascontiguousarray(array)).to(points.device) for array in found)
    )


def _mesh_functions(coordinates: Any, triangles: Any, k: int) -> tuple[Any, Any, Any]:
    """Decompose a mesh; vertices that no triangle uses go with the nearest that one does."""
    used, corners = np.unique(triangles, return_inverse=True)  # (U,), (3 F,)
    if len(used) < max(4, k):
        raise InputError(
            f"{len(used)} vertices with triangles came for {k} functions; at least 4, and as many "
            "as functions, are needed; leave out the faces to work on the points alone"
        )
    compact = corners.reshape(-1, 3)  # (F, 3)
    values, functions, masses = _decomposed(coordinates[used], compact, k)
    if len(used) == len(coordinates):
        return values, functions, masses
    nearest = KDTree(coordinates[used]).query(coordinates)[1]  # (N,)
    nearest[used] = np.arange(len(used))  # of two in one place, each its own
    shares = np.zeros(len(coordinates))  # (N,)
    shares[used] = masses
    return values, functions[nearest], shares


def _decomposed(coordinates: Any, triangles: Any, k: int) -> tuple[Any, Any, Any]:
    """Values (k,), functions (N, k) and masses (N,), see `LaplacianBasis`."""
    stiffness, masses = _laplacian(coordinates, triangles)  # (N, N) sparse, (N,)
    count = len(masses)
    # With area 1 the functions of a small and of a large shape agree.
    masses = np.maximum(masses / masses.sum(), _LEAST_SHARE)  # (N,)
    masses /= masses.sum()
    if count <= _DENSE_POINTS or k >= count - 1:
        values, functions = eigh(stiffness.toarray(), np.diag(masses), subset_by_index=(0, k - 1))
    else:
        values, functions = _sparse_eigenvectors(stiffness, masses, k)
    order = np.argsort(values, kind="stable")  # (k,)
    return values[order], functions[:, order], masses


def _laplacian(coordinates: Any, triangles: Any) -> tuple[Any, Any]:
    """Symmetric matrix (N, N) of the Dirichlet energy, and the surface (N,) at each point."""
    try:
        robust = import_module("robust_laplacian")
    except ImportError:
        raise MissingError(
            "the Laplacian needs robust-laplacian, which is not installed; it is needed for "
            "spectral refinement; run pip install 'ltenet[spectral]'"
        ) from None
    # The library merges points by absolute tolerances: give it a shape of unit size.
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
            "the surface has no area, or its triangles are damaged; a surface with an area is "
            "needed; leave out the faces to work on the points alone"
        )
    return stiffness, masses


def _sparse_eigenvectors(stiffness: Any, masses: Any, k: int) -> tuple[Any, Any]:
    """Smallest eigenvalues (k,) and their vectors (N, k), the same in every run."""
    count = len(masses)
    shifted = stiffness + _SHIFT * diags(masses)  # (N, N), positive definite
    start = np.random.default_rng(0).standard_normal(count)  # (N,)
    try:
        values, functions = eigsh(
            shifted.tocsc(), k, M=diags(masses).tocsc(), sigma=0.0, which="LM", v0=start
        )
    except (ArpackError, RuntimeError) as error:
        raise InputError(
            f"the {k} slowest functions of {count} points were not found ({error}); a surface "
            "without crumbling parts is needed; leave out the faces, or ask for fewer functions"
        ) from None
    return np.maximum(values - _SHIFT, 0.0), functions
