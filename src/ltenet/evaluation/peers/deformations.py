"""Families of deformations with parameters: rigid, affine, thin-plate splines.

Each takes a vector of parameters to moved points; zeros leave every point where it is. Rigid and
affine motions are of the points themselves, thin plates bend between evenly spread controls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.farthest_points import farthest_point_sample

DeformationKind = Literal["rigid", "affine", "tps"]

#: Signs that turn a vector v into the matrix of the cross product v x.
_CROSS = torch.tensor(
    [
        [[0, 0, 0], [0, 0, -1], [0, 1, 0]],
        [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
        [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
    ],
    dtype=torch.float64,
)  # (3, 3, 3)


class Deformation(Protocol):
    """Moves points by parameters; differentiable in these."""

    @property
    def size(self) -> int:
        """Number of parameters."""

    def moved(self, parameters: Tensor, points: FloatArray) -> Tensor:
        """(N, 3) points after the deformation."""

    def bending(self, parameters: Tensor) -> Tensor:
        """How much it bends, from 0; a scalar."""


@dataclass(frozen=True)
class Rigid:
    """A rotation vector and a shift."""

    size: int = 6

    def moved(self, parameters: Tensor, points: FloatArray) -> Tensor:
        """(N, 3) points, turned about the origin and shifted."""
        turn = torch.linalg.matrix_exp(torch.einsum("k,kij->ij", parameters[:3], _CROSS))  # (3, 3)
        moved: Tensor = torch.from_numpy(points) @ turn.T + parameters[3:]  # (N, 3)
        return moved

    def bending(self, parameters: Tensor) -> Tensor:
        """Nothing bends."""
        return parameters.new_zeros(())


@dataclass(frozen=True)
class Affine:
    """A matrix and a shift."""

    size: int = 12

    def moved(self, parameters: Tensor, points: FloatArray) -> Tensor:
        """(N, 3) points after the affine map."""
        moved = torch.from_numpy(points)  # (N, 3)
        return moved + moved @ parameters[:9].reshape(3, 3).T + parameters[9:]

    def bending(self, parameters: Tensor) -> Tensor:
        """Nothing bends."""
        return parameters.new_zeros(())


class ThinPlate:
    """An affine map, and a smooth bend that is zero without load.

    In three dimensions the kernel is ``-r``. Loads are orthogonal to affine maps; they are
    written in a basis in which the bending energy is the sum of their squares, which also makes
    the parameters alike in size.

    Parameters
    ----------
    points
        (N, 3) from which the controls are chosen, evenly spread.
    controls
        How many.
    """

    def __init__(self, points: FloatArray, *, controls: int = 100) -> None:
        count = min(controls, len(points))
        self.controls = points[farthest_point_sample(points, count)]  # (C, 3)
        plane = np.concatenate([np.ones((count, 1)), self.controls], axis=1)  # (C, 4)
        free = np.linalg.qr(plane, mode="complete")[0][:, np.linalg.matrix_rank(plane) :]  # (C, F)
        energy = free.T @ -cdist(self.controls, self.controls) @ free  # (F, F)
        values, vectors = np.linalg.eigh(energy)
        kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
        self._loads = free @ (vectors[:, kept] / np.sqrt(values[kept]))  # (C, F)
        self.size = 12 + 3 * self._loads.shape[1]
        self._affine = Affine()
        # Optimisation asks for the same points again and again.
        self._last: tuple[FloatArray, Tensor] | None = None

    def moved(self, parameters: Tensor, points: FloatArray) -> Tensor:
        """(N, 3) points after the affine map and the bend."""
        bend = self._basis(points) @ parameters[12:].reshape(-1, 3)  # (N, 3)
        return self._affine.moved(parameters[:12], points) + bend

    def bending(self, parameters: Tensor) -> Tensor:
        """Bending energy."""
        return parameters[12:].square().sum()

    def _basis(self, points: FloatArray) -> Tensor:
        if self._last is None or self._last[0] is not points:
            basis = -cdist(points, self.controls) @ self._loads  # (N, F)
            self._last = points, torch.from_numpy(basis)
        return self._last[1]


def make_deformation(kind: DeformationKind, points: FloatArray) -> Deformation:
    """Return the family of that name for (N, 3) points."""
    if kind == "rigid":
        return Rigid()
    return Affine() if kind == "affine" else ThinPlate(points)
