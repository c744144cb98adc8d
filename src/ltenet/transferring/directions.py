"""The direction of a transfer, pull or push, from the shapes that give and receive."""

from __future__ import annotations

from typing import Literal

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.shape import Shape, shape_hash

Direction = Literal["pull", "push"]

#: Direction if the receiver is the source or the target of the map, and if the giver is.
_RECEIVING: tuple[Direction, Direction] = ("pull", "push")
_GIVING: tuple[Direction, Direction] = ("push", "pull")


def direction_of(
    correspondence: Correspondence, giver: Shape | None, receiver: Shape | None, count: int | None
) -> Direction:
    """Infer the direction by identity with the shapes of the map, by size, or by hash.

    Parameters
    ----------
    correspondence
        The map.
    giver, receiver
        The shapes, if known.
    count
        Number of points of the giver, if known.
    """
    roles = ((receiver, _RECEIVING), (giver, _GIVING))
    ends = (correspondence.source, correspondence.target)
    for shape, ways in roles:
        for end, way in zip(ends, ways, strict=True):
            if shape is not None and shape is end:
                return way
    sizes = len(correspondence), correspondence.target_size
    fits = [
        way
        for way, (to, origin) in zip(_RECEIVING, (sizes, sizes[::-1]), strict=True)
        if (receiver is None or len(receiver) == to) and count in (None, origin)
    ]
    if len(fits) == 1:
        return fits[0]
    given = "values of " + ("unknown size" if count is None else f"{count} points")
    given += "" if receiver is None else f" onto {len(receiver)} points"
    if not fits:
        raise InputError(
            f"transfer: got {given} for a map from {sizes[0]} to {sizes[1]}, expected sizes that "
            "fit one way; try the shapes that the map belongs to"
        )
    known = [
        correspondence.details.get(f"{role}_hash") if end is None else shape_hash(end)
        for role, end in zip(("source", "target"), ends, strict=True)
    ]
    for shape, ways in roles:
        found = None if shape is None else shape_hash(shape)
        if found is not None and known.count(found) == 1:
            return ways[known.index(found)]
    raise UsageError(
        f"transfer: got {given} for a map from {sizes[0]} to {sizes[1]}, which fits both ways, "
        "expected a direction; try direction='pull' (target to source) or 'push'"
    )
