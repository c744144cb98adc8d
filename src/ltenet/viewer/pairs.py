"""Known pairs in a request to the app: points that the user has clicked on."""

from __future__ import annotations

from ltenet.errors import UsageError
from ltenet.matching.known_pairs import MOST


def checked_pairs(given: object, counts: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return known pairs as (source point, target point), or raise what is wrong with them.

    Parameters
    ----------
    given
        The part of a request: nothing, or a list of lists of two numbers, at most 50.
    counts
        Points of source and target.
    """
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MOST:
        kind = f"{len(given)} known pairs" if isinstance(given, list) else "no list of known pairs"
        raise UsageError(f"got {kind}, expected at most {MOST}; try those that are spread widest")
    pairs = []
    for pair in given:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(type(point) is int for point in pair)  # True is no point
            or not all(0 <= point < count for point, count in zip(pair, counts, strict=True))
        ):
            raise UsageError(
                "got a known pair that is not two numbers of points, expected those of source and "
                "target, from 0; try clicking on both shapes"
            )
        pairs.append((pair[0], pair[1]))
    if len({source for source, _ in pairs}) < len(pairs):
        raise UsageError(
            "got a source point with two known partners, expected one; try removing a pair"
        )
    return tuple(pairs)
