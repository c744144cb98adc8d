"""What happens to each shape once, before any matching: choose points, turn upright, embed.

The cost is linear in the number of shapes, and a prepared shape can be matched with many others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.errors import InputError
from ltenet.graph import NeighborGraph
from ltenet.model import LTENet
from ltenet.neighbors import farthest_point_sample
from ltenet.orientation import Frame, Orienter
from ltenet.shape import FloatArray, IntArray, Shape, normalizing_matrix
from ltenet.surface_graph import region_graph

Orient = Literal["auto", "yaw", "any", "none"]

#: Fewest points that make a shape.
LEAST_POINTS = 50
#: Points that go through the network together: as many as in training, because the spacing of the
#: points decides how far the network sees. Larger samples are embedded in several such parts.
PART = 1024
#: Cells along the longest side of a cloud in which its density is measured.
_CELLS = 64
#: Candidates from which spread points are chosen, as a multiple of their number.
_CANDIDATES = 4


@dataclass(frozen=True, eq=False)
class Prepared:
    """A shape that is ready to be matched: sampled, turned, and embedded when that is asked for.

    Attributes
    ----------
    shape
        As it came.
    rows
        (n,) int64, which of its points are embedded.
    matrix
        (4, 4) from the coordinates of the shape to those of the network: centred, scaled, turned.
    parts
        Numbers of the points that go through the network together; each part is spread over the
        whole shape.
    model
        The network.
    frame
        What the orientation network saw; None if it was not asked.
    graph
        (n, n) which of the embedded points are neighbours on the surface; None for clouds.
    neighborhoods
        What the network needs to know of the neighbours within each part. Turned copies share it.
    """

    shape: Shape
    rows: IntArray
    matrix: FloatArray
    parts: tuple[IntArray, ...]
    model: LTENet
    frame: Frame | None
    graph: csr_array | None
    neighborhoods: dict[int, list[NeighborGraph]] = field(default_factory=dict)

    @cached_property
    def points(self) -> Tensor:
        """(n, 3) float32, the embedded points in the coordinates of the network."""
        points = self.shape.points[self.rows] @ self.matrix[:3, :3].T + self.matrix[:3, 3]  # (n, 3)
        return torch.from_numpy(points.astype(np.float32))

    @cached_property
    def first_features(self) -> Tensor:
        """(p, D) float32 embedding of the first part: enough for a first look."""
        return self._embedded(0)

    @cached_property
    def features(self) -> Tensor:
        """(n, D) float32 embedding."""
        features = torch.empty(len(self.rows), self.model.config.encoder.dimension)  # (n, D)
        features[torch.from_numpy(self.parts[0])] = self.first_features
        for number, part in enumerate(self.parts[1:], 1):
            features[torch.from_numpy(part)] = self._embedded(number)
        return features

    def _embedded(self, number: int) -> Tensor:
        """(p, D) embedding of a part; the model centres and scales for itself."""
        turn = self.matrix[:3, :3] / np.linalg.norm(self.matrix[0, :3])  # (3, 3)
        points = self.shape.points[self.rows[self.parts[number]]] @ turn.T  # (p, 3)
        if number not in self.neighborhoods:
            self.neighborhoods[number] = self.model.graphs_of(points)
        return self.model.embed(points, graphs=self.neighborhoods[number]).float().cpu()

    @property
    def complete(self) -> bool:
        """Whether every point of the shape was embedded."""
        return len(self.rows) == len(self.shape)

    def all_points(self) -> FloatArray:
        """(N, 3) every point of the shape in the coordinates of the network."""
        points: FloatArray = self.shape.points @ self.matrix[:3, :3].T + self.matrix[:3, 3]
        return points

    def faces(self) -> Tensor | None:
        """(F, 3) faces of the embedded points; None for samples and clouds."""
        if self.shape.faces is None or not self.complete:
            return None
        return torch.tensor(self.shape.faces)


def prepare(
    shape: Shape,
    model: LTENet,
    orienter: Orienter | None,
    *,
    points: int | None,
    orient: Orient = "auto",
    seed: int = 0,
) -> Prepared:
    """Choose points and turn them upright; they are embedded when that is asked for.

    Parameters
    ----------
    shape
        At least 50 points, in any unit and anywhere.
    model, orienter
        Networks; without the second one shapes stay as they are.
    points
        How many points are embedded; None for all of them in one pass, as the paper does.
    orient
        "any" and "auto" turn the trunk of the body upright and to the front whatever way it came;
        "yaw" turns about the y axis alone; "none" leaves the shape as it is.
    seed
        Which points are chosen, and how they are parted.
    """
    if len(shape) < LEAST_POINTS:
        raise InputError(
            f"{shape.name}: {len(shape)} points came; at least {LEAST_POINTS} are needed to tell "
            "one place from another; sample the surface more densely"
        )
    rng = np.random.default_rng(seed)
    rows = sample_rows(shape, points, rng)  # (n,)
    sample = shape.points[rows]  # (n, 3)
    frame = None
    turn = np.eye(3)
    if orient != "none" and orienter is not None:
        frame = orienter.frame(sample)
        turn = yaw_alone(frame.rotation) if orient == "yaw" else frame.rotation  # (3, 3)
    count = 1 if points is None else max(1, round(len(rows) / PART))
    order = rng.permutation(len(rows))  # (n,), so that each part is spread over the whole shape
    parts = tuple(np.sort(part) for part in np.array_split(order, count))
    matrix = _rotation(turn) @ normalizing_matrix(sample, name=shape.name)  # (4, 4)
    return Prepared(shape, rows, matrix, parts, model, frame, region_graph(shape, rows))


def turned(prepared: Prepared, rotation: FloatArray) -> Prepared:
    """Turn a shape by a further (3, 3) rotation in the network's frame."""
    return replace(prepared, matrix=_rotation(rotation) @ prepared.matrix)


