"""The functional-map layer: a linear map between two bases from descriptors that correspond.

A and B are (k, c) coefficients of descriptors of the source and of the target. The map C takes
coefficients of the source to those of the target: ``C A ~ B``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.evaluation.peers.learned.partner_rows import PartnerRows


def projected(functions: Tensor, masses: Tensor, features: Tensor) -> Tensor:
    """(k, c) coefficients of (N, c) features in (N, k) orthonormal functions."""
    return (functions * masses[:, None]).T @ features


def functional_map(source: Tensor, target: Tensor, *, ridge: float = 1e-4) -> Tensor:
    """(k, k) least squares ``min_C |C A - B|^2``, with a ridge relative to A's mean square."""
    gram = source @ source.T  # (k, k)
    scale = ridge * gram.diagonal().mean().clamp_min(1e-30)
    system = gram + scale * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    solved: Tensor = torch.linalg.solve(system, source @ target.T).T  # (k, k)
    return solved


def regularized_map(
    source: Tensor, target: Tensor, source_values: Tensor, target_values: Tensor, *, weight: float
) -> Tensor:
    """(k, k) least squares plus ``weight sum_ij (mu_i - nu_j)^2 C_ij^2`` [Donati et al. 2020].

    Row i solves ``(A A^T + weight diag((mu_i - nu_j)^2)) c_i = A b_i``; all rows in one batch.

    Parameters
    ----------
    source, target
        (k, c) coefficients A and B.
    source_values, target_values
        (k,) eigenvalues nu of the source and mu of the target.
    weight
        Price of a map that does not commute with the Laplacians, for surfaces of area 1.
    """
    gram = source @ source.T  # (k, k)
    apart = (target_values[:, None] - source_values).square()  # (k, k)
    systems = gram + weight * torch.diag_embed(apart)  # (k, k, k)
    right = (source @ target.T).T[..., None]  # (k, k, 1)
    solved: Tensor = torch.linalg.solve(systems, right)[..., 0]  # (k, k)
    return solved


def true_map(source: Tensor, target: Tensor, partners: PartnerRows) -> Tensor:
    """(k, k) best map for known partners: ``pinv(Psi[partners]) Phi``.

    Parameters
    ----------
    source, target
        (N, k) and (M, k) functions Phi and Psi.
    """
    theirs = partners.values(target).double()  # (n, k)
    ours = source[partners.rows].double()  # (n, k)
    gram = theirs.T @ theirs  # (k, k)
    # Normal equations, because least squares by LAPACK round differently from call to call; a tiny
    # ridge for pairs with fewer known points than functions.
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())
    found: Tensor = torch.linalg.solve(gram, theirs.T @ ours)  # (k, k)
    return found.to(source.dtype)


def soft_map(source: Tensor, masses: Tensor, target: Tensor, matrix: Tensor) -> Tensor:
    """(M, N) absolute values of ``Psi C Phi^T M``; each column, a source point, has unit length."""
    values = (target @ matrix @ (source * masses[:, None]).T).abs()  # (M, N)
    lengths: Tensor = torch.linalg.vector_norm(values, dim=0).clamp_min(1e-12)  # (N,)
    return values / lengths
