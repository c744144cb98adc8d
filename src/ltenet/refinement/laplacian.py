"""Eigenfunctions of the Laplacian for the refinements; they are computed in `method.laplacian`."""

from ltenet.method.laplacian import LaplacianBasis, laplacian_basis

__all__ = ["LaplacianBasis", "laplacian_basis"]
