"""What networks with functional maps share: decomposed pairs, and maps read from bases."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ltenet.correspondence import Correspondence
from ltenet.data.loading import Drawable
from ltenet.data.training_pairs import TrainingPair
from ltenet.evaluation.peers.landing import through_samples
from ltenet.evaluation.peers.learned.learner import LearnedPeer, Learner
from ltenet.evaluation.peers.learned.spectral_shapes import (
    Needs,
    ShapeTensors,
    SpectralPair,
    SpectralPool,
    decomposed,
    spectral_arrays,
)
from ltenet.evaluation.peers.product_filter import product_filter
from ltenet.evaluation.peers.sinkhorn_filters import sinkhorn_partners
from ltenet.evaluation.peers.surface_descriptors import all_geodesics
from ltenet.geometry.arrays import IntArray
from ltenet.method.laplacian import LaplacianBasis, laplacian_basis
from ltenet.refinement.zoomout import aligned, euclidean_topk
from ltenet.shape import Shape
from ltenet.training.config import TrainingConfig
from ltenet.training.pair_tensors import PairTensors
from ltenet.training.trainee import PointMaps

SpectralRefine = Literal["none", "zoomout", "sinkhorn", "pmf"]
#: Functions that ZoomOut grows to, and by how many at a time.
_LAST, _STEP = 100, 5
#: Shapes up to this size are matched whole, with their faces; all-pairs filters take fewer.
_WHOLE, _FILTERED = 8192, 1024


class SpectralTensors(NamedTuple):
    """A training pair and its decomposed shapes on the device."""

    pair: PairTensors
    source: ShapeTensors
    target: ShapeTensors


class SpectralLearner(Learner):
    """A network whose answer is a functional map.

    Its settings have `functions`, the size of the map, and `pool`, the shapes to train on.
    """

    points = _WHOLE

    def needs(self) -> Needs:
        """Return what the network needs of a shape."""
        raise NotImplementedError

    def map_between(self, source: ShapeTensors, target: ShapeTensors) -> Tensor:
        """(k, k) functional map from source to target."""
        raise NotImplementedError

    def stream(self, config: TrainingConfig) -> Drawable[TrainingPair]:
        """Return pairs of a pool of decomposed shapes."""
        describe = partial(spectral_arrays, needs=self.needs())
        return SpectralPool(super().stream(config), self.config.pool, describe, seed=config.seed)

    def prepared(self, pair: TrainingPair) -> SpectralPair:
        """Decompose a pair, unless it is already."""
        if isinstance(pair, SpectralPair):
            return pair
        return decomposed(pair, partial(spectral_arrays, needs=self.needs()))

    def tensors(self, pair: TrainingPair, device: torch.device) -> SpectralTensors:
        """Copy a decomposed pair to the device."""
        ready = self.prepared(pair)
        assert ready.source_arrays is not None
        assert ready.target_arrays is not None
        dtype = next(self.parameters()).dtype
        own = PairTensors.of(pair, device)
        return SpectralTensors(
            own,
            ShapeTensors.of(own.source, ready.source_arrays, dtype=dtype),
            ShapeTensors.of(own.target, ready.target_arrays, dtype=dtype),
        )

    @torch.no_grad()
    def maps(self, pair: TrainingPair) -> PointMaps:
        """Match the points of a pair, both ways."""
        own = self.tensors(pair, next(self.parameters()).device)
        forth = self._nearest(own.source, own.target)  # (N,)
        back = self._nearest(own.target, own.source)  # (M,)
        return PointMaps(forth.cpu().numpy(), back.cpu().numpy())

    def match_refined(self, source: Shape, target: Shape, refine: SpectralRefine) -> Correspondence:
        """Map source to target, with a refinement afterwards."""

        def partners(first: Shape, second: Shape) -> IntArray:
            return self._refined(first, second, refine)

        limit = _FILTERED if refine == "pmf" else self.points
        return through_samples(source, target, limit, partners)

    def match(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return self.match_refined(source, target, "none")

    @torch.no_grad()
    def _refined(self, source: Shape, target: Shape, refine: SpectralRefine) -> IntArray:
        ours, theirs = (self._described(shape) for shape in (source, target))
        found = self._nearest(ours, theirs, sinkhorn=refine == "sinkhorn")  # (N,)
        if refine == "zoomout":
            found = _zoomed(source, target, found, first=len(ours.values))
        indices: IntArray = found.cpu().numpy()
        if refine == "pmf":
            lengths = (all_geodesics(shape.points, shape.faces) for shape in (source, target))
            indices = product_filter(indices, *lengths)
        return indices

    def _described(self, shape: Shape) -> ShapeTensors:
        points = self.tensor(shape)  # (N, 3)
        return ShapeTensors.of(points, spectral_arrays(shape, self.needs()), dtype=points.dtype)

    def _nearest(
        self, source: ShapeTensors, target: ShapeTensors, *, sinkhorn: bool = False
    ) -> Tensor:
        """(N,) target row nearest to each source row after the functional map."""
        matrix = self.map_between(source, target)  # (k, k)
        size = len(matrix)
        ours = source.functions[:, :size] @ matrix.T  # (N, k)
        theirs = target.functions[:, :size]  # (M, k)
        if sinkhorn:
            return sinkhorn_partners(ours, theirs)
        return euclidean_topk(ours, theirs, 1).indices[:, 0]


def _zoomed(source: Shape, target: Shape, found: Tensor, *, first: int) -> Tensor:
    """(N,) map after ZoomOut from `first` functions on."""
    last = min(_LAST, len(source) // 4, len(target) // 4)
    ours, theirs = (_basis(shape, max(last, 4)) for shape in (source, target))
    for size in range(min(first, last), last + 1, _STEP):
        left, right = aligned(ours, theirs, found, size)  # (N, k), (M, k)
        found = euclidean_topk(left, right, 1).indices[:, 0]  # (N,)
    return found


def _basis(shape: Shape, count: int) -> LaplacianBasis:
    faces = None if shape.faces is None else torch.tensor(shape.faces)
    return laplacian_basis(torch.tensor(shape.points), count, faces=faces)


class SpectralPeer(LearnedPeer):
    """A network with functional maps as a method.

    Parameters
    ----------
    model
        Folder of the weights.
    refine
        What follows: "none", "zoomout", "sinkhorn" filters in place of nearest rows, or "pmf", the
        product manifold filter.
    """

    def __init__(self, *, model: str | Path | None = None, refine: SpectralRefine = "none") -> None:
        super().__init__(model=model)
        self._refine: SpectralRefine = refine

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        network = self._network
        assert isinstance(network, SpectralLearner)
        return network.match_refined(source, target, self._refine)
