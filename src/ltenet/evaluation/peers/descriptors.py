"""Spectral descriptors of a point, and the peers that match the nearest descriptor.

They see a surface only from within: left and right are the same to them, and so is every pose that
does not stretch. HKS follows Sun et al. 2009, WKS Aubry et al. 2011, GPS Rustamov 2007.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.spectrum import Spectrum, spectrum
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.method.neighbors import BLOCK_ENTRIES
from ltenet.shape import Shape


def heat_kernel_signature(modes: Spectrum, *, times: int = 100) -> FloatArray:
    """(N, T) how much heat stays at a point after a time: sum_k exp(-t lambda_k) phi_k(x)^2.

    Times are spread evenly in their logarithm over the range that the eigenvalues resolve, the
    same for every shape of area 1; each is divided by the heat of the whole shape.
    """
    values, squares = modes.values[1:], np.square(modes.functions[:, 1:])  # (K,), (N, K)
    steps = np.geomspace(4 * np.log(10) / values[-1], 4 * np.log(10) / values[0], times)  # (T,)
    heat = np.exp(-np.outer(values, steps))  # (K, T)
    signature: FloatArray = squares @ (heat / heat.sum(axis=0))  # (N, T)
    return signature


def wave_kernel_signature(modes: Spectrum, *, energies: int = 100) -> FloatArray:
    """(N, E) how likely a particle of an energy is at a point.

    sum_k exp(-(e - log lambda_k)^2 / (2 s^2)) phi_k(x)^2, divided by the sum of its weights; s is
    seven steps of the energies, which keep two s away from the ends.
    """
    levels, squares = np.log(modes.values[1:]), np.square(modes.functions[:, 1:])  # (K,), (N, K)
    low, high = levels[0], levels[-1]
    width = 7 * (high - low) / energies
    steps = np.linspace(low + 2 * width, high - 2 * width, energies)  # (E,)
    weights = np.exp(-np.square(levels[:, None] - steps) / (2 * width**2))  # (K, E)
    signature: FloatArray = squares @ (weights / weights.sum(axis=0))  # (N, E)
    return signature


def global_point_signature(modes: Spectrum, *, modes_used: int = 20) -> FloatArray:
    """(N, K) |phi_k(x)| / sqrt(lambda_k): absolute values, because signs are arbitrary."""
    kept = slice(1, 1 + modes_used)
    signature: FloatArray = np.abs(modes.functions[:, kept]) / np.sqrt(modes.values[kept])
    return signature


DescriptorKind = Literal["hks", "wks", "gps"]

#: Descriptors by name.
DESCRIPTORS: dict[DescriptorKind, Callable[[Spectrum], FloatArray]] = {
    "hks": heat_kernel_signature,
    "wks": wave_kernel_signature,
    "gps": global_point_signature,
}


@dataclass(frozen=True, kw_only=True)
class NearestDescriptor:
    """The target point with the nearest descriptor.

    Attributes
    ----------
    kind
        "hks", "wks" or "gps".
    modes
        Eigenpairs of each shape.
    """

    kind: DescriptorKind = "wks"
    modes: int = 100

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        describe = DESCRIPTORS[self.kind]
        first, second = (describe(spectrum(shape, self.modes)) for shape in (source, target))
        # Fewer points have fewer modes; each column counts alike.
        columns = min(first.shape[1], second.shape[1])
        scale = np.maximum(second[:, :columns].std(axis=0), 1e-12)  # (T,)
        indices = nearest_descriptors(first[:, :columns] / scale, second[:, :columns] / scale)
        return Correspondence(
            indices=indices, target_size=len(target), source=source, target=target
        )


def nearest_descriptors(queries: FloatArray, rows: FloatArray) -> IntArray:
    """For each of (N, T) queries the nearest of (M, T) rows, (N,), in blocks."""
    centre = rows.mean(axis=0)  # (T,); small norms, small cancellation
    points = torch.from_numpy(np.ascontiguousarray(rows - centre))  # (M, T)
    squares = points.square().sum(dim=1)  # (M,)
    found = [
        torch.addmm(squares, block, points.T, alpha=-2).argmin(dim=1)  # (n,)
        for block in torch.from_numpy(queries - centre).split(max(1, BLOCK_ENTRIES // len(rows)))
    ]
    indices: IntArray = torch.cat(found).numpy()
    return indices
