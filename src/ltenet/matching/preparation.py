"""Once for each shape, before any matching: leave out outliers, choose points, orient, embed.

The cost is linear in the number of shapes, and a prepared shape can be matched with many others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.geometry.normals import vertex_areas
from ltenet.geometry.surface_graph import region_graph
from ltenet.matching.config import Orient
from ltenet.matching.networks import Networks
from ltenet.matching.orientation import Frame
from ltenet.matching.outliers import inliers, part_of
from ltenet.method.graph import NeighborGraph
from ltenet.method.model import LTENet
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.shape import Shape, normalizing_matrix

#: Fewest points of a shape.
LEAST_POINTS = 50
#: Points that go through the network together: as many as in training, because their spacing sets
#: the receptive field. Larger samples are embedded in several such parts.
PART = 1024
#: Orientations of a shape that are tried at most, and the certainty below which one is not.
_ORIENTATIONS, _UNLIKELY = 3, 0.03
#: Extent relative to the longest at which a shape is flat.
_FLAT = 1e-3
#: Grid cells along the longest side of a cloud, to measure its density.
_CELLS = 64
#: Candidates for a farthest-point sample, as a multiple of its size.
_CANDIDATES = 4


class Cleaned(NamedTuple):
    """A shape as it is matched.

    Attributes
    ----------
    given
        As it was given.
    inliers
        (n,) int64, its points that are not outliers, in ascending order.
    shape
        These, reflected if the shape is matched through the mirror.
    """

    given: Shape
    inliers: IntArray
    shape: Shape

    @property
    def outliers(self) -> int:
        """How many points are left out."""
        return len(self.given) - len(self.inliers)


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
    """

    def __init__(
        self, cleaned: Cleaned, model: LTENet, rows: IntArray, parts: tuple[IntArray, ...]
    ) -> None:
        self.cleaned, self.model, self.rows, self.parts = cleaned, model, rows, parts
        self.shape = cleaned.shape
        self._neighbors: dict[int, list[NeighborGraph]] = {}

    @property
    def complete(self) -> bool:
        """Whether every point of the shape is embedded."""
        return len(self.rows) == len(self.shape)

    @property
    def points(self) -> FloatArray:
        """(n, 3) embedded points, in the coordinates of the shape."""
        return self.shape.points[self.rows]

    @cached_property
    def graph(self) -> csr_array | None:
        """(n, n) adjacency of the embedded points along the surface; None for clouds."""
        return region_graph(self.shape.points, self.shape.faces, self.rows)

    @property
    def faces(self) -> Tensor | None:
        """(F, 3) faces of the embedded points; None for samples and clouds."""
        if self.shape.faces is None or not self.complete:
            return None
        return torch.tensor(self.shape.faces)

    def embed(self, number: int, rotation: FloatArray) -> Tensor:
        """(p, D) float32 embedding of a part of the shape rotated by (3, 3)."""
        points = self.points[self.parts[number]] @ rotation.T  # (p, 3)
        if number not in self._neighbors:  # the same for every rotation
            self._neighbors[number] = self.model.graphs_of(points)
        return self.model.embed(points, graphs=self._neighbors[number]).float().cpu()


class Prepared:
    """A shape in one orientation, ready to be matched; it is embedded when first asked for.

    Parameters
    ----------
    sample
        The points that are embedded.
    matrix
        (4, 4) from the coordinates of the shape to those of the network: centred, scaled, rotated.
    frame
        What the orientation networks say of this orientation; None if they were not asked.
    features
        (p, D) embeddings of parts, by their number, that are known already.
    """

    def __init__(
        self,
        sample: Sample,
        matrix: FloatArray,
        frame: Frame | None = None,
        features: Mapping[int, Tensor] | None = None,
    ) -> None:
        self.sample, self.matrix, self.frame = sample, matrix, frame
        self._known = features or {}

    def rotated(self, rotation: FloatArray) -> Prepared:
        """Rotate the shape further by (3, 3), in the frame of the network."""
        return Prepared(self.sample, _homogeneous(rotation) @ self.matrix, self.frame)

    @property
    def shape(self) -> Shape:
        """The shape without its outliers."""
        return self.sample.shape

    def all_points(self) -> FloatArray:
        """(N, 3) every point of the shape in the coordinates of the network."""
        points: FloatArray = self.shape.points @ self.matrix[:3, :3].T + self.matrix[:3, 3]
        return points

    @cached_property
    def points(self) -> Tensor:
        """(n, 3) float32, the embedded points in the coordinates of the network."""
        points = self.sample.points @ self.matrix[:3, :3].T + self.matrix[:3, 3]  # (n, 3)
        return torch.from_numpy(points.astype(np.float32))

    @cached_property
    def first_part(self) -> EmbeddedShape:
        """The first part alone: enough for a first look."""
        rows = torch.from_numpy(self.sample.parts[0])  # (p,)
        return EmbeddedShape(self.points[rows], self.part_features(0), name=self.shape.name)

    @cached_property
    def embedded(self) -> EmbeddedShape:
        """All embedded points."""
        sample = self.sample
        features = torch.empty(len(sample.rows), sample.model.config.encoder.dimension)  # (n, D)
        # The first part is normalised already, which changes nothing.
        features[torch.from_numpy(sample.parts[0])] = self.first_part.features
        for number, part in enumerate(sample.parts[1:], 1):
            features[torch.from_numpy(part)] = self.part_features(number)
        return EmbeddedShape(
            self.points, features, faces=sample.faces, graph=sample.graph, name=self.shape.name
        )

    def part_features(self, number: int) -> Tensor:
        """(p, D) embedding of a part; the model centres and scales by itself."""
        if number in self._known:
            return self._known[number]
        return self.sample.embed(number, self.rotation)

    @property
    def rotation(self) -> FloatArray:
        """(3, 3) from the axes of the shape to those of the network: y up, facing +z."""
        rotation: FloatArray = self.matrix[:3, :3] / np.linalg.norm(self.matrix[0, :3])
        return rotation


