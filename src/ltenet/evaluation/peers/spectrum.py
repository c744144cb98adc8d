"""The vibrations of a shape as arrays: eigenfunctions of its Laplacian, of meshes and of clouds."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ltenet.geometry.arrays import FloatArray
from ltenet.method.laplacian import laplacian_basis
from ltenet.shape import Shape


class Spectrum(NamedTuple):
    """The lowest eigenpairs of a shape whose surface is scaled to area 1.

    Attributes
    ----------
    values
        (K,) eigenvalues, rising, the first of them about 0.
    functions
        (N, K) eigenfunctions, orthonormal over the surface; signs are arbitrary.
    masses
        (N,) area of each point; they sum to 1.
    """

    values: FloatArray
    functions: FloatArray
    masses: FloatArray


def spectrum(shape: Shape, count: int) -> Spectrum:
    """Lowest `count` eigenpairs, the constant function included; fewer of a smaller shape."""
    basis = laplacian_basis(
        torch.tensor(shape.points),
        min(count, len(shape)),
        faces=None if shape.faces is None else torch.tensor(shape.faces),
    )
    return Spectrum(*(array.numpy() for array in basis))
