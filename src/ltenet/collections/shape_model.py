"""Statistical shape model of shapes in one vertex order: Procrustes, modes, and how good they are.

Generalised Procrustes analysis [Gower 1975] removes position, rotation and, if wanted, size.
Principal component analysis of what is left gives the modes [Cootes et al. 1995]. Compactness,
generalisation and specificity judge the model, and with it the correspondence that it stands on
[Davies et al. 2002; Styner et al. 2003].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import Similarity, kabsch, umeyama

#: Rounds of Procrustes analysis, and the movement of the mean, in its size, that ends them.
_ROUNDS, _SETTLED = 50, 1e-10
#: Variance below this share of the largest is rounding.
_NOTHING = 1e-12
#: Specimens left out, at most, and shapes drawn, to measure a model.
LEFT_OUT, DRAWN = 50, 200


class Procrustes(NamedTuple):
    """Aligned shapes.

    Attributes
    ----------
    mean
        (V, 3) centred, of the median size of the shapes.
    aligned
        (n, V, 3)
    sizes
        (n,) centroid size of each shape before: root of the sum of squared distances to the centre.
    """

    mean: FloatArray
    aligned: FloatArray
    sizes: FloatArray


class ShapeModel(NamedTuple):
    """Mean and principal modes.

    Attributes
    ----------
    mean
        (V, 3)
    modes
        (K, V, 3) orthonormal as (K, 3V).
    variances
        (K,) of the scores, largest first.
    scores
        (n, K) coordinates of the shapes in the modes.
    """

    mean: FloatArray
    modes: FloatArray
    variances: FloatArray
    scores: FloatArray

    @property
    def explained(self) -> FloatArray:
        """(K,) share of the variance that each mode explains."""
        shares: FloatArray = self.variances / max(self.variances.sum(), 1e-300)
        return shares

    def project(self, points: FloatArray, *, modes: int | None = None) -> FloatArray:
        """Return the scores (n, k) of (n, V, 3) aligned shapes."""
        chosen = self.modes[:modes].reshape(len(self.modes[:modes]), -1)  # (k, 3V)
        scores: FloatArray = (points - self.mean).reshape(len(points), -1) @ chosen.T
        return scores

    def shapes(self, scores: FloatArray) -> FloatArray:
        """Return the shapes (n, V, 3) at (n, k) scores."""
        k = scores.shape[1]
        moved = scores @ self.modes[:k].reshape(k, -1)  # (n, 3V)
        shapes: FloatArray = self.mean + moved.reshape(len(scores), *self.mean.shape)
        return shapes


class Quality(NamedTuple):
    """How good a model is with 1, 2, ... modes, in the unit of the mean.

    Attributes
    ----------
    compactness
        (K,) cumulative variance.
    generalisation
        (K,) mean distance between a shape and its reconstruction by the model of the others.
    specificity
        (K,) mean distance between shapes that the model draws and the nearest real one.
    """

    compactness: FloatArray
    generalisation: FloatArray
    specificity: FloatArray


def align_to(points: FloatArray, mean: FloatArray, *, scale: bool = True) -> Similarity:
    """Motion that best moves (V, 3) points onto the mean."""
    return umeyama(points, mean) if scale else kabsch(points, mean)


def generalized_procrustes(shapes: FloatArray, *, scale: bool = True) -> Procrustes:
    """Align (n, V, 3) shapes to their own mean.

    Parameters
    ----------
    shapes
        In one vertex order.
    scale
        Whether size is removed too.
    """
    if shapes.ndim != 3 or shapes.shape[2] != 3 or len(shapes) < 2:
        raise InputError(
            f"got shapes of dimensions {shapes.shape}, expected (n, V, 3) with at least two; "
            "try more specimens"
        )
    centred = shapes - shapes.mean(axis=1, keepdims=True)  # (n, V, 3)
    sizes = np.sqrt(np.square(centred).sum(axis=(1, 2)))  # (n,)
    if (sizes == 0).any():
        raise InputError(
            f"got a shape without extent at place {int(sizes.argmin())}, expected points that "
            "differ; try leaving it out"
        )
    size = float(np.median(sizes))
    unit = centred * (size / sizes)[:, None, None] if scale else centred  # (n, V, 3)
    # The shape nearest to all others by size of its difference would do; any start gives the same.
    mean = unit[0]
    aligned = unit
    for _ in range(_ROUNDS):
        aligned = np.stack([kabsch(one, mean)(one) for one in unit])
        if scale:
            # Full Procrustes: the least-squares scale of each, with the mean kept at its size.
            dots = (aligned * mean).sum(axis=(1, 2)) / np.square(aligned).sum(axis=(1, 2))  # (n,)
            aligned = aligned * dots[:, None, None]
        renewed = aligned.mean(axis=0)  # (V, 3)
        if scale:
            renewed *= size / np.sqrt(np.square(renewed).sum())
        moved = np.sqrt(np.square(renewed - mean).sum())
        mean = renewed
        if moved < _SETTLED * size:
            break
    return Procrustes(mean, aligned, sizes)


def principal_modes(aligned: FloatArray) -> ShapeModel:
    """Principal component analysis of (n, V, 3) aligned shapes; at most n - 1 modes."""
    mean = aligned.mean(axis=0)  # (V, 3)
    rows = (aligned - mean).reshape(len(aligned), -1)  # (n, 3V)
    # The (n, n) Gram matrix has the same eigenvalues as the (3V, 3V) covariance.
    values, vectors = np.linalg.eigh(rows @ rows.T)  # (n,), (n, n)
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    kept = values > _NOTHING * max(values[0], 1e-300)
    values, vectors = values[kept], vectors[:, kept]  # (K,), (n, K)
    roots = np.sqrt(values)  # (K,)
    modes = (vectors / roots).T @ rows  # (K, 3V)
    scores = vectors * roots  # (n, K)
    # The sign of a mode is arbitrary: its largest entry is positive.
    largest = np.abs(modes).argmax(axis=1) if len(modes) else np.zeros(0, np.int64)
    signs = np.sign(modes[np.arange(len(modes)), largest])  # (K,)
    modes = (modes * signs[:, None]).reshape(len(modes), *mean.shape)  # (K, V, 3)
    return ShapeModel(mean, modes, values / (len(aligned) - 1), scores * signs)


def vertex_variance(aligned: FloatArray) -> FloatArray:
    """(V,) variance of each vertex, summed over its coordinates, of (n, V, 3) aligned shapes."""
    variance: FloatArray = aligned.var(axis=0, ddof=1).sum(axis=1)
    return variance


def quality(aligned: FloatArray, *, modes: int, seed: int = 0) -> Quality:
    """Measure a model of (n, V, 3) aligned shapes with 1 to `modes` modes.

    Of large sets, 50 specimens are left out in turn, one by one; 200 shapes are drawn.
    """
    model = principal_modes(aligned)
    modes = max(1, min(modes, len(model.modes), len(aligned) - 2))
    rng = np.random.default_rng(seed)
    return Quality(
        np.cumsum(model.variances)[:modes],
        _generalisation(aligned, modes, rng),
        _specificity(aligned, model, modes, rng),
    )


def _generalisation(aligned: FloatArray, modes: int, rng: np.random.Generator) -> FloatArray:
    count = len(aligned)
    chosen = np.sort(rng.permutation(count)[:LEFT_OUT])
    errors = np.zeros((len(chosen), modes))
    for row, left in enumerate(chosen):
        others = principal_modes(np.delete(aligned, left, axis=0))
        scores = others.project(aligned[left : left + 1])  # (1, K)
        rebuilt = others.mean.copy()  # (V, 3)
        for k in range(modes):
            if k < len(others.modes):
                rebuilt = rebuilt + scores[0, k] * others.modes[k]
            errors[row, k] = np.linalg.norm(aligned[left] - rebuilt, axis=1).mean()
    means: FloatArray = errors.mean(axis=0)  # (K,)
    return means


def _specificity(
    aligned: FloatArray, model: ShapeModel, modes: int, rng: np.random.Generator
) -> FloatArray:
    drawn = rng.standard_normal((DRAWN, modes)) * np.sqrt(model.variances[:modes])  # (D, K)
    nearest = np.empty((DRAWN, modes))
    for k in range(1, modes + 1):
        for row, scores in enumerate(drawn[:, :k]):
            shape = model.shapes(scores[None])[0]  # (V, 3)
            nearest[row, k - 1] = min(
                float(np.linalg.norm(shape - one, axis=1).mean()) for one in aligned
            )
    means: FloatArray = nearest.mean(axis=0)  # (K,)
    return means
