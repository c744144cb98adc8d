"""Shape: points, optional faces, colours and labels, and the transform back to the file's frame.

The canonical frame of the whole project is y-up, facing +z, with the body's left at +x.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.lazy import lazy

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
        (4, 4) float64: takes `points` back to the original coordinates.
    name
        Its name in messages; often the file's stem.
    """

    points: FloatArray
    faces: IntArray | None = None
    colors: NDArray[np.uint8] | None = None
    labels: IntArray | None = None
    transform: FloatArray = field(default_factory=lambda: np.eye(4))
    name: str = "shape"

    def __post_init__(self) -> None:
        points = frozen(self._checked_points())
        object.__setattr__(self, "points", points)
        count = len(points)
        if self.faces is not None:
            object.__setattr__(self, "faces", frozen(self._checked_faces(count)))
        if self.colors is not None:
            colors = np.asarray(self.colors)
            if colors.dtype != np.uint8 or colors.ndim != 2 or colors.shape[1] not in (3, 4):
                raise InputError(
                    f"{self.name}: got colours of type {colors.dtype} and shape {colors.shape}, "
                    "expected uint8 of shape (N, 3) or (N, 4); try scaling floats to 0..255"
                )
            self._check_length("colours", colors, count)
            object.__setattr__(self, "colors", frozen(colors))
        if self.labels is not None:
            labels = np.asarray(self.labels)
            if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
                raise InputError(
                    f"{self.name}: got labels of type {labels.dtype} and shape {labels.shape}, "
                    "expected one integer per point; try numbering the classes from 0"
                )
            self._check_length("labels", labels, count)
            object.__setattr__(self, "labels", frozen(labels.astype(np.int64)))
        transform = np.array(self.transform, dtype=np.float64)
        if transform.shape != (4, 4) or not np.isfinite(transform).all():
            raise InputError(
                f"{self.name}: got a transform of shape {transform.shape}, "
                "expected a finite (4, 4) matrix; try leaving it out for the identity"
            )
        object.__setattr__(self, "transform", frozen(transform))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        faces = "a cloud" if self.faces is None else f"{len(self.faces)} faces"
        return f"Shape({self.name!r}, {len(self)} points, {faces})"

    @lazy
    def diameter(self) -> float:
        """Largest distance between two points."""
        from ltenet.geometry.diameter import largest_distance  # imports scipy

        return largest_distance(self.points)

    def transformed(self, matrix: ArrayLike) -> Shape:
        """Apply a (4, 4) matrix; `transform` still leads back to the original coordinates."""
        matrix = np.asarray(matrix, dtype=np.float64)  # (4, 4)
        if matrix.shape != (4, 4):
            raise InputError(
                f"{self.name}: got a matrix of shape {matrix.shape}, expected (4, 4); "
                "try a (3, 3) rotation in the upper left of the identity"
            )
        points = self.points @ matrix[:3, :3].T + matrix[:3, 3]  # (N, 3)
        return replace(self, points=points, transform=self.transform @ np.linalg.inv(matrix))

    def rotated(self, rotation: ArrayLike) -> Shape:
        """Rotate about the origin by a (3, 3) matrix."""
        matrix = np.eye(4)
        matrix[:3, :3] = np.asarray(rotation, dtype=np.float64)
        return self.transformed(matrix)

    def normalized(self, *, radius: float | None = CANONICAL_RADIUS, center: bool = True) -> Shape:
        """Move the mean to the origin and scale the root-mean-square radius to `radius`.

        `radius=None` keeps the unit, `center=False` the origin.
        """
        return self.transformed(
            normalizing_matrix(self.points, radius=radius, center=center, name=self.name)
        )

    def restored(self, points: ArrayLike | None = None) -> FloatArray:
        """Return points of this frame (by default its own) in the original coordinates."""
        points = self.points if points is None else np.asarray(points, dtype=np.float64)
        restored: FloatArray = points @ self.transform[:3, :3].T + self.transform[:3, 3]  # (N, 3)
        return restored

    def subset(self, indices: ArrayLike | Sequence[int]) -> Shape:
        """Keep the points at `indices`, in that order, as a cloud without faces."""
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
                f"{self.name}: got points that are not numbers ({error}), "
                "expected an (N, 3) array; try a file with numbers in its first three columns"
            ) from None
        if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
            raise InputError(
                f"{self.name}: got points of shape {points.shape}, expected (N, 3) with N >= 1; "
                "try one point per row, with x, y and z"
            )
        bad = ~np.isfinite(points).all(axis=1)
        if bad.any():
            raise InputError(
                f"{self.name}: got {bad.sum()} of {len(points)} points that are not finite, the "
                f"first at index {int(bad.argmax())}, expected finite coordinates; try removing "
                "these points"
            )
        return points

    def _checked_faces(self, count: int) -> IntArray:
        faces = np.asarray(self.faces)
        if faces.ndim != 2 or faces.shape[1] != 3 or not np.issubdtype(faces.dtype, np.integer):
            raise InputError(
                f"{self.name}: got faces of type {faces.dtype} and shape {faces.shape}, "
                "expected integers of shape (F, 3); try triangulating the mesh"
            )
        if faces.size and (faces.min() < 0 or faces.max() >= count):
            raise InputError(
                f"{self.name}: got faces with vertices {faces.min()} to {faces.max()}, expected "
                f"vertices 0 to {count - 1}; try subtracting 1 if the file counts from 1"
            )
        return faces.astype(np.int64)

    def _check_length(self, what: str, values: NDArray[np.generic], count: int) -> None:
        if len(values) != count:
            raise InputError(
                f"{self.name}: got {len(values)} {what} for {count} points, expected one per "
                f"point; try without {what}"
            )


def normalizing_matrix(
    points: NDArray[np.floating],
    *,
    radius: float | None = CANONICAL_RADIUS,
    center: bool = True,
    name: str = "shape",
) -> FloatArray:
    """(4, 4) matrix that centres (N, 3) points and scales their RMS radius to `radius`.

    `radius=None` keeps the unit. `center=False` keeps the origin and scales about it.
    """
    centre = points.mean(axis=0, dtype=np.float64)  # (3,)
    scale = 1.0
    if radius is not None:
        rms = float(np.sqrt(np.square(points - centre).sum(axis=1).mean()))
        if rms == 0.0:
            raise InputError(
                f"{name}: got {len(points)} points that coincide, expected a shape with an "
                "extent; try a file with coordinates in its first three columns"
            )
        scale = radius / rms
    matrix = np.eye(4)
    matrix[:3, :3] *= scale
    if center:
        matrix[:3, 3] = -scale * centre
    return matrix


def shape_hash(shape: Shape) -> str:
    """Sixteen hexadecimal digits of the SHA-256 of points and faces."""
    digest = hashlib.sha256()
    # Adding 0.0 turns -0.0 into 0.0; a fixed byte order makes the hash independent of the machine.
    digest.update((shape.points + 0.0).astype("<f8").tobytes())
    if shape.faces is not None:
        digest.update(b"faces" + shape.faces.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous, read-only view and leave the caller's array as it is."""
    view: NDArray[Any] = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