def prepare(
    shape: Shape,
    networks: Sequence[Networks],
    *,
    points: int | None,
    orient: Orient = "auto",
    seed: int = 0,
    clean: bool = True,
    mirror: bool = False,
    tell: Callable[[], None] = lambda: None,
) -> tuple[tuple[Prepared, ...], ...]:
    """Leave out outliers, choose points and orient the shape.

    Parameters
    ----------
    shape
        At least 50 points, in any unit and position.
    networks
        The weights in question; without orientation networks shapes keep their orientation.
    points
        How many points are embedded; None for all of them in one pass, as in the paper.
    orient
        "any" turns the body upright and to the front from any orientation, and "auto" also tries
        it as given; "yaw" rotates about the y axis only; "none" leaves the shape as it is.
    seed
        Selects the points and their parts.
    clean
        Whether outliers are left out.
    mirror
        Whether the shape is reflected first.
    tell
        Called when the points are chosen; the rest is orientation.

    Returns
    -------
    For each of the networks, the shape in every plausible orientation, the best first.
    """
    cleaned = _cleaned(shape, clean=clean, mirror=mirror)
    shape = cleaned.shape
    rng = np.random.default_rng(seed)
    rows = sample_rows(shape, points, rng)  # (n,)
    count = 1 if points is None else max(1, round(len(rows) / PART))
    order = rng.permutation(len(rows))  # (n,), so that each part covers the whole shape
    parts = tuple(np.sort(part) for part in np.array_split(order, count))
    chosen = shape.points[rows]  # (n, 3)
    _check_extent(chosen, shape.name)
    normal = normalizing_matrix(chosen, name=shape.name)  # (4, 4)
    tell()
    frames: dict[int, list[Frame]] = {}
    prepared: list[tuple[Prepared, ...]] = []
    for one in networks:
        sample = Sample(cleaned, one.model, rows, parts)
        if orient == "none" or one.orienter is None:
            prepared.append((Prepared(sample, normal),))
            continue
        if id(one.orienter) not in frames:
            found = one.orienter.frames(chosen, given=orient == "auto")
            frames[id(one.orienter)] = plausible(found, orient)
        prepared.append(
            tuple(
                Prepared(sample, _homogeneous(frame.rotation) @ normal, frame)
                for frame in frames[id(one.orienter)]
            )
        )
    return tuple(prepared)


def _cleaned(shape: Shape, *, clean: bool, mirror: bool) -> Cleaned:
    """Leave out outliers and reflect the rest, each if asked for."""
    rows = inliers(shape) if clean else np.arange(len(shape))  # (n,)
    if len(rows) < LEAST_POINTS:
        few = f"{len(shape)} points" + (f", {len(rows)} on a surface" if len(shape) > 49 else "")
        raise InputError(
            f"{shape.name}: got {few}, expected at least {LEAST_POINTS}; "
            "try sampling the surface more densely"
        )
    part = part_of(shape, rows)
    return Cleaned(shape, rows, reflected(part) if mirror else part)


def reflected(shape: Shape) -> Shape:
    """Reflect a shape in the plane x = 0; faces still look outwards."""
    faces = None if shape.faces is None else shape.faces[:, ::-1]
    return replace(shape.transformed(np.diag([-1.0, 1.0, 1.0, 1.0])), faces=faces)


def _check_extent(points: FloatArray, name: str) -> None:
    """Refuse (N, 3) points in few places, on a line or in a plane: they have no shape to match."""
    places = len(np.unique(points, axis=0))
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)  # (3,)
    flat = f"points on a {'line' if extents[1] <= _FLAT * extents[0] else 'plane'}"
    if places >= LEAST_POINTS and extents[2] > _FLAT * extents[0]:
        return
    found = flat if places >= LEAST_POINTS else f"{len(points)} points in {places} places"
    raise InputError(
        f"{name}: got {found}, expected the surface of a solid; "
        "try a file with three columns of coordinates"
    )


def plausible(frames: list[Frame], orient: Orient) -> list[Frame]:
    """Keep the best frame and those that may be right instead, as rotations that are allowed."""
    kept = [frame for frame in frames if frame.certainty >= _UNLIKELY] or frames[:1]
    if orient == "yaw":
        kept = [frame._replace(rotation=yaw_only(frame.rotation)) for frame in kept]
    return kept[:_ORIENTATIONS]


def _homogeneous(rotation: FloatArray) -> FloatArray:
    """(4, 4) of a (3, 3) rotation."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    return matrix


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


def yaw_only(rotation: FloatArray) -> FloatArray:
    """(3, 3) rotation about the y axis nearest to a given one."""
    angle = np.arctan2(rotation[0, 2] - rotation[2, 0], rotation[0, 0] + rotation[2, 2])
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]])
