"""Whether another map of the same pair may be right instead.

Nothing tells the two ends of a rod apart, the legs of a table, or the sides of a plane that looks
the same upside down: one shape then lies against the other in two ways, and two maps are about as
plausible. Several ways to match a pair may also end in one map, and are no rivals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ltenet.geometry.arrays import FloatArray
from ltenet.matching.candidates import Candidate

#: Mean distance between two maps, in diameters of the target, from which they are two: the error
#: up to which a map is right as a whole.
DIFFERENT = 0.05
#: Probability from which another map is about as plausible.
RIVAL = 0.1


def distinct_maps(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep the best candidate of each map, with the probability of all that lead to it.

    Parameters
    ----------
    candidates
        Of one pair, best first.
    """
    kept: list[Candidate] = []
    places: list[FloatArray] = []
    for one in candidates:
        here = _places(one)  # (n, 3)
        apart = [float(np.linalg.norm(here - there, axis=1).mean()) for there in places]
        if not apart or min(apart) > DIFFERENT * one.target.shape.diameter:
            kept.append(one)
            places.append(here)
            continue
        same = apart.index(min(apart))
        kept[same] = kept[same]._replace(probability=kept[same].probability + one.probability)
    return kept


def rival(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the map that may be right instead of the first of several distinct ones, if any."""
    others = [one for one in candidates[1:] if one.probability >= RIVAL]
    return max(others, key=lambda one: one.probability, default=None)


def _places(candidate: Candidate) -> FloatArray:
    """(n, 3) where the embedded points of the source land, in coordinates of the target."""
    matrix = candidate.target.matrix  # (4, 4)
    landed = candidate.refined.positions.double().numpy() - matrix[:3, 3]  # (n, 3)
    places: FloatArray = np.linalg.solve(matrix[:3, :3], landed.T).T  # (n, 3)
    return places
