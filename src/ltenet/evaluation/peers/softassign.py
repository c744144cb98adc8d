"""Robust point matching: softassign inside deterministic annealing.

RPM [Rangarajan et al. 1997, Gold et al. 1998] alternates, while a temperature T falls, between soft
matches

    m_ai ~ exp(-|f(x_a) - y_i|^2 / T),

scaled until rows and columns sum to 1, a slack row and a slack column included, and the deformation
f that suits the means of the matched points. TPS-RPM [Chui and Rangarajan 2003] takes thin-plate
splines for f, whose stiffness falls with T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.landing import in_one_scale, landed, thinned
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.shape import Shape

#: Fits at each temperature, and sweeps of row and column scaling in each of them.
_FITS, _SWEEPS = 5, 10
#: Slack entries, over the number of points, and the noise of a whole row against ties. It must be
#: far below the slack: what is far from everything shall go there, not to the mean of all targets.
_SLACK, _NOISE = 0.1, 1e-4
#: Prices of the bending and of the affine part's distance from the identity, over points and T.
_BENDING, _AFFINE = 1.0, 0.01


class _Family(Protocol):
    """Deformations that can be fitted to goals for their own points."""

    def fit(self, goals: FloatArray, temperature: float) -> None:
        """Fit to (N, 3) goals of the points."""

    def moved(self, points: FloatArray) -> FloatArray:
        """(M, 3) any points after the deformation."""


class AffineFit:
    """Affine maps tied to the identity, for (N, 3) points."""

    def __init__(self, points: FloatArray) -> None:
        self._plane = _homogeneous(points)  # (N, 4)
        self._matrix = np.eye(4)[:, 1:]  # (4, 3)

    def fit(self, goals: FloatArray, temperature: float) -> None:
        """Fit to (N, 3) goals."""
        price = _AFFINE * len(goals) * temperature
        self._matrix = _tied_affine(self._plane, goals, price)

    def moved(self, points: FloatArray) -> FloatArray:
        """(M, 3) points after the map."""
        moved: FloatArray = _homogeneous(points) @ self._matrix  # (M, 3)
        return moved


class ThinPlateFit:
    """Thin-plate splines with all of (N, 3) points as controls, kernel ``-r``.

    The bending energy is diagonalised once, so that each stiffness costs two products.
    """

    def __init__(self, points: FloatArray) -> None:
        self._points = points  # (N, 3)
        self._plane = _homogeneous(points)  # (N, 4)
        basis = np.linalg.qr(self._plane, mode="complete")[0]  # (N, N)
        free = basis[:, np.linalg.matrix_rank(self._plane) :]  # (N, F)
        self._kernel = -cdist(points, points)  # (N, N)
        self._energies, vectors = np.linalg.eigh(free.T @ self._kernel @ free)  # (F,), (F, F)
        self._modes = free @ vectors  # (N, F)
        self._loads = np.zeros_like(points)  # (N, 3)
        self._matrix = np.eye(4)[:, 1:]  # (4, 3)

    def fit(self, goals: FloatArray, temperature: float) -> None:
        """Fit to (N, 3) goals."""
        count = len(goals)
        stiffness = _BENDING * count * temperature
        shares = (self._modes.T @ goals) / (self._energies + stiffness)[:, None]  # (F, 3)
        self._loads = self._modes @ shares  # (N, 3)
        rest = goals - self._kernel @ self._loads  # (N, 3)
        self._matrix = _tied_affine(self._plane, rest, _AFFINE * count * temperature)

    def moved(self, points: FloatArray) -> FloatArray:
        """(M, 3) points after the spline."""
        own = points is self._points
        kernel = self._kernel if own else -cdist(points, self._points)  # (M, N)
        moved: FloatArray = _homogeneous(points) @ self._matrix + kernel @ self._loads  # (M, 3)
        return moved


def soft_matches(distances: FloatArray, temperature: float, noise: FloatArray) -> FloatArray:
    """(N, M) soft matches: rows and columns sum to at most 1, with the slack to exactly 1.

    Parameters
    ----------
    distances
        (N, M) squared.
    temperature
        T.
    noise
        (N, M) small numbers that break ties.
    """
    rows, columns = distances.shape
    matches = np.exp(-distances / temperature) + noise  # (N, M)
    spare_row = np.full(columns, _SLACK / rows)  # (M,) matches of targets with nothing
    spare_column = np.full(rows, _SLACK / columns)  # (N,) matches of sources with nothing
    for _ in range(_SWEEPS):
        total = matches.sum(axis=1) + spare_column  # (N,)
        matches /= total[:, None]
        spare_column /= total
        total = matches.sum(axis=0) + spare_row  # (M,)
        matches /= total
        spare_row /= total
    return matches


@dataclass(frozen=True, kw_only=True)
class SoftAssign:
    """Deform the source by annealed soft matches, then take the nearest points.

    Attributes
    ----------
    deformation
        "affine" (RPM) or "tps" (TPS-RPM).
    hot, cold
        First temperature, of targets of unit radius, and the last, in units of the target's mean
        squared spacing.
    cooling
        Factor from one temperature to the next.
    points
        Shapes with more points are thinned to this many; the deformation then moves all.
    """

    deformation: Literal["affine", "tps"] = "tps"
    hot: float = 0.5
    cold: float = 0.5
    cooling: float = 0.93
    points: int = 512

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        centred, frame = in_one_scale(source, target)  # (N, 3), (M, 3)
        return landed(source, target, self.register(centred, frame), frame)

    def register(self, points: FloatArray, frame: FloatArray) -> FloatArray:
        """(N, 3) points, moved to (M, 3) points of a target of about unit radius."""
        start = np.ascontiguousarray(points[thinned(points, self.points)])  # (n, 3)
        goal = frame[thinned(frame, self.points)]  # (m, 3)
        family: _Family = AffineFit(start) if self.deformation == "affine" else ThinPlateFit(start)
        noise = np.random.default_rng(0).random((len(start), len(goal)))  # (n, m)
        noise *= _NOISE / (len(start) * len(goal))
        spacing = np.square(nearest_neighbors(goal, goal, 2).distances[:, -1]).mean()
        temperature, moved = self.hot, start
        while temperature >= min(self.cold * spacing, self.hot):
            for _ in range(_FITS):
                matches = soft_matches(cdist(moved, goal, "sqeuclidean"), temperature, noise)
                # What the slack takes stays where it is: noise alone would draw it to the centre,
                # and in the end everything with it.
                shares = np.minimum(matches.sum(axis=1, keepdims=True), 1.0)  # (n, 1)
                family.fit(matches @ goal + (1 - shares) * moved, temperature)
                moved = family.moved(start)  # (n, 3)
            temperature *= self.cooling
        return family.moved(points)


def _homogeneous(points: FloatArray) -> FloatArray:
    """(N, 4) points with a 1 in front."""
    return np.concatenate([np.ones((len(points), 1)), points], axis=1)


def _tied_affine(plane: FloatArray, goals: FloatArray, price: float) -> FloatArray:
    """(4, 3) affine map of (N, 4) points to (N, 3) goals, drawn to the identity at a price."""
    identity = np.eye(4)[:, 1:]  # (4, 3)
    system = plane.T @ plane + price * np.eye(4)  # (4, 4)
    matrix: FloatArray = identity + np.linalg.solve(system, plane.T @ (goals - plane @ identity))
    return matrix
