"""Lowest eigenvectors of a large sparse matrix by block Lanczos, inverted [Grimes et al. 1994].

ARPACK works on one vector at a time and never lets go of Python's lock. Blocks of vectors make
matrix products of it, which takes half the time, and two shapes can be decomposed side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_matrix, diags
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

#: Vectors of a block, at least and at most. Small blocks converge with fewer vectors in all, but of
#: equal eigenvalues a block finds only as many as it has vectors, and equal parts have equal ones.
_BLOCK, _LARGEST_BLOCK = 8, 64
#: Size of the basis, relative to the eigenvectors sought, at which convergence is first tested, by
#: which it grows between tests, and at which the search is given up; at least so many vectors.
_FIRST, _GROWTH, _MOST, _LEAST_MOST = 2.7, 0.2, 8.0, 200
#: Residual of an eigenvector, relative to its value, that counts as converged. The error of the
#: value is of the order of its square.
_TOLERANCE = 1e-4
#: Added to the matrix to make it regular, relative to its typical lowest eigenvalues: the mean
#: diagonal belongs to the highest frequency that N points can show, 1 / N of it to the lowest.
_SHIFT = 0.05


class NotConverged(RuntimeError):  # noqa: N818  (an outcome, which the caller words for users)
    """The basis grew as large as it may without reaching the tolerance."""


def lowest_eigenvectors(stiffness: Any, masses: Any, k: int) -> tuple[Any, Any]:
    """Solve ``S f = value M f`` for the k lowest values; identical in every run.

    Parameters
    ----------
    stiffness
        (N, N) sparse S, symmetric and positive semidefinite; constant functions on its connected
        parts must be its null space, as for a Laplacian.
    masses
        (N,) positive diagonal of M.
    k
        At most N / 4.

    Returns
    -------
    Values (k,), ascending, and vectors (N, k), orthonormal with respect to M.
    """
    roots = np.sqrt(masses)  # (N,)
    scaling = diags(1 / roots)
    matrix = csc_matrix(scaling @ stiffness @ scaling)  # (N, N), has ordinary eigenvectors
    null = _null_space(stiffness, roots)[:, :k]  # (N, c)
    wanted = k - null.shape[1]
    if wanted == 0:
        return np.zeros(k), null / roots[:, None]
    shift = _SHIFT * matrix.diagonal().mean() / len(masses)
    values, vectors = _lanczos(matrix, null, shift, wanted)  # (k - c,), (N, k - c)
    every = np.concatenate([np.zeros(null.shape[1]), np.maximum(values, 0.0)])  # (k,)
    return every, np.hstack([null, vectors]) / roots[:, None]


def _null_space(stiffness: Any, roots: Any) -> Any:
    """(N, c) orthonormal: one vector for each connected part.

    Shifted and inverted, all of them have one eigenvalue, of which Lanczos finds few copies.
    """
    count, labels = connected_components(stiffness, directed=False)
    null = np.zeros((len(roots), count))  # (N, c)
    null[np.arange(len(roots)), labels] = roots
    return null / np.linalg.norm(null, axis=0)


def _lanczos(matrix: Any, null: Any, shift: float, k: int) -> tuple[Any, Any]:
    """Lowest values (k,) and vectors (N, k) orthogonal to the null space (N, c)."""
    count, parts = null.shape
    size = min(max(_BLOCK, min(parts, _LARGEST_BLOCK)), k)
    inverse = splu(
        csc_matrix(matrix + shift * diags(np.ones(count))),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    most = min(max(int(_MOST * k), _LEAST_MOST) + size, count - parts)
    basis = np.empty((count, most), order="F")  # (N, most)
    projected = np.zeros((most, most))  # upper triangle of the inverse in that basis
    start = np.random.default_rng(0).standard_normal((count, size))  # (N, b)
    block, _ = np.linalg.qr(start - null @ (null.T @ start))
    used, test = 0, int(_FIRST * k)
    while used < most:
        size = min(size, most - used)
        block = block[:, :size]  # (N, b)
        basis[:, used : used + size] = block
        used += size
        moved = inverse.solve(block)  # (N, b)
        moved -= null @ (null.T @ moved)
        known, products = basis[:, :used], 0.0
        for _ in range(2):  # once leaves rounding errors that grow
            part = known.T @ moved  # (used, b)
            moved -= known @ part
            products = products + part
        projected[:used, used - size : used] = products
        block, remainder = np.linalg.qr(moved)  # (N, b), (b, b)
        if used >= min(test, most):
            test = used + int(_GROWTH * k)
            inverses, within = eigh(
                projected[:used, :used], lower=False, subset_by_index=(used - k, used - 1)
            )  # (k,), (used, k)
            errors = np.linalg.norm(remainder @ within[-size:], axis=0)  # (k,)
            if (errors <= _TOLERANCE * inverses).all():
                return 1 / inverses[::-1] - shift, known @ within[:, ::-1]
    raise NotConverged(f"{used} vectors were not enough for {k} eigenvectors")
