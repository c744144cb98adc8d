"""The points of a shape that are embedded, chosen evenly over its surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.geometry.normals import vertex_areas
from ltenet.geometry.surface_graph import (
    across_seams,
    mesh_graph,
    region_faces,
    region_graph,
    surface_coordinates,
    voronoi_regions,
)
from ltenet.lazy import lazy
from ltenet.matching.cleaning import Cleaned
from ltenet.matching.orientation import Frame, Orienter
from ltenet.method.model import LTENet
from ltenet.shape import Shape

#: Grid cells along the longest side of a cloud, to measure its density.
_CELLS = 64
#: Candidates for a farthest-point sample, as a multiple of its size.
_CANDIDATES = 4
#: Probability from which a shape is taken for a piece of a body.
_A_PIECE = 0.5


class Sample:
    """The points of a shape that are embedded; rotated copies of the shape share it.

    Parameters
    ----------
    cleaned
        The shape to be matched, and how it follows from the one that was given.
    model
        The embedding network.
    rows
        (n,) int64, the embedded points.
    parts
        Positions in `rows` that go through the network together; each part covers the shape.
    orienter
        Knows pieces of bodies; None if the weights do not ask which piece a shape is.
    """

    def __init__(
        self,
        cleaned: Cleaned,
        model: LTENet,
        rows: IntArray,
        parts: tuple[IntArray, ...],
        orienter: Orienter | None = None,
    ) -> None:
        self.cleaned, self.model, self.rows, self.parts = cleaned, model, rows, parts
        self._orienter = orienter
        self.shape = cleaned.shape
        self._neighbors: dict[int, Sequence[Any]] = {}
        self._features: dict[int, Tensor] = {}

    @property
    def frameless(self) -> bool:
        """Whether no rotation of the shape changes its embedding."""
        return self.model.config.encoder.inputs != "coordinates"

    @property
    def complete(self) -> bool:
        """Whether every point of the shape is embedded."""
        return len(self.rows) == len(self.shape)

    @property
    def points(self) -> FloatArray:
        """(n, 3) embedded points, in the coordinates of the shape."""
        return self.shape.points[self.rows]

    @lazy
    def piece_frames(self) -> tuple[Frame, ...]:
        """Frames of the piece of a body that the shape may be, the best first; none if it is not.

        The networks of pieces call them people, and other things "any".
        """
        if self._orienter is None:
            return ()
        frames = self._orienter.frames(self.points)
        return tuple(frames) if frames[0].kinds[0] > _A_PIECE else ()

    @lazy
    def graph(self) -> csr_array | None:
        """(n, n) adjacency of the embedded points along the surface; None for clouds."""
        if self._mesh is None or self.complete:
            return self._mesh
        return region_graph(self._mesh, self._regions)

    @lazy
    def faces(self) -> Tensor | None:
        """(F, 3) triangles between the embedded points; None for clouds."""
        if self._mesh is None or self.shape.faces is None:
            return None
        faces = self.shape.faces if self.complete else region_faces(self.shape.faces, self._regions)
        return torch.tensor(faces)

    @lazy
    def _mesh(self) -> csr_array | None:
        """(N, N) adjacency of all points, also across seams; None for clouds."""
        if self.shape.faces is None or len(self.shape.faces) == 0:
            return None
        return across_seams(mesh_graph(self.shape.faces, len(self.shape)), self.shape.points)

    @lazy
    def _regions(self) -> IntArray:
        """(N,) the embedded point nearest to each point of a mesh, by its number."""
        assert self._mesh is not None
        return voronoi_regions(self._mesh, self.shape.points, self.rows)

    def along(self, number: int) -> FloatArray | None:
        """(p, L) coordinates of a part along the surface, if there is one and the model asks."""
        return None if self._along is None else self._along[self.parts[number]]

    @lazy
    def _along(self) -> FloatArray | None:
        if self.graph is None or not self.model.config.encoder.surface:
            return None
        return surface_coordinates(self.graph, self.points)  # (n, L)

    def embed(self, number: int, rotation: FloatArray) -> Tensor:
        """(p, D) float32 embedding of a part of the shape rotated by (3, 3)."""
        if not self.frameless:
            return self._embed(number, rotation)
        if number not in self._features:
            self._features[number] = self._embed(number, rotation)
        return self._features[number]

    def _embed(self, number: int, rotation: FloatArray) -> Tensor:
        points = self.points[self.parts[number]] @ rotation.T  # (p, 3)
        if number not in self._neighbors:  # the same for every rotation
            self._neighbors[number] = self.model.graphs_of(points, self.along(number))
        return self.model.embed(points, graphs=self._neighbors[number]).float().cpu()


def sample_rows(shape: Shape, count: int | None, rng: np.random.Generator) -> IntArray:
    """Choose (n,) points of a shape, evenly over its surface and in ascending order."""
    size = len(shape)
    if count is None or count >= size:
        return np.arange(size)
    candidates = np.arange(size)  # (c,)
    if size > _CANDIDATES * count:
        weights = surface_shares(shape)  # (N,)
        keys = rng.exponential(size=size) / np.maximum(weights, 1e-3 * weights.mean())  # (N,)
        candidates = np.sort(np.argpartition(keys, _CANDIDATES * count)[: _CANDIDATES * count])
    start = int(rng.integers(len(candidates)))
    chosen = farthest_point_sample(shape.points[candidates], count, start=start)  # (n,)
    return np.sort(candidates[chosen])


def surface_shares(shape: Shape) -> FloatArray:
    """(N,) surface area around each point, in any unit: exact for meshes.

    The points of a cloud share the area of their grid cell evenly.
    """
    if shape.faces is None or len(shape.faces) == 0:
        low, extent = shape.points.min(axis=0), np.ptp(shape.points, axis=0).max()
        cells = ((shape.points - low) * (_CELLS / max(extent, 1e-300))).astype(np.int64)  # (N, 3)
        numbers = np.ravel_multi_index(tuple(cells.T), (_CELLS + 1,) * 3)  # (N,)
        _, cell, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return 1.0 / counts[cell]
    return vertex_areas(shape.points, shape.faces)
