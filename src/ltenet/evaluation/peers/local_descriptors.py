"""Peers that match the nearest local descriptor: one table of descriptors and their distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.descriptor_distances import DISTANCES, DistanceKind
from ltenet.evaluation.peers.fpfh import fast_point_feature_histogram
from ltenet.evaluation.peers.landing import through_samples
from ltenet.evaluation.peers.point_histograms import shape_context, spin_image
from ltenet.evaluation.peers.shot import shot
from ltenet.evaluation.peers.surface_descriptors import geodesic_histogram, surface_variation
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.cloud_normals import shape_normals
from ltenet.refinement.assignment import best_assignment
from ltenet.shape import Shape

LocalKind = Literal[
    "shape-context", "spin-image", "fpfh", "shot", "multiscale", "geodesic-histogram"
]


class _Descriptor(NamedTuple):
    """How a descriptor is computed, and compared."""

    of: Callable[[Shape], FloatArray]
    distance: DistanceKind


def _with_normals(
    describe: Callable[[FloatArray, FloatArray], FloatArray],
) -> Callable[[Shape], FloatArray]:
    return lambda shape: describe(shape.points, shape_normals(shape.points, shape.faces))


#: Descriptors by name.
LOCAL_DESCRIPTORS: dict[LocalKind, _Descriptor] = {
    "shape-context": _Descriptor(_with_normals(shape_context), "chi-squared"),
    "spin-image": _Descriptor(_with_normals(spin_image), "correlation"),
    "fpfh": _Descriptor(_with_normals(fast_point_feature_histogram), "chi-squared"),
    "shot": _Descriptor(_with_normals(shot), "euclidean"),
    "multiscale": _Descriptor(lambda shape: surface_variation(shape.points), "standardized"),
    "geodesic-histogram": _Descriptor(
        lambda shape: geodesic_histogram(shape.points, shape.faces), "absolute"
    ),
}


@dataclass(frozen=True, kw_only=True)
class LocalDescriptor:
    """The target point with the most similar local descriptor.

    Attributes
    ----------
    kind
        A name in `LOCAL_DESCRIPTORS`.
    readoff
        "nearest" partners, or the one-to-one "assignment" with the least total distance.
    points
        Shapes with more points are thinned to this many; the others follow their neighbours.
    """

    kind: LocalKind = "shot"
    readoff: Literal["nearest", "assignment"] = "nearest"
    points: int = 1024

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return through_samples(source, target, self.points, self.partners)

    def partners(self, source: Shape, target: Shape) -> IntArray:
        """(N,) target point of each source point."""
        descriptor = LOCAL_DESCRIPTORS[self.kind]
        distances = DISTANCES[descriptor.distance](descriptor.of(source), descriptor.of(target))
        if self.readoff == "nearest":
            return np.asarray(distances.argmin(axis=1))
        found: IntArray = best_assignment(torch.from_numpy(-distances)).numpy()
        return found
