"""Gromov-Wasserstein matching [Memoli 2011]: a plan between points that keeps their distances.

Two metric spaces are compared by the plan that least changes the distances within them. Alone, that
is blind to symmetries and stuck at its uniform start, so the descriptors of the points are fused in
[Vayer et al. 2019]: ``(1 - a) <plan, descriptor distances> + a (change of distances)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ltenet.correspondence import Correspondence
from ltenet.evaluation.optional import optional
from ltenet.evaluation.peers.descriptor_distances import standardized
from ltenet.evaluation.peers.descriptors import wave_kernel_signature
from ltenet.evaluation.peers.landing import through_samples
from ltenet.evaluation.peers.spectrum import Spectrum, spectrum
from ltenet.evaluation.peers.surface_descriptors import all_geodesics
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.shape import Shape

#: Time of the diffusion distance, for surfaces of area 1.
_TIME = 0.01


@dataclass(frozen=True, kw_only=True)
class GromovWasserstein:
    """The plan of POT's fused Gromov-Wasserstein solver; partners have its largest entries.

    Attributes
    ----------
    metric
        Distances within a shape: "geodesic", or "diffusion" at a fixed time.
    alpha
        Share of the distances; the rest is that of wave kernel signatures.
    modes
        Eigenpairs of each shape.
    points
        Shapes with more points are thinned to this many; the others follow their neighbours.
    """

    metric: Literal["geodesic", "diffusion"] = "geodesic"
    alpha: float = 0.5
    modes: int = 100
    points: int = 512

    def __post_init__(self) -> None:
        optional("ot")  # shows at once if it is missing

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return through_samples(source, target, self.points, self.partners)

    def partners(self, source: Shape, target: Shape) -> IntArray:
        """(N,) target point of each source point."""
        ours, theirs = (spectrum(shape, self.modes) for shape in (source, target))
        first, second = (self._distances(*own) for own in ((source, ours), (target, theirs)))
        # One scale for both, so that what is near on one is near on the other.
        scale = max(float(second.max()), 1e-300)
        costs = self._costs(ours, theirs)  # (N, M)
        plan = optional("ot").gromov.fused_gromov_wasserstein(
            costs,
            first / scale,
            second / scale,
            ours.masses / ours.masses.sum(),
            theirs.masses / theirs.masses.sum(),
            loss_fun="square_loss",
            alpha=self.alpha,
            symmetric=True,
        )  # (N, M)
        # Of the share that a target gives away: a large target is not everybody's partner.
        shares = np.asarray(plan) / theirs.masses  # (N, M)
        found: IntArray = shares.argmax(axis=1)
        return found

    def _distances(self, shape: Shape, modes: Spectrum) -> FloatArray:
        if self.metric == "geodesic":
            return all_geodesics(shape.points, shape.faces)
        return diffusion_distances(modes, time=_TIME)

    def _costs(self, ours: Spectrum, theirs: Spectrum) -> FloatArray:
        """(N, M) distances of wave kernel signatures, the mean over all pairs 1."""
        costs = standardized(*(wave_kernel_signature(modes) for modes in (ours, theirs)))
        return costs / max(float(costs.mean()), 1e-300)


def diffusion_distances(modes: Spectrum, *, time: float) -> FloatArray:
    """(N, N) ``sqrt(sum_k exp(-2 t l_k) (phi_k(x) - phi_k(y))^2)``."""
    scaled = modes.functions * np.exp(-time * modes.values)  # (N, K)
    squares = np.square(scaled).sum(axis=1)  # (N,)
    products = squares[:, None] + squares - 2 * scaled @ scaled.T  # (N, N)
    distances: FloatArray = np.sqrt(np.maximum(products, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances
