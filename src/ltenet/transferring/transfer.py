"""`transfer`: one shape's colours, labels, values, landmarks, texture or whole mesh onto another.

A map runs from source to target and carries things both ways. Onto its source they are pulled,
each source point asks its partner; onto its target they are pushed, through the inverse map.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.shape import FloatArray, Shape
from ltenet.transferring.baking import painted_mesh, painted_points
from ltenet.transferring.directions import Direction, direction_of
from ltenet.transferring.landmark_files import Landmarks, read_landmarks
from ltenet.transferring.landmarks import carry_landmarks
from ltenet.transferring.textured import TexturedMesh, read_textured

What = Literal["colors", "labels", "scalars", "landmarks", "texture", "deformation"]

#: Target points without a partner take that of who lands nearest, up to this share of the diameter.
FILL = 0.05


@dataclass(frozen=True)
class _Job:
    """What is to be carried, and between which shapes.

    Attributes
    ----------
    values
        As the caller gave them.
    giver, receiver
        The shapes, where they are known; a textured mesh is a shape here.
    onto
        The receiver as the caller gave it.
    onward
        The map from the receiver to the giver, filled up where it is the inverse.
    """

    correspondence: Correspondence
    values: Any
    giver: Shape | None
    receiver: Shape | None
    onto: Shape | TexturedMesh | None
    pull: bool
    fill: float

    def onward(self) -> Correspondence:
        """Return the map from the receiver to the giver."""
        ends = (self.receiver, self.giver) if self.pull else (self.giver, self.receiver)
        attached = self.correspondence.attached(*ends)
        if self.pull:
            return attached
        return attached.inverse(fill=self.fill if self.receiver is not None else 0.0)

    def both(self) -> tuple[Shape, Shape]:
        """Return giver and receiver, which must be there."""
        if self.giver is None or self.receiver is None:
            missing = "'of', the shape it comes from" if self.giver is None else "'onto'"
            raise UsageError(
                f"transfer: {missing} did not come and no shapes are attached to the map; both "
                "shapes are needed; pass them, or load the map with source and target"
            )
        return self.giver, self.receiver


@overload
def transfer(
    correspondence: Correspondence,
    values: object,
    *,
    what: Literal["scalars"],
    onto: Shape | TexturedMesh | None = ...,
    of: Shape | None = ...,
    direction: Direction | None = ...,
    fill: float = ...,
) -> NDArray[Any]: ...
@overload
def transfer(
    correspondence: Correspondence,
    values: object,
    *,
    what: Literal["landmarks"],
    onto: Shape | TexturedMesh | None = ...,
    of: Shape | None = ...,
    direction: Direction | None = ...,
    fill: float = ...,
) -> Landmarks: ...
@overload
def transfer(
    correspondence: Correspondence,
    values: object,
    *,
    what: Literal["colors", "labels"],
    onto: Shape | TexturedMesh | None = ...,
    of: Shape | None = ...,
    direction: Direction | None = ...,
    fill: float = ...,
) -> Shape: ...
@overload
def transfer(
    correspondence: Correspondence,
    values: object,
    *,
    what: Literal["texture", "deformation"],
    onto: Shape | TexturedMesh | None = ...,
    of: Shape | None = ...,
    direction: Direction | None = ...,
    fill: float = ...,
) -> Shape | TexturedMesh: ...
def transfer(
    correspondence: Correspondence,
    values: object,
    *,
    what: What,
    onto: Shape | TexturedMesh | None = None,
    of: Shape | None = None,
    direction: Direction | None = None,
    fill: float = FILL,
) -> Shape | TexturedMesh | Landmarks | NDArray[Any]:
    """Carry something from one shape of a map onto the other.

    Parameters
    ----------
    correspondence
        The map, from source to target.
    values
        Where it comes from. For "colors" and "labels" a shape that has them, or an array with a
        row per point. For "scalars" an (N,) or (N, k) array. For "landmarks" `Landmarks` or a
        file. For "texture" a `TexturedMesh` or a file. For "deformation" the shape, or textured
        mesh, that is bent.
    what
        "colors" are mixed; "labels" are voted on; "scalars" are mixed, whole numbers among them
        too; "landmarks" go to places between points; "texture" becomes colours of points, or a
        picture where the receiver has places for one; "deformation" bends the shape onto the other
        and keeps its points, faces, colours and texture.
    onto
        Who receives it: the source or the target of the map. The one attached to the map by
        default, if `direction` is given.
    of
        The shape that an array, landmarks or a picture belong to, if it is not attached to the map.
    direction
        "pull" from target to source or "push" from source to target. Found out by default from the
        shapes: by identity, by their hashes, or by their sizes.
    fill
        Pushing: target points that nobody is mapped to take the partner of whoever lands nearest,
        up to this share of the target's diameter.

    Returns
    -------
    "colors", "labels": the shape `onto` with them. "scalars": (N, ...) float64, NaN where there is
    no partner. "landmarks": `Landmarks`. "texture": a `TexturedMesh` if `onto` is one, else a shape
    with colours. "deformation": what was given, at new places.

    Raises
    ------
    UsageError
        If the direction cannot be told, or a shape is missing.
    InputError
        If sizes do not fit, or there is nothing of the kind to carry.
    """
    carry = _CARRIERS.get(what)
    if carry is None:
        raise UsageError(
            f"transfer: what={what!r} came; one of {', '.join(_CARRIERS)} is needed; check the "
            "spelling"
        )
    if what == "texture" and isinstance(values, str | os.PathLike):
        values = _textured(values)
    receiver = onto.shape if isinstance(onto, TexturedMesh) else onto
    giver = values.shape if isinstance(values, TexturedMesh) else values
    giver = giver if isinstance(giver, Shape) else of
    count = len(giver) if giver is not None else None
    if count is None and what in ("colors", "labels", "scalars"):
        count = len(np.asarray(values))
    if direction is None:
        direction = direction_of(correspondence, giver, receiver, count)
    pull = direction == "pull"
    attached = (correspondence.target, correspondence.source)
    giver = attached[not pull] if giver is None else giver
    receiver = attached[pull] if receiver is None else receiver
    correspondence.check_belongs(*((receiver, giver) if pull else (giver, receiver)))
    onto = receiver if onto is None else onto
    carried: Shape | TexturedMesh | Landmarks | NDArray[Any] = carry(
        _Job(correspondence, values, giver, receiver, onto, pull, fill)
    )
    return carried


def _colors(job: _Job) -> Shape:
    colors = job.values.colors if isinstance(job.values, Shape) else np.asarray(job.values)
    if colors is None or colors.dtype != np.uint8 or colors.ndim != 2:
        came = "no colours" if colors is None else f"{colors.dtype} of shape {colors.shape}"
        raise InputError(
            f"transfer: {came} came; (N, 3) or (N, 4) uint8 is needed; choose what='scalars' for "
            "other values, or what='texture' if the colours are in a picture"
        )
    return replace(_receiver(job), colors=job.onward().pull(colors))


def _labels(job: _Job) -> Shape:
    labels = job.values.labels if isinstance(job.values, Shape) else np.asarray(job.values)
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        came = "no labels" if labels is None else f"{labels.dtype} of shape {labels.shape}"
        raise InputError(
            f"transfer: {came} came; one whole number for each point is needed; number your "
            "classes from 0, or choose what='scalars'"
        )
    return replace(_receiver(job), labels=job.onward().pull(labels.astype(np.int64)))


def _scalars(job: _Job) -> NDArray[Any]:
    values: ArrayLike = job.values
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"transfer: {type(values).__name__} came as scalars; an array of numbers with a row "
            "for each point is needed; choose what='colors' or 'labels' for those of a shape"
        ) from None
    return job.onward().pull(array)


def _landmarks(job: _Job) -> Landmarks:
    giver, receiver = job.both()
    landmarks = job.values
    if isinstance(landmarks, str | os.PathLike):
        landmarks = read_landmarks(landmarks, giver)
    if not isinstance(landmarks, Landmarks):
        raise InputError(
            f"transfer: {type(landmarks).__name__} came as landmarks; Landmarks or a file are "
            "needed; make them with Landmarks(names, points)"
        )
    source, target = (receiver, giver) if job.pull else (giver, receiver)
    return carry_landmarks(
        job.correspondence, landmarks, source=source, target=target, to_source=job.pull
    )


def _texture(job: _Job) -> Shape | TexturedMesh:
    giver, receiver = job.both()
    if not isinstance(job.values, TexturedMesh) or not job.values.pictures:
        raise InputError(
            f"transfer: {giver.name} came without a picture; a textured mesh is needed; read it "
            "with read_textured, or choose what='colors' for colours of points"
        )
    places = job.onward().positions(giver)  # (N, 3)
    if isinstance(job.onto, TexturedMesh):
        return painted_mesh(job.values, job.onto, places)
    return painted_points(job.values, receiver, places)


def _deformation(job: _Job) -> Shape | TexturedMesh:
    from ltenet.transferring.wrapping import wrap  # here, because it needs torch

    giver, receiver = job.both()
    if not isinstance(job.values, Shape | TexturedMesh):
        raise InputError(
            f"transfer: {type(job.values).__name__} came to be bent; a shape is needed; pass the "
            "one that shall keep its points and faces"
        )
    # The giver is the one that moves, so here the map from the giver to the receiver counts.
    corr = job.correspondence.attached(*((receiver, giver) if job.pull else (giver, receiver)))
    corr = corr.inverse(fill=job.fill) if job.pull else corr
    trust = np.ones(len(corr)) if corr.scores is None else corr.scores  # (N,)
    points: FloatArray = wrap(giver, receiver, corr.positions(receiver), trust).points
    bent = replace(giver, points=points, transform=receiver.transform)
    return bent if isinstance(job.values, Shape) else replace(job.values, shape=bent)


_CARRIERS: dict[str, Callable[[_Job], Any]] = {
    "colors": _colors,
    "labels": _labels,
    "scalars": _scalars,
    "landmarks": _landmarks,
    "texture": _texture,
    "deformation": _deformation,
}


def _receiver(job: _Job) -> Shape:
    if job.receiver is None:
        raise UsageError(
            "transfer: no shape came to carry onto; it is needed; pass onto, or use pull and push "
            "of the map for bare arrays"
        )
    return job.receiver


def _textured(path: str | os.PathLike[str]) -> TexturedMesh:
    mesh = read_textured(path)
    if mesh is None:
        raise InputError(
            f"{os.fspath(path)}: no texture coordinates came; an .obj or .glb with a picture is "
            "needed; choose what='colors' for colours of points"
        )
    return mesh
