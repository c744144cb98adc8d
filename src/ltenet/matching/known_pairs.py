"""Partners that the user knows: given by number or position, or read from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.io.landmarks import Landmarks, read_landmarks
from ltenet.io.values import read_values
from ltenet.shape import Shape

#: More than this steer no better and slow the search.
MOST = 50
#: Positions farther than this from the shape, in diameters, belong to another one.
_FAR = 0.1


class KnownPairs(NamedTuple):
    """K partners that a map must meet.

    Attributes
    ----------
    source, target
        (K,) int64 points of the two shapes; no source point occurs twice.
    """

    source: IntArray
    target: IntArray


def known_pairs(pairs: ArrayLike | KnownPairs, source: Shape, target: Shape) -> KnownPairs:
    """Check known partners and find the points they mean.

    Parameters
    ----------
    pairs
        (K, 2) numbers of source and target points, from 0; or positions on both, (K, 6) or
        (K, 2, 3), of which the nearest points count.
    source, target
        The shapes.
    """
    if isinstance(pairs, KnownPairs):
        return _checked(pairs, source, target)
    given = np.asarray(pairs)
    if given.ndim == 2 and given.shape[1] == 2 and np.issubdtype(given.dtype, np.integer):
        return _checked(KnownPairs(*given.astype(np.int64).T), source, target)
    positions = given.reshape(-1, 2, 3) if given.ndim == 2 and given.shape[1:] == (6,) else given
    if positions.shape[1:] != (2, 3) or not np.issubdtype(positions.dtype, np.number):
        raise UsageError(
            f"got known pairs as an array of shape {given.shape} and type {given.dtype}, expected "
            "(K, 2) whole numbers or (K, 6) coordinates; try [(12, 40), (7, 91)]"
        )
    return _at(
        positions[:, 0].astype(np.float64), positions[:, 1].astype(np.float64), source, target
    )


def read_known_pairs(paths: Sequence[Path], source: Shape, target: Shape) -> KnownPairs:
    """Read known partners.

    Parameters
    ----------
    paths
        One table with two columns (numbers of points, from 0) or six (positions); or two files of
        landmarks, those of the source first, of which equal names are partners.
    """
    if len(paths) == 1:
        values: NDArray[np.number] = read_values(paths[0])
        return known_pairs(values.reshape(1, -1) if values.ndim == 1 else values, source, target)
    if len(paths) != 2:
        raise UsageError(
            f"got {len(paths)} files of known pairs, expected one table or the landmarks of source "
            "and target; try --pairs known.csv"
        )
    here, there = read_landmarks(paths[0], source), read_landmarks(paths[1], target)
    common = [name for name in _placed(here) if name in _placed(there)]
    if not common:
        raise InputError(
            f"{paths[0]} and {paths[1]}: got no landmark of the same name in both, expected at "
            "least one; try giving partners equal names"
        )
    at_source, at_target = (
        np.array([landmarks.points[landmarks.names.index(name)] for name in common])
        for landmarks in (here, there)
    )
    return _at(at_source, at_target, source, target)


def _placed(landmarks: Landmarks) -> list[str]:
    """Names of the landmarks that have a place."""
    finite = np.asarray(np.isfinite(landmarks.points).all(axis=1))  # (L,)
    return [name for name, known in zip(landmarks.names, finite, strict=True) if known]


def _at(here: FloatArray, there: FloatArray, source: Shape, target: Shape) -> KnownPairs:
    """Nearest points of (K, 3) positions on either shape."""
    found = []
    for shape, positions in ((source, here), (target, there)):
        if not np.isfinite(positions).all():
            raise InputError(
                f"{shape.name}: got known pairs with coordinates that are not finite, expected "
                "numbers; try leaving out what is missing"
            )
        distances, indices = nearest_neighbors(shape.points, positions, 1)  # (K, 1) each
        if distances.size and float(distances.max()) > _FAR * shape.diameter:
            worst = int(distances[:, 0].argmax())
            raise InputError(
                f"{shape.name}: got known pair {worst} at a distance of {distances[worst, 0]:g} "
                f"from the shape, expected it on the surface; try the coordinates of the file"
            )
        found.append(indices[:, 0].astype(np.int64))
    return _checked(KnownPairs(*found), source, target)


def _checked(pairs: KnownPairs, source: Shape, target: Shape) -> KnownPairs:
    count = len(pairs.source)
    if not 1 <= count <= MOST:
        raise UsageError(
            f"got {count} known pairs, expected 1 to {MOST}; try those that are spread widest"
        )
    for side, indices, shape in (
        ("source", pairs.source, source),
        ("target", pairs.target, target),
    ):
        if int(indices.min()) < 0 or int(indices.max()) >= len(shape):
            raise InputError(
                f"got known pairs with {side} points {indices.min()} to {indices.max()}, expected "
                f"0 to {len(shape) - 1} of {shape.name}; try counting from 0"
            )
    merged = np.unique(np.stack(pairs, axis=1), axis=0)  # (K', 2)
    points, counts = np.unique(merged[:, 0], return_counts=True)
    if (counts > 1).any():
        raise InputError(
            f"got two partners of the source point {points[counts.argmax()]}, expected one; try "
            "removing the wrong one"
        )
    return KnownPairs(merged[:, 0], merged[:, 1])
