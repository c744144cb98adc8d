"""What a transfer does for each kind of thing: colours, labels, scalars, landmarks, and so on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray
from ltenet.io.landmarks import Landmarks, read_landmarks
from ltenet.io.textures import TexturedMesh
from ltenet.shape import Shape
from ltenet.transferring.baking import painted_mesh, painted_points
from ltenet.transferring.filling import gap
from ltenet.transferring.landmarks import carry_landmarks

Progress = Callable[[str, float], None]


class Carried(NamedTuple):
    """What a transfer gives, and which of it is filled.

    Attributes
    ----------
    result
        As `transfer` returns it.
    filled
        (N,) True for points of which the map tells nothing: colours and labels are then the
        receiver's own, and places of a deformed shape follow from its form. None where nothing is
        ever filled: scalars, landmarks, textures.
    """

    result: Shape | TexturedMesh | Landmarks | NDArray[Any]
    filled: NDArray[np.bool_] | None


@dataclass(frozen=True)
class Job:
    """One transfer.

    Attributes
    ----------
    values
        As passed by the caller.
    giver, receiver
        The shapes, if known, without their textures.
    onto
        The receiver as passed by the caller.
    """

    correspondence: Correspondence
    values: Any
    giver: Shape | None
    receiver: Shape | None
    onto: Shape | TexturedMesh | None
    pull: bool
    fill: float
    progress: Progress | None

    def tell(self, share: float) -> None:
        """Say how far the work is."""
        if self.progress is not None:
            self.progress("carry", share)

    def onward(self) -> Correspondence:
        """Return the map from the receiver to the giver."""
        ends = (self.receiver, self.giver) if self.pull else (self.giver, self.receiver)
        attached = self.correspondence.attached(*ends)
        if self.pull:
            return attached
        return attached.inverse(fill=self.fill if self.receiver is not None else 0.0)

    def both(self) -> tuple[Shape, Shape]:
        """Return giver and receiver, or raise if one is unknown."""
        if self.giver is None or self.receiver is None:
            missing = "'of', the shape it comes from" if self.giver is None else "'onto'"
            raise UsageError(
                f"transfer: got no {missing}, and a map without shapes, expected both shapes; try "
                "passing them, or loading the map with source and target"
            )
        return self.giver, self.receiver


def _colors(job: Job) -> Carried:
    colors = job.values.colors if isinstance(job.values, Shape) else np.asarray(job.values)
    if colors is None or colors.dtype != np.uint8 or colors.ndim != 2:
        given = "no colours" if colors is None else f"{colors.dtype} of shape {colors.shape}"
        raise InputError(
            f"transfer: got {given}, expected (N, 3) or (N, 4) uint8; try --what texture (in "
            "Python: what='texture') for a picture, or scalars for other values"
        )
    receiver, onward = _receiver(job), job.onward()
    carried, filled = _completed(job, onward.pull(colors), receiver.colors, ~onward.matched)
    return Carried(replace(receiver, colors=carried), filled)


def _labels(job: Job) -> Carried:
    labels = job.values.labels if isinstance(job.values, Shape) else np.asarray(job.values)
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        given = "no labels" if labels is None else f"{labels.dtype} of shape {labels.shape}"
        raise InputError(
            f"transfer: got {given}, expected one integer per point; try numbering the "
            "classes from 0, or --what scalars (in Python: what='scalars')"
        )
    receiver, onward = _receiver(job), job.onward()
    carried = onward.pull(labels.astype(np.int64))  # (N,)
    carried, filled = _completed(job, carried, receiver.labels, ~onward.matched)
    return Carried(replace(receiver, labels=carried), filled)


def _scalars(job: Job) -> Carried:
    values: ArrayLike = job.values
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"transfer: got {type(values).__name__} as scalars, expected an array of numbers with "
            "a row per point; try what='colors' or 'labels' for those of a shape"
        ) from None
    return Carried(job.onward().pull(array), None)


def _landmarks(job: Job) -> Carried:
    giver, receiver = job.both()
    landmarks = job.values
    if isinstance(landmarks, str | os.PathLike):
        landmarks = read_landmarks(landmarks, giver)
    if not isinstance(landmarks, Landmarks):
        raise InputError(
            f"transfer: got {type(landmarks).__name__} as landmarks, expected Landmarks or a file; "
            "try Landmarks(names, points)"
        )
    source, target = (receiver, giver) if job.pull else (giver, receiver)
    carried = carry_landmarks(
        job.correspondence, landmarks, source=source, target=target, to_source=job.pull
    )
    return Carried(carried, None)


def _texture(job: Job) -> Carried:
    giver, receiver = job.both()
    if not isinstance(job.values, TexturedMesh) or not job.values.pictures:
        raise InputError(
            f"transfer: got {giver.name} without a picture, expected a textured mesh, .obj or "
            ".glb; try --what colors (in Python: what='colors') for colours of points"
        )
    places = job.onward().positions(giver)  # (N, 3)
    if isinstance(job.onto, TexturedMesh):
        return Carried(painted_mesh(job.values, job.onto, places, tell=job.tell), None)
    return Carried(painted_points(job.values, receiver, places), None)


def _deformation(job: Job) -> Carried:
    from ltenet.transferring.wrapping import wrap  # imports torch

    giver, receiver = job.both()
    if not isinstance(job.values, Shape | TexturedMesh):
        raise InputError(
            f"transfer: got {type(job.values).__name__} to deform, expected a shape; try the one "
            "whose points and faces are to be kept"
        )
    # The giver moves, so this needs the map from giver to receiver.
    corr = job.correspondence.attached(*((receiver, giver) if job.pull else (giver, receiver)))
    if job.pull:
        # Only between the places that the map leads to: beside them a part may have ended.
        reach = min(job.fill, gap(corr.positions(giver)) / max(giver.diameter, 1e-300))
        corr = corr.inverse(fill=reach)
    trust = np.ones(len(corr)) if corr.scores is None else corr.scores  # (N,)
    wrapped = wrap(giver, receiver, corr.positions(receiver), trust, tell=job.tell)
    points: FloatArray = wrapped.points  # (N, 3)
    bent = replace(giver, points=points, transform=receiver.transform)
    result = bent if isinstance(job.values, Shape) else replace(job.values, shape=bent)
    return Carried(result, wrapped.filled)


#: By what is carried.
CARRIERS: dict[str, Callable[[Job], Carried]] = {
    "colors": _colors,
    "labels": _labels,
    "scalars": _scalars,
    "landmarks": _landmarks,
    "texture": _texture,
    "deformation": _deformation,
}


def _completed(
    job: Job, carried: NDArray[Any], own: NDArray[Any] | None, missing: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Let (N, ...) values of points that the map does not reach be the receiver's own, if any."""
    if own is None or job.fill <= 0:
        return carried, np.zeros(len(missing), bool)
    completed = carried.copy()
    width = carried.shape[1:] and min(carried.shape[1], own.shape[1])  # alpha may be missing
    if width:
        completed[missing, width:] = 255
        completed[missing, :width] = own[missing, :width]
    else:
        completed[missing] = own[missing]
    return completed, missing


def _receiver(job: Job) -> Shape:
    if job.receiver is None:
        raise UsageError(
            "transfer: got no shape to carry onto, expected one; try onto=SHAPE, or pull and push "
            "of the map for bare arrays"
        )
    return job.receiver
