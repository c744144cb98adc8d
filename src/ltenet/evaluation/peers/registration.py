"""Density registration: two shapes as mixtures of Gaussians, one deformed until they agree.

What "agree" means, with the inner product <p, q> of the two densities, each the mean of the
Gaussians at its points:

- ``kc``, kernel correlation (Tsin and Kanade 2004): ``-<p, q>``;
- ``l2``, the L2 distance of GMMReg (Jian and Vemuri 2011): ``<p, p> - 2 <p, q> + <q, q>``;
- ``cs``, Cauchy-Schwarz (Hasanbelliu et al. 2014, and the paper's own objective):
  ``log <p, p> / 2 + log <q, q> / 2 - log <p, q>``.

``kc`` and ``l2`` are divided by ``<q, q>``, so that the price of bending means the same for all.
The bandwidth falls from coarse to fine; each level starts where the one before ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.deformations import Deformation, DeformationKind, make_deformation
from ltenet.evaluation.peers.landing import in_one_scale, landed, thinned
from ltenet.geometry.arrays import FloatArray
from ltenet.method.divergence import log_kernel_sums, mean_spacing
from ltenet.shape import Shape

DensityKind = Literal["kc", "l2", "cs"]


class Products(NamedTuple):
    """Logarithms of the inner products of two densities, up to one constant for all three.

    Attributes
    ----------
    between
        log <p, q>, a scalar.
    first, second
        log <p, p> and log <q, q>.
    """

    between: Tensor
    first: Tensor
    second: Tensor


def products(first: Tensor, second: Tensor, sigma: float) -> Products:
    """Inner products of the mean Gaussians of width `sigma` at (N, 3) and at (M, 3) points."""
    sums = log_kernel_sums(first[None], second[None], sigma)
    counts = [np.log(len(points)) for points in (first, second)]
    return Products(
        between=sums.between[0] - counts[0] - counts[1],
        first=sums.first[0] - 2 * counts[0],
        second=sums.second[0] - 2 * counts[1],
    )


def _kernel_correlation(logs: Products) -> Tensor:
    return -torch.exp(logs.between - logs.second)


def _l2(logs: Products) -> Tensor:
    return torch.exp(logs.first - logs.second) - 2 * torch.exp(logs.between - logs.second) + 1


def _cauchy_schwarz(logs: Products) -> Tensor:
    return 0.5 * (logs.first + logs.second) - logs.between


#: What is minimised, by name.
DENSITIES: dict[DensityKind, Callable[[Products], Tensor]] = {
    "kc": _kernel_correlation,
    "l2": _l2,
    "cs": _cauchy_schwarz,
}


@dataclass(frozen=True, kw_only=True)
class DensityRegistration:
    """Deform the source until its density agrees with the target's, then take the nearest points.

    Attributes
    ----------
    density
        What is minimised: "kc", "l2" or "cs".
    deformation
        "rigid", "affine" or "tps", thin-plate splines.
    coarse, fine
        First bandwidth, of shapes of unit radius, and the last, in units of the mean spacing of
        the target.
    levels
        Number of bandwidths, evenly spaced in their logarithm.
    iterations
        Of L-BFGS, at most, at each level.
    stiffness
        Price of the bending energy at the first level; it falls with the bandwidth.
    points
        Shapes with more points are thinned to this many; the deformation then moves all.
    """

    density: DensityKind = "cs"
    deformation: DeformationKind = "tps"
    coarse: float = 0.5
    fine: float = 1.0
    levels: int = 5
    iterations: int = 60
    stiffness: float = 0.01
    points: int = 512

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        centred, frame = in_one_scale(source, target)  # (N, 3), (M, 3)
        moved = self.register(centred, frame)  # (N, 3)
        return landed(source, target, moved, frame)

    def register(self, points: FloatArray, frame: FloatArray) -> FloatArray:
        """(N, 3) points, moved to (M, 3) points of a target of about unit radius."""
        deformation = make_deformation(self.deformation, points)
        start = np.ascontiguousarray(points[thinned(points, self.points)])  # (n, 3)
        goal = torch.from_numpy(frame[thinned(frame, self.points)])  # (m, 3)
        finest = min(self.coarse, self.fine * float(mean_spacing(goal[None])[0]))
        parameters = np.zeros(deformation.size)  # (P,)
        for sigma in np.geomspace(self.coarse, finest, self.levels).tolist():
            parameters = self._improved(deformation, parameters, start, goal, sigma)
        with torch.no_grad():
            moved: FloatArray = deformation.moved(torch.from_numpy(parameters), points).numpy()
        return moved

    def _improved(
        self,
        deformation: Deformation,
        parameters: FloatArray,
        points: FloatArray,
        goal: Tensor,
        sigma: float,
    ) -> FloatArray:
        """Best parameters (P,) for one bandwidth, from those of the one before."""
        density = DENSITIES[self.density]
        price = self.stiffness * sigma / self.coarse

        def loss(values: Tensor) -> Tensor:
            moved = deformation.moved(values, points)  # (n, 3)
            return density(products(moved, goal, sigma)) + price * deformation.bending(values)

        return minimized(loss, parameters, iterations=self.iterations)


def minimized(
    loss: Callable[[Tensor], Tensor], parameters: FloatArray, *, iterations: int
) -> FloatArray:
    """(P,) parameters of the least loss nearby, by L-BFGS from those given."""

    def value_and_gradient(values: FloatArray) -> tuple[float, FloatArray]:
        tensor = torch.tensor(values, requires_grad=True)  # (P,)
        total = loss(tensor)
        total.backward()
        assert tensor.grad is not None
        return float(total.detach()), tensor.grad.numpy()

    found = minimize(
        value_and_gradient,
        parameters,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations},
    )
    best: FloatArray = found.x
    return best