def _rotation(turn: FloatArray) -> FloatArray:
    """(4, 4) of a (3, 3) rotation."""
    matrix = np.eye(4)
    matrix[:3, :3] = turn
    return matrix


def sample_rows(shape: Shape, count: int | None, rng: np.random.Generator) -> IntArray:
    """Choose (n,) points of a shape, spread over its surface and in ascending order."""
    size = len(shape)
    if count is None or count >= size:
        return np.arange(size)
    candidates = np.arange(size)  # (c,)
    if size > _CANDIDATES * count:
        weights = vertex_areas(shape)  # (N,)
        keys = rng.exponential(size=size) / np.maximum(weights, 1e-3 * weights.mean())  # (N,)
        candidates = np.sort(np.argpartition(keys, _CANDIDATES * count)[: _CANDIDATES * count])
    start = int(rng.integers(len(candidates)))
    chosen = farthest_point_sample(shape.points[candidates], count, start=start)  # (n,)
    return np.sort(candidates[chosen])


def vertex_areas(shape: Shape) -> FloatArray:
    """(N,) surface that each point stands for, in any unit: exact for meshes.

    The points of a cloud share the surface in their cell of a grid evenly.
    """
    if shape.faces is None or len(shape.faces) == 0:
        low, extent = shape.points.min(axis=0), np.ptp(shape.points, axis=0).max()
        cells = ((shape.points - low) * (_CELLS / max(extent, 1e-300))).astype(np.int64)  # (N, 3)
        numbers = np.ravel_multi_index(tuple(cells.T), (_CELLS + 1,) * 3)  # (N,)
        _, cell, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return 1.0 / counts[cell]
    corners = shape.points[shape.faces]  # (F, 3, 3)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # (F, 3)
    areas = np.linalg.norm(normals, axis=1) / 6  # (F,)
    weights = np.repeat(areas, 3)  # (3 F,)
    sums = np.bincount(shape.faces.reshape(-1), weights=weights, minlength=len(shape))  # (N,)
    return sums.astype(np.float64)


def yaw_alone(rotation: FloatArray) -> FloatArray:
    """(3, 3) the turn about the y axis that comes nearest to a rotation."""
    angle = np.arctan2(rotation[0, 2] - rotation[2, 0], rotation[0, 0] + rotation[2, 2])
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]])
