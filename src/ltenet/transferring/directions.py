"""Which way things go: told from the shapes that give and receive them."""

from __future__ import annotations

from typing import Literal

from ltenet.correspondence import Correspondence, shape_hash
from ltenet.errors import InputError, UsageError
from ltenet.shape import Shape

Direction = Literal["pull", "push"]

#: Ways if the receiver is the source or the target of the map, and if the giver is.
_RECEIVING: tuple[Direction, Direction] = ("pull", "push")
_GIVING: tuple[Direction, Direction] = ("push", "pull")


def direction_of(
    correspondence: Correspondence, giver: Shape | None, receiver: Shape | None, count: int | None
) -> Direction:
    """Tell the direction: by identity with the shapes of the map, by size, or by hash.

    Parameters
    ----------
    correspondence
        The map.
    giver, receiver
        The shapes, where they are known.
    count
        Number of points of the giver, where it is known.
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
    came = "values of " + ("unknown size" if count is None else f"{count} points")
    came += "" if receiver is None else f" onto {len(receiver)} points"
    if not fits:
        raise InputError(
            f"transfer: {came} came for a map from {sizes[0]} to {sizes[1]}; one of the two ways "
            "must fit; check that map and shapes belong together"
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
        f"transfer: {came} came for a map from {sizes[0]} to {sizes[1]}, which fits both ways; the "
        "direction is needed; pass direction='pull' (target to source) or 'push'"
    )
