"""Once for each shape, before any matching: leave out outliers, choose points, orient, embed.

The cost is linear in the number of shapes, and a prepared shape can be matched with many others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.rotations import homogeneous
from ltenet.lazy import lazy
from ltenet.matching.cleaning import check_extent, cleaned
from ltenet.matching.config import Orient
from ltenet.matching.networks import Networks
from ltenet.matching.orientation import Frame
from ltenet.matching.sample import Sample, sample_rows
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.shape import Shape, normalizing_matrix

#: Points that go through the network together: as many as in training, because their spacing sets
#: the receptive field. Larger samples are embedded in several such parts.
PART = 1024
#: Orientations of a shape that are tried at most, and the certainty below which a third one is not.
#: The second is tried in any case: the energy of a map sees half turns that the networks miss.
_ORIENTATIONS, _UNLIKELY = 3, 0.03


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
    at_once
        Of a shape that lies where it belongs on a larger one: how many of its points go through the
        network together. None for shapes that the network centres and scales by itself.
    """

    def __init__(
        self,
        sample: Sample,
        matrix: FloatArray,
        frame: Frame | None = None,
        features: Mapping[int, Tensor] | None = None,
        at_once: int | None = None,
    ) -> None:
        self.sample, self.matrix, self.frame, self.at_once = sample, matrix, frame, at_once
        self._known = features or {}

    def rotated(self, rotation: FloatArray) -> Prepared:
        """Rotate the shape further by (3, 3), in the frame of the network."""
        matrix = homogeneous(rotation) @ self.matrix  # (4, 4)
        return Prepared(self.sample, matrix, self.frame, at_once=self.at_once)

    def placed(self, matrix: FloatArray, at_once: int) -> Prepared:
        """Put the shape elsewhere by a (4, 4) matrix of its own; the network sees it there."""
        return Prepared(self.sample, matrix, self.frame, at_once=at_once)

    @property
    def shape(self) -> Shape:
        """The shape without its outliers."""
        return self.sample.shape

    def all_points(self) -> FloatArray:
        """(N, 3) every point of the shape in the coordinates of the network."""
        points: FloatArray = self.shape.points @ self.matrix[:3, :3].T + self.matrix[:3, 3]
        return points

    @lazy
    def points(self) -> Tensor:
        """(n, 3) float32, the embedded points in the coordinates of the network."""
        points = self.sample.points @ self.matrix[:3, :3].T + self.matrix[:3, 3]  # (n, 3)
        return torch.from_numpy(points.astype(np.float32))

    @lazy
    def first_part(self) -> EmbeddedShape:
        """The first part alone: enough for a first look."""
        rows = torch.from_numpy(self.sample.parts[0])  # (p,)
        return EmbeddedShape(self.points[rows], self.part_features(0), name=self.shape.name)

    @lazy
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
        """(p, D) embedding of a part; the model centres and scales it, unless it is placed."""
        if number in self._known:
            return self._known[number]
        if self.at_once is not None:
            rows = torch.from_numpy(self.sample.parts[number])  # (p,)
            along = self.sample.along(number)  # (p, L)
            if along is not None:
                along = along * np.linalg.norm(self.matrix[0, :3])
            return self.sample.model.embed_placed(
                self.points[rows], at_once=self.at_once, along=along
            )
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
    include: IntArray | None = None,
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
    include
        (K,) points of the shape that are embedded in any case, unless they are outliers.
    tell
        Called when the points are chosen; the rest is orientation.

    Returns
    -------
    For each of the networks, the shape in every plausible orientation, the best first.
    """
    kept = cleaned(shape, clean=clean, mirror=mirror)
    shape = kept.shape
    rng = np.random.default_rng(seed)
    rows = sample_rows(shape, points, rng)  # (n,)
    if include is not None:
        rows = np.union1d(rows, np.flatnonzero(np.isin(kept.inliers, include)))  # (n,)
    count = 1 if points is None else max(1, round(len(rows) / PART))
    order = rng.permutation(len(rows))  # (n,), so that each part covers the whole shape
    parts = tuple(np.sort(part) for part in np.array_split(order, count))
    chosen = shape.points[rows]  # (n, 3)
    check_extent(chosen, shape.name)
    normal = normalizing_matrix(chosen, name=shape.name)  # (4, 4)
    tell()
    frames: dict[int, list[Frame]] = {}
    prepared: list[tuple[Prepared, ...]] = []
    for one in networks:
        # How shapes lie against each other is asked later, if at all.
        asked_later = one.orienter if one.relative else None
        sample = Sample(kept, one.model, rows, parts, asked_later)
        if orient == "none" or one.orienter is None or one.relative:
            prepared.append((Prepared(sample, normal),))
            continue
        if id(one.orienter) not in frames:
            found = one.orienter.frames(chosen, given=orient == "auto")
            frames[id(one.orienter)] = plausible(found, orient)
        prepared.append(
            tuple(
                Prepared(sample, homogeneous(frame.rotation) @ normal, frame)
                for frame in frames[id(one.orienter)]
            )
        )
    return tuple(prepared)


def plausible(frames: list[Frame], orient: Orient) -> list[Frame]:
    """Keep the best frame and those that may be right instead, as rotations that are allowed."""
    kept = [*frames[:2], *(frame for frame in frames[2:] if frame.certainty >= _UNLIKELY)]
    if orient == "yaw":
        kept = [frame._replace(rotation=yaw_only(frame.rotation)) for frame in kept]
    return kept[:_ORIENTATIONS]


def yaw_only(rotation: FloatArray) -> FloatArray:
    """(3, 3) rotation about the y axis nearest to a given one."""
    angle = np.arctan2(rotation[0, 2] - rotation[2, 0], rotation[0, 0] + rotation[2, 2])
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]])
