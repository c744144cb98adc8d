"""Shape: points with what may come along (faces, colours, labels) and the way back to its file.

The canonical frame of the whole project is y-up, facing +z, with the body's left at +x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Root-mean-square distance to the centre after normalisation. A standing adult has about this
#: radius in metres, so the paper's bandwidth of 0.01 keeps its meaning.
CANONICAL_RADIUS = 0.5


@dataclass(frozen=True, eq=False)
class Shape:
    """A mesh or a point cloud; immutable, every method returns a new one.

    Attributes
    ----------
    points
        (N, 3) float64, finite.
    faces
        (F, 3) int64 vertex indices, or None for a cloud.
    colors
        (N, 3) or (N, 4) uint8, or None.
    labels
        (N,) int64, or None.
    transform
        (4, 4) float64: takes `points` back to the coordinates the shape came with.
    name
        What to call it in messages; often the file's stem.
    """

    points: FloatArray
    faces: IntArray | None = None
    colors: NDArray[np.uint8] | None = None
    labels: IntArray | None = None
    transform: FloatArray = field(default_factory=lambda: np.eye(4))
    name: str = "shape"

    def __post_init__(self) -> None:
        points = _frozen(self._checked_points())
        object.__setattr__(self, "points", points)
        count = len(points)
        if self.faces is not None:
            object.__setattr__(self, "faces", _frozen(self._checked_faces(count)))
        if self.colors is not None:
            colors = np.asarray(self.colors)
            if colors.dtype != np.uint8 or colors.ndim != 2 or colors.shape[1] not in (3, 4):
                raise InputError(
                    f"{self.name}: colours are {colors.dtype} of shape {colors.shape}; "
                    "uint8 of shape (N, 3) or (N, 4) is needed; scale floats to 0..255 first"
                )
            self._check_length("colours", colors, count)
            object.__setattr__(self, "colors", _frozen(colors))
        if self.labels is not None:
            labels = np.asarray(self.labels)
            if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
                raise InputError(
                    f"{self.name}: labels are {labels.dtype} of shape {labels.shape}; "
                    "one whole number per point is needed; number your classes from 0"
                )
            self._check_length("labels", labels, count)
            object.__setattr__(self, "labels", _frozen(labels.astype(np.int64)))
        transform = np.array(self.transform, dtype=np.float64)
        if transform.shape != (4, 4) or not np.isfinite(transform).all():
            raise InputError(
                f"{self.name}: the transform has shape {transform.shape}; "
                "a finite (4, 4) matrix is needed; leave it out for the identity"
            )
        object.__setattr__(self, "transform", _frozen(transform))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        faces = "a cloud" if self.faces is None else f"{len(self.faces)} faces"
        return f"Shape({self.name!r}, {len(self)} points, {faces})"

    @property
    def diameter(self) -> float:
        """Length of the diagonal of the bounding box, a cheap bound of the largest distance."""
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))

    def transformed(self, matrix: ArrayLike) -> Shape:
        """Move the points by a (4, 4) matrix; `transform` still leads back to the origin."""
        matrix = np.asarray(matrix, dtype=np.float64)  # (4, 4)
        if matrix.shape != (4, 4):
            raise InputError(
                f"{self.name}: a matrix of shape {matrix.shape} came; (4, 4) is needed; "
                "put a (3, 3) rotation into the upper left of the identity"
            )
        points = self.points @ matrix[:3, :3].T + matrix[:3, 3]  # (N, 3)
        return replace(self, points=points, transform=self.transform @ np.linalg.inv(matrix))

    def rotated(self, rotation: ArrayLike) -> Shape:
        """Turn the points by a (3, 3) rotation about the origin."""
        matrix = np.eye(4)
        matrix[:3, :3] = np.asarray(rotation, dtype=np.float64)
        return self.transformed(matrix)

    def normalized(self, *, radius: float | None = CANONICAL_RADIUS) -> Shape:
        """Centre the mean of the points and scale their root-mean-square radius to `radius`.

        `radius=None` centres and keeps the unit, as the paper's training data does.
        """
        return self.transformed(normalizing_matrix(self.points, radius=radius, name=self.name))

    def restored(self, points: ArrayLike | None = None) -> FloatArray:
        """Points of this frame (by default its own) in the coordinates the shape came with."""
        points = self.points if points is None else np.asarray(points, dtype=np.float64)
        restored: FloatArray = points @ self.transform[:3, :3].T + self.transform[:3, 3]  # (N, 3)
        return restored

    def subset(self, indices: ArrayLike | Sequence[int]) -> Shape:
        """Keep the points at `indices`, in that order, as a cloud (faces do not survive)."""
        indices = np.asarray(indices)
        return Shape(
            points=self.points[indices],
            colors=None if self.colors is None else self.colors[indices],
            labels=None if self.labels is None else self.labels[indices],
            transform=self.transform,
            name=self.name,
        )

    def _checked_points(self) -> FloatArray:
        try:
            points = np.array(self.points, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self.name}: the points are not numbers ({error}); "
                "an (N, 3) array is needed; check the file's columns"
            ) from None
        if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
            raise InputError(
                f"{self.name}: points of shape {points.shape} came; (N, 3) with N >= 1 is needed; "
                "put one point in each row, with x, y and z"
            )
        bad = ~np.isfinite(points).all(axis=1)
        if bad.any():
            raise InputError(
                f"{self.name}: {bad.sum()} of {len(points)} points are not finite, the first is "
                f"number {int(bad.argmax())}; finite coordinates are needed; remove those points"
            )
        return points

    def _checked_faces(self, count: int) -> IntArray:
        faces = np.asarray(self.faces)
        if faces.ndim != 2 or faces.shape[1] != 3 or not np.issubdtype(faces.dtype, np.integer):
            raise InputError(
                f"{self.name}: faces are {faces.dtype} of shape {faces.shape}; "
                "whole numbers of shape (F, 3) are needed; triangulate the mesh first"
            )
        if faces.size and (faces.min() < 0 or faces.max() >= count):
            raise InputError(
                f"{self.name}: faces name vertices {faces.min()} to {faces.max()}; the shape has "
                f"vertices 0 to {count - 1}; check whether the file counts from 1"
            )
        return faces.astype(np.int64)

    def _check_length(self, what: str, values: NDArray[np.generic], count: int) -> None:
        if len(values) != count:
            raise InputError(
                f"{self.name}: {len(values)} {what} came for {count} points; "
                "one for each point is needed; leave them out if they belong to something else"
            )


def normalizing_matrix(
    points: NDArray[np.floating], *, radius: float | None = CANONICAL_RADIUS, name: str = "shape"
) -> FloatArray:
    """(4, 4) matrix that centres (N, 3) points and scales their RMS radius to `radius`."""
    centre = points.mean(axis=0, dtype=np.float64)  # (3,)
    scale = 1.0
    if radius is not None:
        rms = float(np.sqrt(np.square(points - centre).sum(axis=1).mean()))
        if rms == 0.0:
            raise InputError(
                f"{name}: all {len(points)} points are the same; a shape with an extent is "
                "needed; check that the file was read with the right columns"
            )
        scale = radius / rms
    matrix = np.eye(4)
    matrix[:3, :3] *= scale
    matrix[:3, 3] = -scale * centre
    return matrix


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, contiguous and read-only, without touching the caller's own."""
    view: NDArray[Any] = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
