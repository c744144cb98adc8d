"""Entropic optimal transport by Sinkhorn's iterations, on all pairs or on listed ones.

Maximises ``sum_ij p_ij s_ij - e sum_ij p_ij (log p_ij - 1)`` over plans p with scores s and
temperature e, with row sums a_i and column sums b_j [Cuturi 2013]. With a finite `reach` r the
marginals are relaxed, with penalties ``r KL(sums | a)`` and ``r KL(sums | b)`` [Chizat et al.
2018]: what a shape lacks need not be filled. Both cases iterate

    u_i = (a_i / sum_j K_ij v_j)^q,    v_j = (b_j / sum_i K_ij u_i)^q,    q = r / (r + e)

with K = exp(s / e) and p = u K v. Logarithms of u and v are absorbed into K now and then, so that
nothing overflows at low temperatures.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

#: Iterations between absorptions, few at first, when u and v change most.
_ROUNDS = (1, 1, 1, 1, 2, 5, *[20] * 20)
#: Change of log u at which the iterations stop.
_CONVERGED = 1e-3
#: Logarithms this far below the largest of their row and column contribute nothing; this far above
#: it, single precision still holds the exponential.
_NEGLIGIBLE = -80.0


class Potentials(NamedTuple):
    """Logarithms of u (N,) and v (M,): the plan is ``exp(log u_i + s_ij / e + log v_j)``."""

    rows: Tensor
    columns: Tensor


class Kernel(Protocol):
    """exp(s / e) with potentials absorbed into it."""

    def first_potentials(self) -> Potentials:
        """Return potentials with which the largest entry of every row and column is about 1."""

    def absorb(self, rows: Tensor, columns: Tensor) -> None:
        """Absorb potentials (N,) and (M,)."""

    def row_sums(self, columns: Tensor) -> Tensor:
        """(N,) of the kernel times (M,)."""

    def column_sums(self, rows: Tensor) -> Tensor:
        """(M,) of the kernel times (N,)."""


class DenseKernel:
    """All pairs: (N, M) logarithms s / e."""

    def __init__(self, logarithms: Tensor) -> None:
        self._logarithms = logarithms
        self._kernel = logarithms  # until potentials are absorbed

    def first_potentials(self) -> Potentials:
        """Return potentials with which the largest entry of every row and column is about 1."""
        rows = -self._logarithms.amax(dim=1)  # (N,)
        return Potentials(rows, -(self._logarithms + rows[:, None]).amax(dim=0))

    def absorb(self, rows: Tensor, columns: Tensor) -> None:
        """Absorb potentials (N,) and (M,)."""
        kernel = self._logarithms + columns  # (N, M)
        self._kernel = kernel.add_(rows[:, None]).clamp_min_(_NEGLIGIBLE).exp_()

    def row_sums(self, columns: Tensor) -> Tensor:
        """(N,) of the kernel times (M,)."""
        return self._kernel @ columns

    def column_sums(self, rows: Tensor) -> Tensor:
        """(M,) of the kernel times (N,)."""
        return rows @ self._kernel


class SparseKernel:
    """Listed pairs: (E,) logarithms at (E,) rows and columns, none of them twice."""

    def __init__(self, rows: Tensor, columns: Tensor, logarithms: Tensor, shape: tuple[int, int]):
        self._rows, self._columns, self._logarithms = rows, columns, logarithms
        self._shape, self._matrix = shape, csr_matrix(shape)

    def first_potentials(self) -> Potentials:
        """Return potentials with which the largest entry of every row and column is about 1."""
        rows, columns = (self._logarithms.new_full((n,), -torch.inf) for n in self._shape)
        rows = -rows.scatter_reduce(0, self._rows, self._logarithms, "amax")  # (N,)
        shifted = self._logarithms + rows[self._rows]  # (E,)
        return Potentials(rows, -columns.scatter_reduce(0, self._columns, shifted, "amax"))

    def absorb(self, rows: Tensor, columns: Tensor) -> None:
        """Absorb potentials (N,) and (M,)."""
        values = self._logarithms + rows[self._rows] + columns[self._columns]  # (E,)
        entries = values.clamp_min(_NEGLIGIBLE).exp().cpu().numpy()  # (E,)
        place = self._rows.cpu().numpy(), self._columns.cpu().numpy()
        self._matrix = csr_matrix((entries, place), shape=self._shape)

    def row_sums(self, columns: Tensor) -> Tensor:
        """(N,) of the kernel times (M,)."""
        return _tensor(self._matrix @ columns.cpu().numpy(), like=columns)

    def column_sums(self, rows: Tensor) -> Tensor:
        """(M,) of the kernel times (N,)."""
        return _tensor(rows.cpu().numpy() @ self._matrix, like=rows)


def sinkhorn_potentials(
    kernel: Kernel,
    row_masses: Tensor,
    column_masses: Tensor,
    *,
    temperature: float,
    reach: float | None = None,
) -> Potentials:
    """Solve for the potentials.

    Parameters
    ----------
    kernel
        Of the scores over the temperature; every row and every column has an entry.
    row_masses, column_masses
        (N,) and (M,), positive.
    temperature, reach
        See the module; reach None keeps the masses exactly, and then their sums must agree.
    """
    power = 1.0 if reach is None else reach / (reach + temperature)
    log_rows, log_columns = row_masses.log(), column_masses.log()  # (N,), (M,)
    tiny = math.exp(_NEGLIGIBLE)
    rows, columns = kernel.first_potentials()  # (N,), (M,)
    for iterations in _ROUNDS:
        kernel.absorb(rows, columns)
        absorbed_rows, absorbed_columns, before = rows, columns, rows
        for _ in range(iterations):
            # The sums contain what was absorbed on their own side; divide it out again.
            sums = kernel.row_sums(_exponential(columns - absorbed_columns))  # (N,)
            before = rows
            rows = power * (log_rows - (sums + tiny).log() + absorbed_rows)
            sums = kernel.column_sums(_exponential(rows - absorbed_rows))  # (M,)
            columns = power * (log_columns - (sums + tiny).log() + absorbed_columns)
        if float((rows - before).abs().max()) < _CONVERGED:
            break
    return Potentials(rows, columns)


def _exponential(logarithms: Tensor) -> Tensor:
    return logarithms.clamp(_NEGLIGIBLE, -_NEGLIGIBLE).exp()


def _tensor(array: Any, *, like: Tensor) -> Tensor:
    return torch.from_numpy(np.asarray(array)).to(like)
