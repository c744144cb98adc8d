"""Whether the map of a pair is right as a whole.

A map between unrelated shapes, or with front and back exchanged, is wrong nearly everywhere, and
yet most of its points may look plausible. What gives it away are figures of the pair: how badly
features fit before anything is smoothed, how much the refined map stretches and what it misses,
whether another way was nearly as good, and whether the orientation networks agree. A logistic model
combines them into the probability that the mean error of the map is below 5 % of the diameter,
fitted by `python -m tools.calibrate` on generated people, animals and things, related and
unrelated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ltenet.geometry.arrays import FloatArray
from ltenet.matching.candidates import Candidate
from ltenet.matching.confidence import COLUMNS
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
    prior
        What the orientation networks think of both frames and of the class: a log-probability.
    confidence
        Typical confidence of the refinement in its points, see `typical`.
    """

    look: float
    stretch: float
    mirrored: float
    missed: float
    unlike: float
    direction: float
    prior: float
    confidence: float


#: Weights of `PairEvidence`, and what is added to their sum.
WEIGHTS = PairEvidence(-4.13, 0.0, -17.56, 0.0, -2.74, 3.96, 0.43, 10.64)
BIAS = -6.27


def pair_evidence(best: Candidate, columns: FloatArray) -> PairEvidence:
    """Gather what the map of a pair shows; `columns` (n, 6) are the evidence of its points."""
    found = map_scores(best.pair, best.refined.positions)
    return PairEvidence(
        best.look,
        found.stretch,
        found.mirrored,
        found.missed,
        1.0 - found.similarity,
        best.probability,
        best.prior,
        typical(columns[:, COLUMNS.index("refinement")]),
    )


def typical(values: FloatArray) -> float:
    """Mean of the better half of (n,) values: the rest of a whole may have no partner."""
    return float(np.sort(values)[len(values) // 2 :].mean())


def pair_logit(evidence: PairEvidence) -> float:
    """Logarithm of the odds that the mean error of the map is below 5 % of the diameter."""
    return float(np.dot(WEIGHTS, evidence)) + BIAS


def pair_probability(logit: float) -> float:
    """Probability of given odds."""
    return float(1 / (1 + np.exp(-np.clip(logit, -30, 30))))
