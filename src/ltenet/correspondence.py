"""The result of matching: for each source point, its partner on the target, and how sure that is.

Maps always run from source to target. Besides the one partner in `indices` a correspondence may
hold a soft one: a few target points with weights, so that a partner can lie between points.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.correspondence_files import MapRecord, read_record, write_record
from ltenet.errors import InputError
from ltenet.shape import FloatArray, IntArray, Shape
from ltenet.soft_maps import carried, chained, nearest_rows, turned_over

logger = logging.getLogger(__name__)

#: Index of a source point without a partner.
UNMATCHED = -1

#: Source points that an inverse may mix for one target point, at least.
_INVERSE_NEIGHBORS = 4


@dataclass(frozen=True, eq=False)
class Correspondence:
    """Which point of the target each point of the source is; immutable.

    Attributes
    ----------
    indices
        (N,) int64 target point of each source point, -1 where there is none.
    target_size
        Number M of target points.
    scores
        (N,) float64 probability that the partner is right (within 5 % of the diameter), or None
        where nobody estimated it. Points below the threshold of matching have index -1 and keep
        their score.
    neighbors
        (N, K) int64 target points around the partner, or None. Unmatched points have them too.
    weights
        (N, K) float64 weights of these, which sum to 1, or None. Points that have no neighbours
        at all, as those that an inverse does not reach, have zeros and index -1.
    details
        How the map was made, as plain values: model, version, options, hashes of both inputs.
    source, target
        The shapes themselves where they are at hand; they are not written to files.
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
        indices = _whole_numbers("indices", self.indices, self.target_size)
        if indices.ndim != 1:
            raise InputError(
                f"correspondence: indices of shape {indices.shape} came; (N,) is needed; "
                "give soft partners as neighbors and weights"
            )
        object.__setattr__(self, "indices", _frozen(indices))
        if self.scores is not None:
            scores = np.asarray(self.scores, dtype=np.float64)
            if scores.shape != indices.shape or not ((scores >= 0) & (scores <= 1)).all():
                raise InputError(
                    f"correspondence: scores of shape {scores.shape} came for {len(indices)} "
                    "points; one from 0 to 1 for each is needed; leave them out if not known"
                )
            object.__setattr__(self, "scores", _frozen(scores))
        if (self.neighbors is None) != (self.weights is None):
            raise InputError(
                "correspondence: neighbors and weights belong together and one of them is "
                "missing; both are needed, or neither; leave out the other one too"
            )
        if self.neighbors is not None and self.weights is not None:
            neighbors = _whole_numbers("neighbors", self.neighbors, self.target_size, lowest=0)
            weights = np.asarray(self.weights, dtype=np.float64)
            fits = neighbors.ndim == 2 and len(neighbors) == len(indices)
            if not fits or weights.shape != neighbors.shape:
                raise InputError(
                    f"correspondence: neighbors {neighbors.shape} and weights {weights.shape} came "
                    f"for {len(indices)} points; (N, K) each is needed; use one row per point"
                )
            nothing = (weights == 0).all(axis=1) & (indices == UNMATCHED)  # (N,)
            if not (np.isclose(weights.sum(axis=1), 1.0, atol=1e-4) | nothing).all():
                raise InputError(
                    "correspondence: the weights of a point do not sum to 1; they must; "
                    "divide each row by its sum"
                )
            object.__setattr__(self, "neighbors", _frozen(neighbors))
            object.__setattr__(self, "weights", _frozen(weights))
        for name, shape, size in (
            ("source", self.source, len(indices)),
            ("target", self.target, self.target_size),
        ):
            if shape is not None and len(shape) != size:
                raise InputError(
                    f"correspondence: the {name} has {len(shape)} points, the map {size}; "
                    "they must agree; check that map and shape belong together"
                )
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        matched = f"{int(self.matched.sum())} of {len(self)} points matched"
        return f"Correspondence({matched}, onto {self.target_size})"

    def _repr_html_(self) -> str | None:
        # By name: the viewer stands below, and is needed only when a notebook shows a map.
        html: str | None = import_module("ltenet.viewer").notebook_html(self)
        return html

    @property
    def matched(self) -> NDArray[np.bool_]:
        """(N,) True where a source point has a partner."""
        matched: NDArray[np.bool_] = self.indices != UNMATCHED
        return matched

    @property
    def coverage(self) -> float:
        """Share of the target's points that are the partner of some source point."""
        return len(np.unique(self.indices[self.matched])) / self.target_size

    def soft(self) -> tuple[IntArray, FloatArray]:
        """Neighbours and weights (N, K) and (N, K); from the indices if there are no others.

        Points without partner and without neighbours get point 0 with weight 0.
        """
        if self.neighbors is not None and self.weights is not None:
            return self.neighbors, self.weights
        return np.maximum(self.indices, 0)[:, None], self.matched.astype(np.float64)[:, None]

    def positions(self, target: Shape | ArrayLike | None = None) -> FloatArray:
        """(N, 3) where the source points lie on the target, between its points where weights say.

        Points without a partner are NaN.
        """
        target = self.target if target is None else target
        if target is None:
            raise InputError(
                "correspondence: no target came and none is attached; its points are needed; "
                "pass the target shape"
            )
        points = target.points if isinstance(target, Shape) else np.asarray(target, np.float64)
        if points.shape != (self.target_size, 3):
            raise InputError(
                f"correspondence: target points of shape {points.shape} came; "
                f"({self.target_size}, 3) is needed; check that map and target belong together"
            )
        neighbors, weights = self.soft()
        positions: FloatArray = np.einsum("nk,nkd->nd", weights, points[neighbors])  # (N, 3)
        positions[~self.matched] = np.nan
        return positions

    def attached(self, source: Shape | None, target: Shape | None) -> Correspondence:
        """Return the same map with the shapes that it belongs to."""
        return replace(self, source=source, target=target)

    def thresholded(self, threshold: float) -> Correspondence:
        """Unmatch the points with a score below `threshold`.

        Points at or above it that had no partner get their strongest neighbour back, so a lower
        threshold undoes a higher one.
        """
        if self.scores is None:
            raise InputError(
                "correspondence: a threshold came and there are no scores; one per point is "
                "needed; match with scores, or set indices to -1 yourself"
            )
        indices = np.where(self.scores >= threshold, self.indices, UNMATCHED)  # (N,)
        if self.neighbors is not None and self.weights is not None:
            back = (self.scores >= threshold) & ~self.matched & (self.weights > 0).any(axis=1)
            indices[back] = self._strongest_neighbor()[back]
        return replace(self, indices=indices)

    def inverse(self, *, fill: float = 0.0) -> Correspondence:
        """Return the map from target to source.

        A target point's partners are the source points that it is a partner of, weighted by
        weight and score; its index is the strongest of them, of equally strong ones the nearest to
        their middle if the source is attached, else the first. Target points that nobody is mapped
        to stay unmatched, because that is what the map says of them, unless `fill` allows to go
        further.

        Parameters
        ----------
        fill
            Give target points without a partner the source points that land nearest to them, up
            to this share of the target's diameter (0.05 closes the gaps between points of similar
            shapes, and leaves out parts that the source does not have). Needs the target attached.
        """
        k = 1 if self.neighbors is None else max(self.neighbors.shape[1], _INVERSE_NEIGHBORS)
        # A score of 0 is still a partner, if the least of all.
        trust = self.matched.astype(np.float64)  # (N,)
        if self.scores is not None:
            trust = trust * np.maximum(self.scores, 1e-9)
        partners, weights = turned_over(
            *self.soft(),
            trust,
            count=self.target_size,
            k=k,
            places=self.source.points if self.neighbors is None and self.source else None,
        )
        if fill > 0 and self.matched.any():
            landed = self.positions()[self.matched]  # (n, 3), needs the target
            assert self.target is not None  # positions has seen to it
            limit = fill * self.target.diameter
            near, shares = nearest_rows(landed, self.target.points, k=k, limit=limit)
            empty = weights.sum(axis=1, keepdims=True) == 0  # (M, 1)
            partners = np.where(empty, np.flatnonzero(self.matched)[near], partners)
            weights = np.where(empty, shares, weights)
        reached = weights.sum(axis=1) > 0  # (M,)
        indices = np.where(reached, partners[:, 0], UNMATCHED)  # (M,)
        scores = None
        if self.scores is not None:
            scores = np.where(reached, self.scores[partners[:, 0]], 0.0)  # (M,)
        soft = self.neighbors is not None
        details = {**self.details, "inverted": not self.details.get("inverted", False)}
        for here, there in (("source_hash", "target_hash"), ("target_hash", "source_hash")):
            details.pop(here, None)
            if there in self.details:
                details[here] = self.details[there]
        return Correspondence(
            indices=indices,
            target_size=len(self),
            scores=scores,
            neighbors=partners if soft else None,
            weights=weights if soft else None,
            details=details,
            source=self.target,
            target=self.source,
        )

    def compose(self, other: Correspondence) -> Correspondence:
        """Follow this map and then `other`, from this source to the other's target.

        A point is matched if both steps are; scores multiply, and where only one of the maps has
        some they are taken as they are.
        """
        if self.target_size != len(other):
            raise InputError(
                f"correspondence: a map onto {self.target_size} points came before one from "
                f"{len(other)}; they must meet on one shape; check the order of the two"
            )
        _warn_of_other_hash("the shape in the middle", self._hash("target"), other._hash("source"))
        indices = np.where(self.matched, other.indices[self.indices], UNMATCHED)  # (N,)
        # Points below the threshold keep a score, by way of where they would have gone.
        through = np.where(self.matched, self.indices, self._strongest_neighbor())  # (N,)
        scores = self.scores
        if other.scores is not None:
            onward = other.scores[through]  # (N,)
            scores = onward if scores is None else scores * onward
        neighbors = weights = None
        if self.neighbors is not None or other.neighbors is not None:
            k = max(self.soft()[0].shape[1], other.soft()[0].shape[1])
            neighbors, weights = chained(self.soft(), other.soft(), k=k)
            lost = (weights.sum(axis=1) == 0) & (indices != UNMATCHED)  # negative weights only
            neighbors[lost, 0], weights[lost, 0] = indices[lost], 1.0
        details: dict[str, Any] = {"composed": [dict(self.details), dict(other.details)]}
        for name, given in (("source_hash", self), ("target_hash", other)):
            if name in given.details:
                details[name] = given.details[name]
        return Correspondence(
            indices=indices,
            target_size=other.target_size,
            scores=scores,
            neighbors=neighbors,
            weights=weights,
            details=details,
            source=self.source,
            target=other.target,
        )

    def pull(self, values: ArrayLike, *, missing: float | None = None) -> NDArray[Any]:
        """Bring values from the target's points to the source's.

        Parameters
        ----------
        values
            (M, ...) on the target. Floats are mixed by the soft weights. Whole numbers and truth
            values are voted on, so that no label appears that was not there. (M, 3) and (M, 4)
            uint8 are colours, which are mixed.
        missing
            What points without a partner get: by default NaN, -1, False, or grey.

        Returns
        -------
        (N, ...) float64, int64, bool or uint8.
        """
        array = np.asarray(values)
        if array.ndim == 0 or len(array) != self.target_size:
            raise InputError(
                f"correspondence: values of shape {array.shape} came; one row for each of the "
                f"{self.target_size} target points is needed; use push for values on the source"
            )
        return carried(array, *self.soft(), self.matched, missing=missing)

    def push(
        self, values: ArrayLike, *, fill: float = 0.0, missing: float | None = None
    ) -> NDArray[Any]:
        """Bring values from the source's points to the target's, through `inverse(fill=fill)`."""
        return self.inverse(fill=fill).pull(values, missing=missing)

    def check_belongs(self, source: Shape | None = None, target: Shape | None = None) -> None:
        """Refuse shapes of other sizes than the map's; warn of other shapes of the same size."""
        for role, shape, size in (
            ("source", source, len(self)),
            ("target", target, self.target_size),
        ):
            if shape is None:
                continue
            if len(shape) != size:
                raise InputError(
                    f"{shape.name}: {len(shape)} points came as the {role}; the map has {size}; "
                    "check that map and shapes belong together, and which one is the source"
                )
            _warn_of_other_hash(f"{shape.name}, the {role},", self._hash(role), shape_hash(shape))

    def save(
        self, path: str | os.PathLike[str], *, index_base: int | None = None, force: bool = False
    ) -> None:
        """Write the map: `.npz` keeps all of it, `.csv` partners and scores, the others partners.

        Parameters
        ----------
        path
            `.npz`, `.csv` and `.txt` count from 0, `.map` and `.vts` from 1.
        index_base
            Count from 0 or 1 instead; not for `.npz`.
        force
            Replace a file that is already there.
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
        """Read a map that `save` wrote, or a text file of partners from elsewhere.

        Parameters
        ----------
        path
            A file with one of the suffixes of `save`.
        source, target
            The shapes it belongs to; sizes are checked, and the shapes attached.
        target_size
            Number of target points, where there is no target at hand and the file does not say.
        index_base
            What a text file counts from, 0 or 1; None goes by the suffix.
        """
        size = target_size if target is None else len(target)
        count = None if source is None else len(source)
        record = read_record(path, count=count, size=size, index_base=index_base)
        if record.target_size is None:
            raise InputError(
                f"{os.fspath(path)}: the file does not say how many points the target has; that "
                "is needed; pass target or target_size"
            )
        try:
            loaded = cls(**{**record._asdict(), "target_size": record.target_size})
            loaded.check_belongs(source, target)
        except InputError as error:
            raise InputError(f"{os.fspath(path)}: {error}") from None
        return loaded.attached(source, target)

    def _strongest_neighbor(self) -> IntArray:
        """(N,) the neighbour with the largest weight."""
        neighbors, weights = self.soft()
        strongest_one: IntArray = neighbors[np.arange(len(self)), weights.argmax(axis=1)]
        return strongest_one

    def _hash(self, role: str) -> str | None:
        shape = getattr(self, role)
        known = self.details.get(f"{role}_hash")
        return known if known is not None or shape is None else shape_hash(shape)


def shape_hash(shape: Shape) -> str:
    """Sixteen hexadecimal digits that tell shapes apart: SHA-256 of points and faces."""
    digest = hashlib.sha256()
    # Adding 0.0 turns -0.0 into 0.0, and the byte order must not depend on the machine.
    digest.update((shape.points + 0.0).astype("<f8").tobytes())
    if shape.faces is not None:
        digest.update(b"faces" + shape.faces.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def _warn_of_other_hash(what: str, known: str | None, found: str | None) -> None:
    if known is not None and found is not None and known != found:
        logger.warning(
            "%s is not the shape that the map was made with (hash %s, not %s); the sizes agree, "
            "so it is used: check that the numbering is the same",
            what,
            found,
            known,
        )


def _whole_numbers(name: str, values: ArrayLike, size: int, *, lowest: int = UNMATCHED) -> IntArray:
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"correspondence: {name} of type {array.dtype} came; whole numbers are needed; "
            "round them first"
        )
    if array.size and (array.min() < lowest or array.max() >= size):
        raise InputError(
            f"correspondence: {name} from {array.min()} to {array.max()} came; numbers from "
            f"{lowest} to {size - 1} are needed; check that map and target belong together"
        )
    return array.astype(np.int64)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    view: NDArray[Any] = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
