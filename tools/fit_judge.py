"""Fit how orientation networks and energy decide together which way to match a pair is right.

    python -m tools.fit_judge --pairs 60

Generated people and animals are turned at random and matched in their two most plausible frames. A
logistic regression on the differences of energy and of the networks' opinion tells the right way
from the wrong ones; `PRIOR` and `TEMPERATURE` of `matching/candidates.py` follow from its two
weights. Printed are also the shares of such decisions that opinion, energy and both get right.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial.transform import Rotation
from sklearn.linear_model import LogisticRegression

from ltenet.data.augmentation import Augmentation
from ltenet.data.training_pairs import PairConfig, TrainingPairs
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.networks import Networks, read_networks
from ltenet.matching.preparation import Prepared, prepare
from ltenet.matching.ways import LEAST_PRIOR
from ltenet.refinement.judge import map_scores
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent
from ltenet.refinement.pair import Pair
from ltenet.shape import Shape

SEED = 17
#: Mean errors, of shapes of root-mean-square radius 0.5, up to which a way is right and from which
#: it is wrong.
RIGHT, WRONG = 0.08, 0.15


class Outcome(NamedTuple):
    """One way to match a pair: its energy, the opinion on its frames, and its mean error.

    The energy is the mean of that of the first look and that of the refined map.
    """

    energy: float
    opinion: float
    error: float


def orientations(networks: Networks, shape: Shape) -> list[tuple[Prepared, float]]:
    """Prepare a shape in its two most plausible frames, with the logarithms of their certainty."""
    assert networks.orienter is not None
    upright = prepare(shape, [networks], points=None, orient="any", clean=False)[0][0]
    frames = networks.orienter.frames(shape.points)[:2]
    return [
        (
            upright.rotated(frame.rotation @ frames[0].rotation.T),
            math.log(max(frame.certainty, 1e-9)),
        )
        for frame in frames
    ]


def outcomes(networks: Networks, what: str, index: int) -> list[Outcome]:
    """Match one generated pair in all plausible ways."""
    augmentation = Augmentation(noise=0.002, density=3.0, detail=1.0 if what == "human" else 4.0)
    config = PairConfig(
        what=what,  # type: ignore[arg-type]
        points=(900, 1024),
        equal_counts=False,
        augmentation=augmentation,
    )
    pair = TrainingPairs(config, SEED, "validation").draw(index)
    turn = Rotation.random(random_state=index).as_matrix()
    source, target = Shape(pair.source @ turn.T), Shape(pair.target.astype(np.float64))
    sides = orientations(networks, source), orientations(networks, target)
    found = []
    for one, theirs in ((0, 0), (1, 0), (0, 1)):
        (ours, ours_opinion), (other, other_opinion) = sides[0][one], sides[1][theirs]
        both = Pair(ours.embedded, other.embedded)
        refined = refine_pair(both, Coherent(one_to_one=False))
        energy = 0.5 * (map_scores(both, both.best.indices).energy + refined.energy)
        truth = pair.source_truth @ other.matrix[:3, :3].T + other.matrix[:3, 3]  # (N, 3)
        error = np.linalg.norm(refined.positions.numpy() - truth, axis=1).mean()
        opinion = max(ours_opinion + other_opinion, LEAST_PRIOR)
        found.append(Outcome(energy, opinion, float(error)))
    return found


def differences(found: list[Outcome]) -> list[list[float]]:
    """Energy and opinion by which each right way is ahead of each wrong one."""
    return [
        [wrong.energy - right.energy, right.opinion - wrong.opinion]
        for right in found
        if right.error < RIGHT
        for wrong in found
        if wrong.error > WRONG
    ]


def fit(rows: FloatArray) -> dict[str, float]:
    """Weigh energy and opinion (D, 2) of decisions; each counts as won and, reversed, as lost."""
    both = np.concatenate([rows, -rows])  # (2 D, 2)
    won = np.repeat([1, 0], len(rows))  # (2 D,)
    spread = both.std(axis=0)  # (2,)
    model = LogisticRegression(C=100.0, fit_intercept=False).fit(both / spread, won)
    weights = model.coef_[0] / spread  # (2,)
    shares = [(rows[:, column] > 0).mean() for column in range(2)]
    return {
        "decisions": len(rows),
        "right_by_energy": float(shares[0]),
        "right_by_opinion": float(shares[1]),
        "right_by_both": float((rows @ weights > 0).mean()),
        "PRIOR": float(weights[1] / weights[0]),
        "TEMPERATURE": float(1 / weights[0]),
    }


def main() -> None:
    """Match, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=60, help="of each kind of body")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for what in ("human", "animal"):
        for index in range(options.pairs):
            rows += differences(outcomes(read_networks(what), what, index))
            print(f"\r{what} {index + 1} of {options.pairs}", end="", file=sys.stderr, flush=True)
    print(json.dumps(fit(np.array(rows)), indent=2))


if __name__ == "__main__":
    main()
