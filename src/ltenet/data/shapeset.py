"""ShapeSet: what every source of shapes looks like to the rest, whatever its files look like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.shape import Shape


class GroundTruth(NamedTuple):
    """Vertices of two shapes that are known to correspond: source[p] is target[p].

    Attributes
    ----------
    source
        (P,) vertices of the source, each at most once.
    target
        (P,) their partners among the vertices of the target.
    """

    source: IntArray
    target: IntArray


class ShapeSet(ABC):
    """A named, ordered set of shapes, with the pairs to test on and what is known about them.

    Attributes
    ----------
    name
        Short name, e.g. "tosca".
    names
        One name per shape.
    categories
        One class per shape, e.g. "cat"; all the same where there is one class only.
    pairs
        (T, 2) int64 indices of the pairs that a benchmark tests, source first.
    error_divisor
        What the published `err` of this set is divided by beyond its definition (3 for TOSCA).
    """

    name: str
    names: tuple[str, ...]
    categories: tuple[str, ...]
    pairs: IntArray
    error_divisor: float = 1.0

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def shape(self, index: int) -> Shape:
        """Shape number `index` in the canonical frame and in metres (or the set's own unit)."""

    @abstractmethod
    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Return the known correspondences of two shapes, None if there are none."""

    def surface(self, index: int) -> FloatArray | None:
        """(S, 3) points spread evenly over the surface of a shape without faces, if it has any."""
        return None

    def regions(self, index: int) -> Mapping[str, NDArray[np.bool_]]:
        """(V,) masks of the named regions of a shape, such as "arm.L"; none if not known."""
        return {}


def identity_truth(vertex_count: int) -> GroundTruth:
    """Ground truth of two shapes with the same vertices in the same order."""
    vertices = np.arange(vertex_count, dtype=np.int64)  # (P,)
    return GroundTruth(vertices, vertices)
