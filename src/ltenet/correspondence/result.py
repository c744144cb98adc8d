"""Correspondence: for each source point its partner on the target, and how sure that is.

Maps always run from source to target. Besides the one partner in `indices`, a point may have a soft
one: a few target points with weights, so that it can lie between points.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.correspondence.algebra import (
    UNMATCHED,
    Filling,
    MapArrays,
    composed_map,
    inverse_map,
)
from ltenet.correspondence.checks import check_size, checked_arrays, warn_of_other_hash
from ltenet.correspondence.soft_rows import SoftRows
from ltenet.correspondence.values import pulled
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.correspondences import MapRecord, read_record, write_record
from ltenet.metrics import coverage
from ltenet.shape import Shape, shape_hash


@dataclass(frozen=True, eq=False)
class Correspondence:
    """A map from the points of a source shape to those of a target; immutable.

    Attributes
    ----------
    indices
        (N,) int64 target point of each source point, -1 for unmatched.
    target_size
        Number M of target points.
    scores
        (N,) float64 probability that the partner is right, within 5 % of the diameter; None if
        unknown. Points below the threshold of matching have index -1 and keep their score.
    neighbors
        (N, K) int64 target points around the partner, or None. Unmatched points have them too.
    weights
        (N, K) float64 weights of these, or None. Rows sum to 1. Points without neighbours, such as
        those that an inverse does not reach, have zeros and index -1.
    details
        How the map was made, as plain values: model, version, options, hashes of both inputs.
    source, target
        The shapes, if attached; files do not hold them.
    """

    indices: IntArray
    target_size: int
    scores: FloatArray | None = None
    neighbors: IntArray | None = None
    weights: FloatArray | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    source: Shape | None = None
    target: Shape | None = None

    def __post_init__(self) -> None:
        arrays = checked_arrays(self.arrays, self.target_size)
        for name, values in arrays._asdict().items():
            object.__setattr__(self, name, values)
        check_size("source", self.source, len(self))
        check_size("target", self.target, self.target_size)
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        matched = f"{int(self.matched.sum())} of {len(self)} points matched"
        return f"Correspondence({matched}, onto {self.target_size})"

    def _repr_html_(self) -> str | None:
        # By name: only a notebook needs the viewer, which imports this module.
        html: str | None = import_module("ltenet.viewer").notebook_html(self)
        return html

    @property
    def matched(self) -> NDArray[np.bool_]:
        """(N,) True where a source point has a partner."""
        return self.arrays.matched

    @property
    def coverage(self) -> float:
        """Share of the target points that are partner of a source point."""
        return coverage(self.indices, self.target_size)

    @property
    def arrays(self) -> MapArrays:
        """Indices, scores, neighbours and weights."""
        return MapArrays(self.indices, self.scores, self.neighbors, self.weights)

    def soft(self) -> SoftRows:
        """Neighbours and weights, (N, K) each; of a hard map the partners with weight 1.

        Points with neither a partner nor neighbours have point 0 with weight 0.
        """
        return self.arrays.soft

    def positions(self, target: Shape | ArrayLike | None = None) -> FloatArray:
        """(N, 3) places of the source points on the target, means of its points by weight.

        NaN for points without a partner.
        """
        target = self.target if target is None else target
        if target is None:
            raise InputError(
                "correspondence: got no target and none is attached, expected its points; "
                "try passing the target"
            )
        points = target.points if isinstance(target, Shape) else np.asarray(target, np.float64)
        if points.shape != (self.target_size, 3):
            raise InputError(
                f"correspondence: got target points of shape {points.shape}, expected "
                f"({self.target_size}, 3); try the target that the map belongs to"
            )
        neighbors, weights = self.soft()
        positions: FloatArray = np.einsum("nk,nkd->nd", weights, points[neighbors])  # (N, 3)
        positions[~self.matched] = np.nan
        return positions

    def attached(self, source: Shape | None, target: Shape | None) -> Correspondence:
        """Return the same map with its shapes attached."""
        return replace(self, source=source, target=target)

    def thresholded(self, threshold: float) -> Correspondence:
        """Unmatch the points with a score below `threshold`.

        Unmatched points at or above it get their strongest neighbour back, so a lower threshold
        undoes a higher one.
        """
        if self.scores is None:
            raise InputError(
                "correspondence: got a threshold for a map without scores, expected one score "
                "per point; try setting indices to -1 instead"
            )
        indices = np.where(self.scores >= threshold, self.indices, UNMATCHED)  # (N,)
        if self.neighbors is not None and self.weights is not None:
            back = (self.scores >= threshold) & ~self.matched & (self.weights > 0).any(axis=1)
            indices[back] = self.arrays.strongest_neighbor[back]
        return replace(self, indices=indices)

    def inverse(self, *, fill: float = 0.0) -> Correspondence:
        """Return the map from target to source.

        The partners of a target point are the source points mapped to it, weighted by weight times
        score. Its index is the strongest of them; ties go to the point nearest to their mean if the
        source is attached, else to the first. Target points that no source point is mapped to stay
        unmatched unless `fill` reaches them.

        Parameters
        ----------
        fill
            Target points without a partner get the source points that land nearest, up to this
            share of the target's diameter. 0.05 closes the gaps between points of similar shapes
            and leaves out parts that the source lacks. Requires the attached target.
        """
        filling = None
        if fill > 0 and self.matched.any():
            positions = self.positions()  # fails without a target
            assert self.target is not None
            filling = Filling(positions, self.target.points, fill * self.target.diameter)
        places = None if self.source is None else self.source.points
        arrays = inverse_map(self.arrays, self.target_size, places=places, filling=filling)
        details = {**self.details, "inverted": not self.details.get("inverted", False)}
        for here, there in (("source_hash", "target_hash"), ("target_hash", "source_hash")):
            details.pop(here, None)
            if there in self.details:
                details[here] = self.details[there]
        return Correspondence(
            **arrays._asdict(),
            target_size=len(self),
            details=details,
            source=self.target,
            target=self.source,
        )

    def compose(self, other: Correspondence) -> Correspondence:
        """Return this map followed by `other`, from this source to the other's target.

        A point is matched if it is in both steps. Scores multiply; if only one map has scores, they
        are kept.
        """
        if self.target_size != len(other):
            raise InputError(
                f"correspondence: got a map onto {self.target_size} points followed by one from "
                f"{len(other)}, expected that they meet on one shape; try the other order"
            )
        warn_of_other_hash("the shape in the middle", self._hash("target"), other._hash("source"))
        details: dict[str, Any] = {"composed": [dict(self.details), dict(other.details)]}
        for name, given in (("source_hash", self), ("target_hash", other)):
            if name in given.details:
                details[name] = given.details[name]
        return Correspondence(
            **composed_map(self.arrays, other.arrays)._asdict(),
            target_size=other.target_size,
            details=details,
            source=self.source,
            target=other.target,
        )

    def pull(self, values: ArrayLike, *, missing: float | None = None) -> NDArray[Any]:
        """Carry values from the target's points to the source's.

        Parameters
        ----------
        values
            (M, ...) on the target. Floats are averaged by weight. Integers and booleans are voted
            on, so no new label appears. (M, 3) and (M, 4) uint8 are colours and are averaged.
        missing
            Value of points without a partner: by default NaN, -1, False or grey.

        Returns
        -------
        (N, ...) float64, int64, bool or uint8.
        """
        array = np.asarray(values)
        if array.ndim == 0 or len(array) != self.target_size:
            raise InputError(
                f"correspondence: got values of shape {array.shape}, expected one row for each of "
                f"the {self.target_size} target points; try push for values on the source "
                "(`ltenet transfer` without --reverse)"
            )
        return pulled(array, self.soft(), self.matched, missing=missing)

    def push(
        self, values: ArrayLike, *, fill: float = 0.0, missing: float | None = None
    ) -> NDArray[Any]:
        """Carry values from the source's points to the target's, through `inverse(fill=fill)`."""
        return self.inverse(fill=fill).pull(values, missing=missing)

    def check_belongs(self, source: Shape | None = None, target: Shape | None = None) -> None:
        """Raise if sizes differ from the map's; warn of other shapes of the same size."""
        check_size("source", source, len(self))
        check_size("target", target, self.target_size)
        for role, shape in (("source", source), ("target", target)):
            if shape is not None:
                what = f"{shape.name}, the {role},"
                warn_of_other_hash(what, self._hash(role), shape_hash(shape))

    def save(
        self, path: str | os.PathLike[str], *, index_base: int | None = None, force: bool = False
    ) -> None:
        """Write the map: `.npz` holds all of it, `.csv` partners and scores, the others partners.

        Parameters
        ----------
        path
            `.npz`, `.csv` and `.txt` count from 0, `.map` and `.vts` from 1.
        index_base
            Count from 0 or 1 instead; not for `.npz`.
        force
            Overwrite an existing file.
        """
        details = dict(self.details)
        for role in ("source", "target"):
            if self._hash(role) is not None:
                details[f"{role}_hash"] = self._hash(role)
        record = MapRecord(
            self.indices, self.target_size, self.scores, self.neighbors, self.weights, details
        )
        write_record(path, record, index_base=index_base, force=force)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        source: Shape | None = None,
        target: Shape | None = None,
        target_size: int | None = None,
        index_base: int | None = None,
    ) -> Correspondence:
        """Read a map that `save` wrote, or a text file of partners from other software.

        Parameters
        ----------
        path
            A file with one of the suffixes of `save`.
        source, target
            Its shapes; sizes are checked, and the shapes attached.
        target_size
            Number of target points, if neither the target nor the file tells.
        index_base
            First index of a text file, 0 or 1; None decides by the suffix.
        """
        size = target_size if target is None else len(target)
        count = None if source is None else len(source)
        record = read_record(path, count=count, size=size, index_base=index_base)
        if record.target_size is None:
            raise InputError(
                f"{os.fspath(path)}: got a file without the number of target points, "
                "expected it from elsewhere; try passing target or target_size"
            )
        try:
            loaded = cls(**{**record._asdict(), "target_size": record.target_size})
            loaded.check_belongs(source, target)
        except InputError as error:
            raise InputError(f"{os.fspath(path)}: {error}") from None
        return loaded.attached(source, target)

    def _hash(self, role: str) -> str | None:
        shape = getattr(self, role)
        known = self.details.get(f"{role}_hash")
        return known if known is not None or shape is None else shape_hash(shape)
