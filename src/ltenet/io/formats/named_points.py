"""Landmarks as the formats exchange them: named places with what is known about each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray

System = Literal["LPS", "RAS"]

_PROBABILITY = re.compile(r"(?:^|; )probability=([0-9.e+-]{1,24})$")


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Named places on a shape.

    Attributes
    ----------
    names
        L names.
    points
        (L, 3) float64 places; NaN where there is none.
    system
        Which way the axes point, "LPS" or "RAS", where that is known.
    indices
        (L,) the points of the shape that the landmarks are, where they were given so.
    descriptions
        L remarks.
    probabilities
        (L,) how likely each place is right, NaN where that is not known; None if none is.
    """

    names: tuple[str, ...]
    points: FloatArray
    system: System | None = None
    indices: IntArray | None = None
    descriptions: tuple[str, ...] = ()
    probabilities: FloatArray | None = None

    def __post_init__(self) -> None:
        points = np.array(self.points, dtype=np.float64)
        if points.shape != (len(self.names), 3):
            raise InputError(
                f"landmarks: got points of shape {points.shape} for {len(self.names)} names, "
                "expected a row with x, y and z for each; try checking the columns"
            )
        if np.isinf(points).any():
            raise InputError(
                "landmarks: got an infinite coordinate, expected finite numbers; try an empty "
                "place for a landmark that has none"
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "names", tuple(self.names))
        blank = ("",) * len(self.names)
        object.__setattr__(self, "descriptions", tuple(self.descriptions) or blank)
        if self.probabilities is not None:
            object.__setattr__(self, "probabilities", self._checked_probabilities())

    def __len__(self) -> int:
        return len(self.names)

    def converted(self, system: System) -> Landmarks:
        """Return the same places with axes that point as `system` says: two signs change."""
        if self.system in (system, None):
            return replace(self, system=system)
        return replace(self, points=self.points * (-1, -1, 1), system=system)

    def _checked_probabilities(self) -> FloatArray | None:
        values = np.array(self.probabilities, dtype=np.float64)
        fine = np.isnan(values) | ((values >= 0) & (values <= 1))
        if values.shape != (len(self.names),) or not fine.all():
            raise InputError(
                f"landmarks: got probabilities of shape {values.shape} for {len(self.names)} "
                "names, expected one from 0 to 1 for each; try leaving them out"
            )
        return None if np.isnan(values).all() else values


class Row(NamedTuple):
    """One landmark of a file; NaN stands for what is not known."""

    name: str
    point: tuple[float, float, float]
    description: str = ""
    probability: float = np.nan

    @property
    def lost(self) -> bool:
        """Whether the landmark has no place."""
        return self.point[0] != self.point[0]

    @property
    def remark(self) -> str:
        """The description with the probability at its end, for formats without a column for it."""
        known = (
            [] if self.probability != self.probability else [f"probability={self.probability!r}"]
        )
        return "; ".join([*([self.description] if self.description else []), *known])


def row_of_remark(name: str, point: tuple[float, float, float], remark: str) -> Row:
    """Return the row whose `remark` was written."""
    found = _PROBABILITY.search(remark)
    try:
        probability = float(found.group(1)) if found else np.nan
    except ValueError:
        found, probability = None, np.nan
    if not found or not 0 <= probability <= 1:
        return Row(name, point, remark)
    return Row(name, point, remark[: found.start()], probability)


def rows(landmarks: Landmarks) -> list[Row]:
    """Return the landmarks one by one."""
    probabilities: Sequence[float] = [np.nan] * len(landmarks)
    if landmarks.probabilities is not None:
        probabilities = landmarks.probabilities.tolist()
    points: Any = landmarks.points.tolist()
    columns = landmarks.names, map(tuple, points), landmarks.descriptions, probabilities
    return [Row(*row) for row in zip(*columns, strict=True)]


def landmarks_of(found: Sequence[Row], system: System | None = None) -> Landmarks:
    """Return rows as landmarks; none at all is an empty set."""
    return Landmarks(
        tuple(row.name for row in found),
        np.array([row.point for row in found], np.float64).reshape(-1, 3),
        system,
        None,
        tuple(row.description for row in found),
        np.array([row.probability for row in found]),
    )
