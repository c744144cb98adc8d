"""`transfer`: carry colours, labels, scalars, landmarks, a texture or the mesh itself along a map.

A map runs from source to target and carries values both ways: they are pulled onto the source, each
point from its partner, and pushed onto the target through the inverse map.
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
from ltenet.geometry.arrays import FloatArray
from ltenet.io.landmarks import Landmarks, read_landmarks
from ltenet.io.textures import TexturedMesh, read_textured
from ltenet.shape import Shape
from ltenet.transferring.baking import painted_mesh, painted_points
from ltenet.transferring.directions import Direction, direction_of
from ltenet.transferring.landmarks import carry_landmarks

Progress = Callable[[str, float], None]
What = Literal["colors", "labels", "scalars", "landmarks", "texture", "deformation"]

#: Gaps of an inverse map are filled from this far, as a share of the target's diameter.
FILL = 0.05


@dataclass(frozen=True)
class _Job:
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
    progress: Progress | None = ...,
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
    progress: Progress | None = ...,
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
    progress: Progress | None = ...,
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
    progress: Progress | None = ...,
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
    progress: Progress | None = None,
) -> Shape | TexturedMesh | Landmarks | NDArray[Any]:
    """Carry values from one shape of a map to the other.

    Parameters
    ----------
    correspondence
        The map, from source to target.
    values
        For "colors" and "labels" a shape with them, or an array with a row per point. For "scalars"
        an (N,) or (N, k) array. For "landmarks" `Landmarks` or a file. For "texture" a
        `TexturedMesh` or a file. For "deformation" the shape, or textured mesh, to deform.
    what
        "colors" are averaged, "labels" voted on, "scalars" averaged, integers too. "landmarks" move
        to positions on the surface, also between points. "texture" becomes point colours, or a
        picture if the receiver has texture coordinates. "deformation" deforms the shape onto the
        other and keeps its points, faces, colours and texture.
    onto
        The receiver: source or target of the map. By default the attached one, if `direction` is
        given.
    of
        The shape that an array, landmarks or a picture belong to, if it is not attached to the map.
    direction
        "pull" from target to source or "push" from source to target. By default it follows from the
        shapes: by identity, size, or hash.
    fill
        When pushing, target points without a partner take that of the source point that lands
        nearest, up to this share of the target's diameter.
    progress
        Called with "carry" and the share that is done, where it takes long: texture, deformation.

    Returns
    -------
    "colors", "labels": the shape `onto` with them. "scalars": (N, ...) float64, NaN for unmatched
    points. "landmarks": `Landmarks`. "texture": a `TexturedMesh` if `onto` is one, else a shape
    with colours. "deformation": `values` with new positions.

    Raises
    ------
    UsageError
        If the direction is ambiguous, or a shape is missing.
    InputError
        If sizes do not fit, or there are no such values.
    """
    carry = _CARRIERS.get(what)
    if carry is None:
        raise UsageError(
            f"transfer: got what={what!r}, expected one of {', '.join(_CARRIERS)}; try "
            "what='colors'"
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
        _Job(correspondence, values, giver, receiver, onto, pull, fill, progress)
    )
    return carried


def _colors(job: _Job) -> Shape:
    colors = job.values.colors if isinstance(job.values, Shape) else np.asarray(job.values)
    if colors is None or colors.dtype != np.uint8 or colors.ndim != 2:
        given = "no colours" if colors is None else f"{colors.dtype} of shape {colors.shape}"
        raise InputError(
            f"transfer: got {given}, expected (N, 3) or (N, 4) uint8; try --what texture (in "
            "Python: what='texture') for a picture, or scalars for other values"
        )
    return replace(_receiver(job), colors=job.onward().pull(colors))


def _labels(job: _Job) -> Shape:
    labels = job.values.labels if isinstance(job.values, Shape) else np.asarray(job.values)
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        given = "no labels" if labels is None else f"{labels.dtype} of shape {labels.shape}"
        raise InputError(
            f"transfer: got {given}, expected one integer per point; try numbering the "
            "classes from 0, or --what scalars (in Python: what='scalars')"
        )
    return replace(_receiver(job), labels=job.onward().pull(labels.astype(np.int64)))


def _scalars(job: _Job) -> NDArray[Any]:
    values: ArrayLike = job.values
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"transfer: got {type(values).__name__} as scalars, expected an array of numbers with "
            "a row per point; try what='colors' or 'labels' for those of a shape"
        ) from None
    return job.onward().pull(array)


def _landmarks(job: _Job) -> Landmarks:
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
    return carry_landmarks(
        job.correspondence, landmarks, source=source, target=target, to_source=job.pull
    )


def _texture(job: _Job) -> Shape | TexturedMesh:
    giver, receiver = job.both()
    if not isinstance(job.values, TexturedMesh) or not job.values.pictures:
        raise InputError(
            f"transfer: got {giver.name} without a picture, expected a textured mesh, .obj or "
            ".glb; try --what colors (in Python: what='colors') for colours of points"
        )
    places = job.onward().positions(giver)  # (N, 3)
    if isinstance(job.onto, TexturedMesh):
        return painted_mesh(job.values, job.onto, places, tell=job.tell)
    return painted_points(job.values, receiver, places)


def _deformation(job: _Job) -> Shape | TexturedMesh:
    from ltenet.transferring.wrapping import wrap  # imports torch

    giver, receiver = job.both()
    if not isinstance(job.values, Shape | TexturedMesh):
        raise InputError(
            f"transfer: got {type(job.values).__name__} to deform, expected a shape; try the one "
            "whose points and faces are to be kept"
        )
    # The giver moves, so this needs the map from giver to receiver.
    corr = job.correspondence.attached(*((receiver, giver) if job.pull else (giver, receiver)))
    corr = corr.inverse(fill=job.fill) if job.pull else corr
    trust = np.ones(len(corr)) if corr.scores is None else corr.scores  # (N,)
    wrapped = wrap(giver, receiver, corr.positions(receiver), trust, tell=job.tell)
    points: FloatArray = wrapped.points  # (N, 3)
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
            "transfer: got no shape to carry onto, expected one; try onto=SHAPE, or pull and push "
            "of the map for bare arrays"
        )
    return job.receiver


def _textured(path: str | os.PathLike[str]) -> TexturedMesh:
    mesh = read_textured(path)
    if mesh is None:
        raise InputError(
            f"{os.fspath(path)}: got no texture coordinates, expected an .obj or .glb with a "
            "picture; try what='colors' for colours of points"
        )
    return mesh
