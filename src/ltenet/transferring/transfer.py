"""`transfer`: carry colours, labels, scalars, landmarks, a texture or the mesh itself along a map.

A map runs from source to target and carries values both ways: they are pulled onto the source, each
point from its partner, and pushed onto the target through the inverse map.
"""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.io.landmarks import Landmarks
from ltenet.io.textures import TexturedMesh, read_textured
from ltenet.shape import Shape
from ltenet.transferring.carriers import CARRIERS, Carried, Job, Progress
from ltenet.transferring.directions import Direction, direction_of

What = Literal["colors", "labels", "scalars", "landmarks", "texture", "deformation"]

#: Gaps of an inverse map are filled from this far, as a share of the target's diameter.
FILL = 0.05


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
        nearest, up to this share of the target's diameter. Colours and labels of points that are
        still without one are the receiver's own, if it has any. 0 leaves gaps.
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
    return transfer_marked(
        correspondence,
        values,
        what=what,
        onto=onto,
        of=of,
        direction=direction,
        fill=fill,
        progress=progress,
    ).result


def transfer_marked(
    correspondence: Correspondence,
    values: object,
    *,
    what: What,
    onto: Shape | TexturedMesh | None = None,
    of: Shape | None = None,
    direction: Direction | None = None,
    fill: float = FILL,
    progress: Progress | None = None,
) -> Carried:
    """Do what `transfer` does, and tell which points are filled."""
    carry = CARRIERS.get(what)
    if carry is None:
        raise UsageError(
            f"transfer: got what={what!r}, expected one of {', '.join(CARRIERS)}; try what='colors'"
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
    return carry(Job(correspondence, values, giver, receiver, onto, pull, fill, progress))


def _textured(path: str | os.PathLike[str]) -> TexturedMesh:
    mesh = read_textured(path)
    if mesh is None:
        raise InputError(
            f"{os.fspath(path)}: got no texture coordinates, expected an .obj or .glb with a "
            "picture; try what='colors' for colours of points"
        )
    return mesh
