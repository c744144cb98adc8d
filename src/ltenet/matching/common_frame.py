"""Lay shapes of one class alike, for weights that compare shapes in a common frame.

No shape shows by itself how it should lie. So every shape is matched onto a few of them, and lies
as the one does onto which the others are matched best: directly, or through another of the few
where that is more probable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ltenet.matching.alignment import turn_of_map
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.shape import Shape

#: Shapes onto which all are matched.
_ANCHORS = 4

Step = tuple[int, int]


def laid_alike(
    shapes: Sequence[Shape],
    model: str,
    *,
    track: Callable[[list[Step]], Iterable[Step]] = iter,
) -> list[Shape]:
    """Rotate shapes so that they lie alike; at least one.

    Parameters
    ----------
    shapes
        Of one class, each in any orientation.
    model
        Weights that match them.
    track
        Goes through the matches to be made, and may show how far they are.
    """
    matcher = Matcher(MatchConfig(model=model, threshold=0.0))
    prepared = [matcher.prepare(shape) for shape in shapes]
    anchors = np.unique(np.linspace(0, len(shapes) - 1, _ANCHORS).round().astype(int))  # (m,)
    probabilities = np.ones((len(shapes), len(anchors)))  # (n, m)
    turns = np.tile(np.eye(3), (*probabilities.shape, 1, 1))  # (n, m, 3, 3)
    for number, column in track(list(np.ndindex(probabilities.shape))):
        anchor = anchors[column]
        if number != anchor:
            found = matcher.match_prepared(prepared[number], prepared[anchor])
            turns[number, column] = turn_of_map(found, shapes[number], shapes[anchor])
            probabilities[number, column] = found.details["pair_probability"]
    best = int(np.median(probabilities, axis=0).argmax())
    # Through another anchor: as probable as the less probable of the two steps.
    through = np.minimum(probabilities, probabilities[anchors, best]).argmax(axis=1)  # (n,)
    return [
        shape.rotated(turns[anchors[via], best] @ turns[number, via])
        for number, (shape, via) in enumerate(zip(shapes, through, strict=True))
    ]
