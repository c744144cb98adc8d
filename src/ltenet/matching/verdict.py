"""Whether the map of a pair is right as a whole.

A map between unrelated shapes, or with front and back exchanged, is wrong nearly everywhere, and
yet most of its points may look plausible. What gives it away are figures of the pair: how badly
features fit before anything is smoothed, how much the refined map stretches and what it misses,
and whether another way was nearly as good. A logistic model combines them into the probability that
the mean error of the map is below 5 % of the diameter, fitted by `python -m tools.fit_verdict` on
generated people, animals and things, related and unrelated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ltenet.geometry.arrays import FloatArray
from ltenet.matching.candidates import Candidate
from ltenet.refinement.judge import map_scores


class PairEvidence(NamedTuple):
    """What speaks for and against the map of a pair.

    Attributes
    ----------
    look
        Energy of the first look, by nearest features alone.
    stretch, mirrored, missed, unlike
        Terms of the energy of the refined map, see `judge`.
    direction
        Probability that the chosen way is right and none of the others.
    points
        Typical probability of the points, each judged by itself; see `typical`.
    """

    look: float
    stretch: float
    mirrored: float
    missed: float
    unlike: float
    direction: float
    points: float


#: Weights of `PairEvidence`, and what is added to their sum.
WEIGHTS = PairEvidence(-1.8, -0.5, -7.7, -20.2, -0.9, 2.3, 7.8)
BIAS = -5.75


def pair_evidence(best: Candidate, scores: FloatArray) -> PairEvidence:
    """Gather what the map of a pair shows; `scores` (n,) are the probabilities of its points."""
    found = map_scores(best.pair, best.refined.positions)
    return PairEvidence(
        best.look,
        found.stretch,
        found.mirrored,
        found.missed,
        1.0 - found.similarity,
        best.probability,
        typical(scores),
    )


def typical(scores: FloatArray) -> float:
    """Mean of the better half of (n,) probabilities: the rest of a whole may have no partner."""
    return float(np.sort(scores)[len(scores) // 2 :].mean())


def pair_probability(evidence: PairEvidence) -> float:
    """Probability that the mean error of the map is below 5 % of the diameter."""
    logit = float(np.dot(WEIGHTS, evidence)) + BIAS
    return float(1 / (1 + np.exp(-np.clip(logit, -30, 30))))
