"""Shapes with their Laplacian and whatever else a network needs, computed once and kept.

A decomposition takes as long as a training step, so a run draws from a pool of shapes. Each member
is decomposed when it is first drawn: the time is part of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.data.loading import Drawable
from ltenet.data.training_pairs import Float32Array, TrainingPair
from ltenet.errors import InputError
from ltenet.evaluation.peers.landing import triangle_weights
from ltenet.evaluation.peers.learned.diffusion import GradientArrays, Surface, gradient_arrays
from ltenet.evaluation.peers.shot import shot
from ltenet.evaluation.peers.spectrum import spectrum
from ltenet.evaluation.peers.surface_descriptors import all_geodesics
from ltenet.geometry.arrays import IntArray
from ltenet.geometry.cloud_normals import shape_normals
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.shape import Shape


class SpectralArrays(NamedTuple):
    """A shape of area 1 in numbers; float32, what was not asked for is None.

    Attributes
    ----------
    values, functions, masses
        (k,), (N, k) and (N,): the Laplacian's basis.
    gradients
        Of functions, in tangent planes.
    descriptors
        (N, 352) SHOT.
    geodesics
        (N, N) distances along the surface, shares of the largest.
    """

    values: Float32Array
    functions: Float32Array
    masses: Float32Array
    gradients: GradientArrays | None = None
    descriptors: Float32Array | None = None
    geodesics: Float32Array | None = None


class Needs(NamedTuple):
    """What a network needs of a shape: functions of the basis, and which of the rest."""

    functions: int
    gradients: bool = False
    descriptors: bool = False
    geodesics: bool = False


def spectral_arrays(shape: Shape, needs: Needs) -> SpectralArrays:
    """Compute what is needed of a shape."""
    basis = spectrum(shape, needs.functions)
    points = shape.points
    normals = shape_normals(points, shape.faces)  # (N, 3)
    gradients = descriptors = geodesics = None
    if needs.gradients:
        indices, weights = gradient_arrays(points, normals)
        gradients = GradientArrays(indices, weights.astype(np.float32))
    if needs.descriptors:
        descriptors = shot(points, normals).astype(np.float32)  # (N, 352)
    if needs.geodesics:
        lengths = all_geodesics(points, shape.faces)  # (N, N)
        geodesics = (lengths / max(float(lengths.max()), 1e-300)).astype(np.float32)
    functions, values, masses = (
        array.astype(np.float32) for array in (basis.functions, basis.values, basis.masses)
    )
    return SpectralArrays(values, functions, masses, gradients, descriptors, geodesics)


@dataclass(frozen=True, eq=False)
class SpectralPair(TrainingPair):
    """A training pair whose shapes are decomposed."""

    source_arrays: SpectralArrays | None = None
    target_arrays: SpectralArrays | None = None


def decomposed(pair: TrainingPair, describe: Callable[[Shape], SpectralArrays]) -> SpectralPair:
    """Decompose both shapes of a pair."""
    own = {item.name: getattr(pair, item.name) for item in fields(TrainingPair)}
    return SpectralPair(
        **own,
        source_arrays=describe(_cloud(pair.source)),
        target_arrays=describe(_cloud(pair.target)),
    )


class ShapeTensors(NamedTuple):
    """`SpectralArrays` on the device, with the points (N, 3)."""

    points: Tensor
    values: Tensor
    functions: Tensor
    masses: Tensor
    indices: Tensor | None = None
    weights: Tensor | None = None
    descriptors: Tensor | None = None
    geodesics: Tensor | None = None

    @classmethod
    def of(
        cls, points: Tensor, arrays: SpectralArrays, *, dtype: torch.dtype = torch.float32
    ) -> ShapeTensors:
        """Copy a shape to the device of its points."""

        def tensor(array: Float32Array | None) -> Tensor | None:
            return None if array is None else torch.tensor(array).to(points.device, dtype)

        indices = weights = None
        if arrays.gradients is not None:
            indices = torch.tensor(arrays.gradients.indices, device=points.device)
            weights = tensor(arrays.gradients.weights.astype(np.float32))
        values, functions, masses = (
            torch.tensor(array).to(points.device, dtype)
            for array in arrays[:3]
            if array is not None
        )
        return cls(
            points.to(dtype),
            values,
            functions,
            masses,
            indices,
            weights,
            tensor(arrays.descriptors),
            tensor(arrays.geodesics),
        )

    def surface(self) -> Surface:
        """Return what diffusion needs."""
        assert self.indices is not None
        assert self.weights is not None
        return Surface(self.values, self.functions, self.masses, self.indices, self.weights)


class SpectralPool:
    """Pairs of shapes out of a pool; pair `index` depends on the base stream, seed and index alone.

    Member m of the pool is the source (even m) or the target (odd m) of pair m // 2 of the base
    stream. Two members of one template form a pair; their places on the template say which point is
    which.

    Parameters
    ----------
    base
        Where the shapes come from.
    size
        Members of the pool.
    describe
        Decomposes a shape.
    seed
        Of the choice of pairs.
    """

    def __init__(
        self,
        base: Drawable[TrainingPair],
        size: int,
        describe: Callable[[Shape], SpectralArrays],
        *,
        seed: int = 0,
    ) -> None:
        if size < 2:
            raise InputError(
                f"got a pool of {size} shapes, expected at least 2 for a pair; try 400"
            )
        self._base, self._size, self._describe, self._seed = base, size, describe, seed
        self._pairs: dict[int, TrainingPair] = {}
        self._arrays: dict[int, SpectralArrays] = {}

    def draw(self, index: int) -> SpectralPair:
        """Make pair number `index`, from 0 without an end."""
        rng = np.random.default_rng([self._seed, index])
        first = int(rng.integers(self._size))
        template = self._pair(first).template
        second = first ^ 1 if first ^ 1 < self._size else first - 1  # always of the same template
        for candidate in rng.permutation(self._size)[:32].tolist():
            if candidate != first and self._pair(candidate).template == template:
                second = candidate
                break
        return self._joined(first, second)

    def _pair(self, member: int) -> TrainingPair:
        number = member // 2
        if number not in self._pairs:
            self._pairs[number] = self._base.draw(number)
        return self._pairs[number]

    def _own_arrays(self, member: int, points: Float32Array) -> SpectralArrays:
        if member not in self._arrays:
            self._arrays[member] = self._describe(_cloud(points))
        return self._arrays[member]

    def _joined(self, first: int, second: int) -> SpectralPair:
        source, source_rest = _side(self._pair(first), first % 2)  # (N, 3) each
        target, target_rest = _side(self._pair(second), second % 2)  # (M, 3) each
        known = source_rest is not None and target_rest is not None
        truth, back = np.zeros_like(source), np.zeros_like(target)
        if source_rest is not None and target_rest is not None:
            truth = _places(source_rest, target_rest, target)
            back = _places(target_rest, source_rest, source)
        return SpectralPair(
            source=source,
            target=target,
            source_truth=truth,
            target_truth=back,
            source_known=np.full(len(source), known),
            target_known=np.full(len(target), known),
            source_mirrored=truth,
            source_opposite=truth,
            shared=False,
            category=_category(self._pair(first), first % 2),
            target_category=_category(self._pair(second), second % 2),
            template=self._pair(first).template,
            source_rest=source_rest,
            target_rest=target_rest,
            source_arrays=self._own_arrays(first, source),
            target_arrays=self._own_arrays(second, target),
        )


def _side(pair: TrainingPair, number: int) -> tuple[Float32Array, Float32Array | None]:
    """Points of one shape of a pair, and their places on the template."""
    if number == 0:
        return pair.source, pair.source_rest
    return pair.target, pair.target_rest


def _cloud(points: Float32Array) -> Shape:
    return Shape(points.astype(np.float64))


def _category(pair: TrainingPair, number: int) -> str:
    return pair.category if number == 0 else pair.target_category


def _places(rests: Float32Array, others: Float32Array, points: Float32Array) -> Float32Array:
    """(N, 3) places among (M, 3) points of what lies at (N, 3) on the template; theirs (M, 3)."""
    near: IntArray = nearest_neighbors(others, rests, 3).indices  # (N, 3)
    weights = triangle_weights(rests.astype(np.float64), others[near].astype(np.float64))  # (N, 3)
    places: Float32Array = np.einsum("nk,nkd->nd", weights, points[near]).astype(np.float32)
    return places
