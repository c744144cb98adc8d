"""Fit how orientation networks and energies decide together which way to match a pair is right.

    python -m tools.fit_judge --pairs 60 --keep runs/ways.npz
    python -m tools.fit_judge --from runs/ways.npz

Generated people, animals and things are turned at random, every third pair with parts missing, and
matched with default options in many more ways than usual. A conditional logistic regression tells
the right ways of a pair from the wrong ones by the energies of the first look and of the refined
map and by the networks' opinion; `LOOK` and `TEMPERATURE` of `matching/candidates.py` and `PRIOR`
of `matching/looks.py` follow from its weights. Printed is also how often the way that is chosen is
right, where one is, with these constants (five-fold cross-validation), with those of the code, and
by each of the three alone, and how often the right way would not have been refined at all.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.model_selection import KFold

from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.diameter import largest_distance
from ltenet.matching.candidates import CLOSE, LOOK, TEMPERATURE, ranked_candidates
from ltenet.matching.config import MatchConfig
from ltenet.matching.looks import PRIOR
from ltenet.matching.matcher import Matcher
from tools.calibrate import DETAIL, pair_of

#: Number of the first pair: `tools.calibrate` uses those before.
FIRST = 500
#: Ways whose first look costs at most this much more than the best are followed here.
WIDE = 0.3
#: Mean error, relative to the least of the pair's ways and in % of the diameter, up to which a way
#: counts as right, and least error from which a pair has no right way.
LIKE_THE_BEST, LOST = 2.0, 10.0


class Ways(NamedTuple):
    """Ways to match generated pairs.

    Attributes
    ----------
    terms
        (W, 3) energy of the first look, of the refined map, and opinion of the networks.
    errors
        (W,) mean errors in % of the diameter.
    pair
        (W,) number of the pair.
    """

    terms: FloatArray
    errors: FloatArray
    pair: NDArray[np.int64]

    def decisions(self) -> list[tuple[FloatArray, NDArray[np.bool_]]]:
        """Terms (w, 3) of the ways of each pair, and which (w,) are right; where it matters."""
        found = []
        for number in np.unique(self.pair):
            own = self.pair == number  # (W,)
            errors = self.errors[own]  # (w,)
            right = errors <= errors.min() + LIKE_THE_BEST  # (w,)
            if errors.min() < LOST and not right.all():
                found.append((self.terms[own], right))
        return found


def follow(matcher: Matcher, kind: str, index: int) -> list[tuple[list[float], float]]:
    """Match one generated pair in many ways: terms and error of each."""
    source, target, truth = pair_of(kind, kind, index)
    if not np.isfinite(truth).any():
        return []
    found = ranked_candidates(
        matcher.networks,
        matcher.prepare(source),
        matcher.prepare(target),
        orient="auto",
        refine="coherent",
        close=WIDE,
    )
    ways = []
    for one in found:
        back = np.linalg.inv(one.target.matrix)
        places = one.refined.positions.double().numpy() @ back[:3, :3].T + back[:3, 3]  # (N, 3)
        off = np.linalg.norm(places - truth[one.source.sample.cleaned.inliers], axis=1)  # (N,)
        error = 100 * float(np.nanmean(off)) / largest_distance(target.points)
        ways.append(([one.look, one.refined.energy, one.prior], error))
    return ways


def draw(count: int) -> Ways:
    """Match `count` pairs of each kind."""
    matcher = Matcher(MatchConfig())
    terms, errors, pair = [], [], []
    for index in range(FIRST, FIRST + count):
        for kind in DETAIL:
            for row, error in follow(matcher, kind, index):
                terms.append(row)
                errors.append(error)
                pair.append(3 * index + list(DETAIL).index(kind))
        print(f"\r{index + 1 - FIRST} of {count}", end="", file=sys.stderr, flush=True)
    return Ways(np.array(terms), np.array(errors), np.array(pair))


Decisions = list[tuple[FloatArray, NDArray[np.bool_]]]


def fit(decisions: Decisions) -> FloatArray:
    """(3,) weights, energies not above and opinion not below zero, of the most likely choices."""

    def loss(weights: FloatArray) -> float:
        total = 0.01 * float(np.square(weights / [10, 10, 1]).sum())
        for terms, right in decisions:
            scores = terms @ weights  # (w,)
            total -= float(logsumexp(scores[right]) - logsumexp(scores))
        return total

    bounds = [(None, 0), (None, 0), (0, None)]
    found: FloatArray = minimize(loss, np.array([-10.0, -10.0, 0.3]), bounds=bounds).x
    return found


def share_right(decisions: Decisions, weights: FloatArray) -> float:
    """How often the best way is right."""
    return float(np.mean([right[np.argmax(terms @ weights)] for terms, right in decisions]))


def refined_at_all(decisions: Decisions) -> float:
    """How often a right way is close enough after the first look to be refined."""
    kept = []
    for terms, right in decisions:
        costs = terms[:, 0] - PRIOR * terms[:, 2]  # (w,)
        kept.append(bool(right[costs <= costs.min() + CLOSE].any()))
    return float(np.mean(kept))


def cross_validated(decisions: Decisions) -> float:
    """How often the best way is right by weights that were fitted to other pairs."""
    shares = []
    for fitted, rest in KFold(5, shuffle=True, random_state=0).split(decisions):
        weights = fit([decisions[number] for number in fitted])
        shares += [share_right([decisions[number]], weights) for number in rest]
    return float(np.mean(shares))


def main() -> None:
    """Match or read, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=60, help="of each kind of shape")
    parser.add_argument("--keep", type=Path, help="file for the ways")
    parser.add_argument("--from", dest="kept", type=Path, help="ways of an earlier call")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    if options.kept is not None:
        with np.load(options.kept) as arrays:
            ways = Ways(**{name: arrays[name] for name in Ways._fields})
    else:
        ways = draw(options.pairs)
    if options.keep is not None:
        with atomic_path(options.keep, force=True) as path, path.open("wb") as stream:
            np.savez(stream, **ways._asdict())
    decisions = ways.decisions()
    weights = fit(decisions)
    energy = -weights[0] - weights[1]
    now = np.array([-LOOK, LOOK - 1.0, PRIOR]) / TEMPERATURE
    print(
        json.dumps(
            {
                "pairs": len(np.unique(ways.pair)),
                "decisions": len(decisions),
                "LOOK": -weights[0] / energy,
                "PRIOR": weights[2] / energy,
                "TEMPERATURE": 1 / energy,
                "right_when_fitted": cross_validated(decisions),
                "right_now": share_right(decisions, now),
                "right_by_look": share_right(decisions, np.array([-1.0, 0.0, 0.0])),
                "right_by_refined": share_right(decisions, np.array([0.0, -1.0, 0.0])),
                "right_by_opinion": share_right(decisions, np.array([0.0, 0.0, 1.0])),
                "refined_at_all_now": refined_at_all(decisions),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
