"""Spectral graph matching: shapes as graphs, points compared by eigenvectors.

- ``umeyama`` [Umeyama 1988]: one-to-one matches by ``|U| |V|^T`` of the proximity matrices;
- ``modal`` [Carcassoni and Hancock 2003]: ``p_ij ~ sum_l exp(-k (|u_il| - |v_jl|)^2)``;
- ``laplacian-em`` [Knossow et al. 2009]: a few Laplacian eigenfunctions, their signs and order by
  histograms of their values, then expectation maximisation for the orthogonal matrix between them,
  with a uniform class for outliers.

All look at a surface from within: they cannot tell left from right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.landing import through_samples
from ltenet.evaluation.peers.spectrum import spectrum
from ltenet.evaluation.peers.surface_descriptors import all_geodesics
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.refinement.assignment import best_assignment
from ltenet.shape import Shape

#: Width of the proximity, a share of the mean geodesic distance.
_WIDTH = 0.3
#: Sharpness of modal agreement, for eigenvectors of unit mean square.
_SHARPNESS = 4.0
#: Bins of a histogram of eigenfunction values, which run from -4 to 4.
_BINS, _RANGE = 64, 4.0
#: Rounds of expectation maximisation, and the weight of the outlier class.
_ROUNDS, _OUTLIERS = 40, 0.1

SpectralKind = Literal["umeyama", "modal", "laplacian-em"]


@dataclass(frozen=True, kw_only=True)
class SpectralMatching:
    """Match the points of two graphs by their eigenvectors.

    Attributes
    ----------
    kind
        "umeyama", "modal" or "laplacian-em".
    modes
        Eigenvectors of the proximity; "laplacian-em" uses a few Laplacian ones, see `functions`.
    functions
        Laplacian eigenfunctions of "laplacian-em", the constant one not counted.
    points
        Shapes with more points are thinned to this many; the others follow their neighbours.
    """

    kind: SpectralKind = "laplacian-em"
    modes: int = 50
    functions: int = 8
    points: int = 1024

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return through_samples(source, target, self.points, self.partners)

    def partners(self, source: Shape, target: Shape) -> IntArray:
        """(N,) target point of each source point."""
        if self.kind == "laplacian-em":
            count = min(self.functions, len(source) - 1, len(target) - 1)
            first, second = (_embedding(shape, count) for shape in (source, target))
            return matched_embeddings(first, second)
        count = min(self.modes, len(source), len(target))
        first, second = (proximity_modes(shape, count) for shape in (source, target))
        scores = umeyama_scores(first, second)
        if self.kind == "modal":
            scores = modal_scores(first, second)
        found: IntArray = best_assignment(torch.from_numpy(scores)).numpy()
        return found


def proximity_modes(shape: Shape, count: int) -> FloatArray:
    """(N, k) leading eigenvectors of the Gaussian of geodesic distances; unit mean square each."""
    distances = all_geodesics(shape.points, shape.faces)  # (N, N)
    width = max(_WIDTH * float(distances.mean()), 1e-300)
    proximity = np.exp(-np.square(distances / width) / 2)  # (N, N)
    values, vectors = np.linalg.eigh(proximity)
    leading = np.argsort(-np.abs(values), kind="stable")[:count]  # (k,)
    modes: FloatArray = vectors[:, leading] * np.sqrt(len(shape))  # (N, k)
    return modes


def umeyama_scores(first: FloatArray, second: FloatArray) -> FloatArray:
    """(N, M) agreement ``|U| |V|^T`` of (N, k) and (M, k) eigenvectors."""
    scores: FloatArray = np.abs(first) @ np.abs(second).T
    return scores


def modal_scores(first: FloatArray, second: FloatArray) -> FloatArray:
    """(N, M) sum over eigenvectors of Gaussians of the difference of absolute values."""
    scores = np.zeros((len(first), len(second)))
    for ours, theirs in zip(np.abs(first).T, np.abs(second).T, strict=True):  # (N,), (M,)
        scores += np.exp(-_SHARPNESS * np.square(ours[:, None] - theirs))
    return scores


def _embedding(shape: Shape, count: int) -> FloatArray:
    """(N, k) Laplacian eigenfunctions after the constant one, of unit mean square."""
    functions: FloatArray = spectrum(shape, count + 1).functions[:, 1:]
    return functions


def signed_order(first: FloatArray, second: FloatArray) -> FloatArray:
    """(k, k) signed permutation that takes functions (N, k) to those of (M, k) most like them.

    Histograms of the values decide, of both signs; row i has its entry at its partner's column.
    """
    edges = np.linspace(-_RANGE, _RANGE, _BINS + 1)

    def cumulative(values: FloatArray) -> FloatArray:
        counts = np.histogram(np.clip(values, -_RANGE, _RANGE), edges)[0]
        shares: FloatArray = np.cumsum(counts) / len(values)
        return shares

    ours = np.stack([cumulative(f) for f in first.T])  # (k, B)
    both = [np.stack([cumulative(sign * g) for g in second.T]) for sign in (1, -1)]  # (k, B) each
    costs = np.stack([cdist(ours, theirs, "cityblock") for theirs in both])  # (2, k, k)
    rows, columns = linear_sum_assignment(costs.min(axis=0))
    matrix = np.zeros((len(ours), len(ours)))
    signs = np.where(costs[0] <= costs[1], 1.0, -1.0)  # (k, k)
    matrix[rows, columns] = signs[rows, columns]
    return matrix


def matched_embeddings(first: FloatArray, second: FloatArray) -> IntArray:
    """(N,) row of (M, k) matched to each row of (N, k), by EM for an orthogonal matrix."""
    matrix = signed_order(first, second)  # (k, k)
    variance = 0.5 * float(cdist(first @ matrix, second, "sqeuclidean").min(axis=1).mean())
    size = first.shape[1]
    volume = (2 * _RANGE) ** size  # of the outlier class
    for _ in range(_ROUNDS):
        variance = max(variance, 1e-6)
        squares = cdist(first @ matrix, second, "sqeuclidean")  # (N, M)
        weights = np.exp(-squares / (2 * variance))  # (N, M)
        level = _OUTLIERS / (1 - _OUTLIERS) * len(second) * (2 * np.pi * variance) ** (size / 2)
        weights /= weights.sum(axis=1, keepdims=True) + level / volume
        total = max(float(weights.sum()), 1e-300)
        left, _, right = np.linalg.svd(first.T @ weights @ second)
        matrix = left @ right  # (k, k)
        squares = cdist(first @ matrix, second, "sqeuclidean")  # (N, M)
        variance = float((weights * squares).sum()) / (total * size)
    nearest: IntArray = cdist(first @ matrix, second, "sqeuclidean").argmin(axis=1)
    return nearest
