"""RPM-L2E [Ma et al. 2015]: shape contexts propose matches, a robust fit moves the source.

Each round matches the shape contexts of the moved source and of the target one to one, with a price
at which a point rather stays alone, and fits a smooth displacement to the matches by the L2E
estimator, which forgives wrong ones:

    min_c  -(2 / n) (2 pi s^2)^(-3/2) sum_i exp(-|y_i - x_i - v(x_i)|^2 / (2 s^2)) + l/2 tr c^T K c

with ``v(x) = sum_k c_k exp(-0.8 |x - z_k|^2)`` on sets of zero mean and unit radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from torch import Tensor

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.descriptor_distances import chi_squared
from ltenet.evaluation.peers.landing import landed, thinned
from ltenet.evaluation.peers.point_histograms import shape_context
from ltenet.evaluation.peers.registration import minimized
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.shape import Shape

#: Chi-squared distance at which a point rather stays without a partner.
_ALONE = 0.15
#: Width of the kernel, first variance of the estimator, and how often that is halved.
_KERNEL, _VARIANCE, _HALVINGS = 0.8, 0.05, 3
#: Steps of L-BFGS for each variance.
_STEPS = 50


class _Unit(NamedTuple):
    """Centre (3,) and radius of a set: what brings it to zero mean and unit radius."""

    centre: FloatArray
    radius: float

    @classmethod
    def of(cls, points: FloatArray) -> _Unit:
        centre = points.mean(axis=0)  # (3,)
        radius = float(np.sqrt(np.square(points - centre).sum(axis=1).mean()))
        return cls(centre, max(radius, 1e-300))

    def apply(self, points: FloatArray) -> FloatArray:
        scaled: FloatArray = (points - self.centre) / self.radius
        return scaled


def likely_pairs(first: FloatArray, second: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows (P,) and columns (P,) of the best one-to-one matches of (N, 3) and (M, 3) points.

    By shape contexts; points whose match would cost more than staying alone are left out.
    """
    normals = np.zeros_like(first), np.zeros_like(second)  # axes of the world need none
    costs = chi_squared(shape_context(first, normals[0]), shape_context(second, normals[1]))
    # A dummy partner for everyone is the same as a ceiling on the cost.
    rows, columns = linear_sum_assignment(np.minimum(costs, _ALONE))
    kept = costs[rows, columns] < _ALONE  # (n,)
    if kept.sum() < 4:
        kept[:] = True
    return rows[kept], columns[kept]


def robust_displacement(
    points: FloatArray, goals: FloatArray, controls: FloatArray, *, stiffness: float
) -> FloatArray:
    """(C, 3) coefficients of the displacement from (n, 3) points to (n, 3) goals.

    Parameters
    ----------
    points, goals
        Matches, some of them wrong, of zero mean and unit radius.
    controls
        (C, 3) centres of the kernels.
    stiffness
        Price of the displacement's roughness.
    """
    kernel = torch.from_numpy(_gaussians(points, controls))  # (n, C)
    gram = torch.from_numpy(_gaussians(controls, controls))  # (C, C)
    offsets = torch.from_numpy(goals - points)  # (n, 3)
    coefficients = np.zeros(3 * len(controls))
    for halving in range(_HALVINGS + 1):
        variance = _VARIANCE / 2**halving
        norm = 2.0 * (2 * math.pi * variance) ** -1.5

        def loss(values: Tensor, variance: float = variance, norm: float = norm) -> Tensor:
            own = values.reshape(-1, 3)  # (C, 3)
            squares = (offsets - kernel @ own).square().sum(dim=1)  # (n,)
            fit = -norm * torch.exp(-squares / (2 * variance)).mean()
            return fit + 0.5 * stiffness * (own * (gram @ own)).sum()

        coefficients = minimized(loss, coefficients, iterations=_STEPS)
    return coefficients.reshape(-1, 3)


@dataclass(frozen=True, kw_only=True)
class RPML2E:
    """Move the source by robustly fitted displacements, then take the nearest points.

    Attributes
    ----------
    rounds
        Proposals and fits.
    controls
        Kernels of a displacement.
    stiffness
        Price of its roughness.
    points
        Shapes with more points are thinned to this many; the displacement then moves all.
    """

    rounds: int = 10
    controls: int = 60
    stiffness: float = 0.1
    points: int = 512

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        points, frame = (shape.normalized(radius=1.0).points for shape in (source, target))
        goal = frame[thinned(frame, self.points)]  # (m, 3)
        rows = thinned(points, self.points)  # (n,)
        moved = points  # (N, 3)
        for _ in range(self.rounds):
            start = moved[rows]  # (n, 3)
            chosen, partners = likely_pairs(start, goal)  # (P,) each
            ours, theirs = _Unit.of(start[chosen]), _Unit.of(goal[partners])
            x, y = ours.apply(start[chosen]), theirs.apply(goal[partners])  # (P, 3) each
            scaled = ours.apply(start)  # (n, 3)
            count = min(self.controls, len(start))
            controls = scaled[farthest_point_sample(scaled, count)]  # (C, 3)
            weights = robust_displacement(x, y, controls, stiffness=self.stiffness)  # (C, 3)
            every = ours.apply(moved)  # (N, 3)
            every = every + _gaussians(every, controls) @ weights
            moved = every * theirs.radius + theirs.centre
        return landed(source, target, moved, frame)


def _gaussians(points: FloatArray, controls: FloatArray) -> FloatArray:
    """(N, C) kernel between (N, 3) points and (C, 3) controls."""
    kernel: FloatArray = np.exp(-_KERNEL * cdist(points, controls, "sqeuclidean"))  # (N, C)
    return kernel
