"""Fit what a map says of itself, on generated shapes: a verdict on the pair, and on each point.

    python -m tools.calibrate --pairs 60 --keep runs/evidence.npz    # match; fit the verdict
    python -m tools.calibrate --from runs/evidence.npz --write       # fit and write the points
    python -m tools.calibrate --from runs/other.npz                  # measure what is there

People, animals and things are turned at random and matched with default options: pairs of one kind,
every third of them with parts missing, and unrelated ones, whose maps have no truth and are wrong.

The first command prints weights for `matching/verdict.py`, which tell how likely a map is right as
a whole. The second fits how likely a point is right, from its own evidence and from that of its
pair, with the verdict as it stands in the code: `calibration.json` of each of the weights that were
chosen, or of those named. `--model` and `--what` do that for weights that are not chosen by
themselves.

Printed are, for pairs, AUC for a mean error below 5 % of the diameter and the share of pairs above
0.8 with an error above 10 %; for points, expected calibration error (ten bins of equal width) and
how well the probability tells points without a partner (AUC). Figures of what is fitted are of
five-fold cross-validation over pairs.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from ltenet.data.augmentation import Augmentation
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.diameter import largest_distance
from ltenet.matching.confidence import RIGHT, Calibration, evidence
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.matching.verdict import PairEvidence, pair_evidence, pair_logit
from ltenet.method.model import find_weights
from ltenet.metrics import calibration_error, reliability
from ltenet.shape import Shape

#: What is missing from both shapes of every third pair.
PARTS: dict[str, Any] = {
    "crop": 0.5,
    "crop_chance": 0.25,
    "cut_chance": 0.25,
    "view_chance": 0.25,
    "limb_chance": 0.1,
    "holes_chance": 0.25,
    "holes": 20,
    "hole_area": (0.005, 0.03),
}
SEED = 29
#: How uneven the meshes of each generator are.
DETAIL = {"human": 1.0, "animal": 4.0, "thing": 0.0}
#: Error of maps without a truth, in % of the diameter.
UNRELATED = 100.0
#: Weight of such pairs in the fit: users mostly match what belongs together.
RARER = 0.25
#: Evidence that speaks for a map; the rest speaks against it.
FOR = {"direction", "prior", "confidence"}
KNOTS = 20
FOLDS = 5
#: Pairs that weights must have been chosen for to be calibrated.
FEWEST = 12

Flags = NDArray[np.bool_]


class Drawn(NamedTuple):
    """Maps of generated pairs.

    Attributes
    ----------
    evidence
        (P, E) of the pairs, see `PairEvidence`.
    errors
        (P,) mean errors in % of the diameter.
    chosen
        (P,) names of the weights.
    columns
        (Q, 7) evidence of the points of all pairs.
    right
        (Q,) whether a point was matched right.
    partner
        (Q,) whether there was anything to match it with.
    pair
        (Q,) number of its pair.
    """

    evidence: FloatArray
    errors: FloatArray
    chosen: NDArray[np.str_]
    columns: FloatArray
    right: Flags
    partner: Flags
    pair: NDArray[np.int64]

    def of(self, pairs: Flags) -> Drawn:
        """Keep (P,) pairs; their numbers change."""
        points = pairs[self.pair]  # (Q,)
        number = np.cumsum(pairs) - 1  # (P,)
        return Drawn(
            *(array[pairs] for array in self[:3]),
            *(array[points] for array in self[3:6]),
            number[self.pair[points]],
        )

    @property
    def shares(self) -> FloatArray:
        """(P,) how much a pair counts."""
        return np.where(self.errors < UNRELATED, 1.0, RARER)


def pair_of(source_kind: str, target_kind: str, index: int) -> tuple[Shape, Shape, FloatArray]:
    """Return two shapes turned at random, and where each source point belongs; NaN if nowhere.

    Things are of one template or, every fourth pair, of two: then they are unrelated.
    """
    first = _drawn(source_kind, index)
    related = source_kind == target_kind and (source_kind != "thing" or index % 4 > 0)
    second = first if related else _drawn(target_kind, index + 1000)
    turns = [Rotation.random(random_state=2 * index + side).as_matrix() for side in (0, 1)]
    source = Shape(first.source.astype(np.float64) @ turns[0].T)
    target = Shape(second.target.astype(np.float64) @ turns[1].T)
    truth = first.source_truth.astype(np.float64) @ turns[1].T  # (N, 3)
    truth[~first.source_known] = np.nan
    return source, target, truth if related else np.full_like(truth, np.nan)


def _drawn(what: str, index: int) -> TrainingPair:
    parts = PARTS if index % 3 == 1 else {}
    config = PairConfig(
        what=what,
        points=(640, 1024),
        equal_counts=False,
        by="area",
        augmentation=Augmentation(
            noise=0.002, density=3.0, detail=DETAIL[what], even_chance=0.3, **parts
        ),
    )
    return TrainingPairs(config, SEED, "validation").draw(index)


def draw(count: int, start: int, *, model: str, whats: list[str]) -> Drawn:
    """Match `count` pairs of each kind, and a quarter as many of two kinds each."""
    matcher = Matcher(MatchConfig(model=model, threshold=0.0))
    rows: list[tuple[Any, ...]] = []
    wanted = [
        (ours, theirs, index)
        for index in range(start, start + count)
        for ours in whats
        for theirs in DETAIL
        if ours == theirs or index % 4 == 0
    ]
    for ours, theirs, index in wanted:
        source, target, truth = pair_of(ours, theirs, index)
        best = matcher.choose(matcher.prepare(source), matcher.prepare(target))
        columns = evidence(best.pair, best.refined)  # (N, 7)
        back = np.linalg.inv(best.target.matrix)
        places = best.refined.positions.double().numpy() @ back[:3, :3].T + back[:3, 3]
        off = np.linalg.norm(places - truth[best.source.sample.cleaned.inliers], axis=1)  # (N,)
        off /= largest_distance(target.points)
        known = np.isfinite(off)  # (N,)
        error = 100 * off[known].mean() if known.any() else UNRELATED
        number = np.full(len(off), len(rows))
        rows.append(
            (
                np.array(pair_evidence(best, columns))[None],
                [error],
                [best.networks.name],
                columns,
                known & (off <= RIGHT),
                known,
                number,
            )
        )
        told = f"\r{len(rows)} of {len(wanted)}: {ours} onto {theirs}   "
        print(told, end="", file=sys.stderr, flush=True)
    return Drawn(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def often_chosen(drawn: Drawn) -> Drawn:
    """Leave out pairs for which weights were chosen that too few others have in common."""
    names, counts = np.unique(drawn.chosen, return_counts=True)
    rare = names[counts < FEWEST]
    if len(rare):
        told = ", ".join(f"{name} ({count})" for name, count in zip(names, counts, strict=True))
        print(f"chosen: {told}; left out: {', '.join(rare)}", file=sys.stderr)
    return drawn.of(~np.isin(drawn.chosen, rare))


def fit_pairs(drawn: Drawn) -> tuple[FloatArray, float]:
    """Fit the (E,) weights of a pair's evidence, and the bias.

    Logistic regression in which no evidence against a map may speak for it.
    """
    spread = drawn.evidence.std(axis=0) + 1e-9  # (E,)
    every = np.column_stack([drawn.evidence / spread, np.ones(len(drawn.errors))])  # (P, E + 1)
    signs = np.where(drawn.errors < 5, 1.0, -1.0)  # (P,)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margins = signs * (every @ weights)  # (P,)
        slopes = -drawn.shares * signs / (1 + np.exp(margins))  # (P,)
        ridge = np.append(weights[:-1], 0.0)  # (E + 1,)
        value = drawn.shares @ np.logaddexp(0, -margins) + 0.5 * ridge @ ridge
        return float(value), every.T @ slopes + ridge

    bounds = [(0, None) if name in FOR else (None, 0) for name in PairEvidence._fields]
    start = np.zeros(len(spread) + 1)
    found = minimize(loss, start, jac=True, bounds=[*bounds, (None, None)], method="L-BFGS-B").x
    return found[:-1] / spread, float(found[-1])


def fit_points(drawn: Drawn, logits: FloatArray) -> Calibration:
    """Weigh the evidence of points and the (P,) logits of their pairs, then bend to the shares."""
    shares = drawn.shares[drawn.pair]  # (Q,)
    every = np.column_stack([drawn.columns, logits[drawn.pair]])  # (Q, 8)
    centre, spread = every.mean(axis=0), every.std(axis=0) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=500)
    model.fit((every - centre) / spread, drawn.right, sample_weight=shares)
    weights = model.coef_[0] / spread
    bias = float(model.intercept_[0] - weights @ centre)
    plain = Calibration(tuple(weights.round(6).tolist()), round(bias, 6))
    values = plain.estimate(drawn.columns, logits[drawn.pair])  # (Q,)
    curve = IsotonicRegression(out_of_bounds="clip")
    curve.fit(values, drawn.right, sample_weight=shares)
    knots = np.unique(np.quantile(values, np.linspace(0, 1, KNOTS)).round(6))
    rising = np.maximum.accumulate(curve.predict(knots)).round(6)
    return Calibration(plain.weights, plain.bias, tuple(knots.tolist()), tuple(rising.tolist()))


def pair_figures(told: FloatArray, drawn: Drawn) -> dict[str, float]:
    """Figures of (P,) probabilities of pairs."""
    right = drawn.errors < 5
    related = drawn.errors < UNRELATED
    return {
        "pairs": len(told),
        "right_percent": 100 * float(right.mean()),
        "auc": float(roc_auc_score(right, told)),
        "auc_related": float(roc_auc_score(right[related], told[related])),
        "calibration_error": calibration_error(reliability(told, right)),
        "sure_and_wrong_percent": 100 * float(((told > 0.8) & (drawn.errors > 10)).mean()),
    }


def point_figures(told: FloatArray, drawn: Drawn) -> dict[str, float]:
    """Figures of (Q,) probabilities of points: of related pairs, and their means over all pairs."""
    related = (drawn.errors < UNRELATED)[drawn.pair]  # (Q,)
    means = np.bincount(drawn.pair, told) / np.bincount(drawn.pair)  # (P,)
    right, partner, told = drawn.right[related], drawn.partner[related], told[related]
    return {
        "points": len(told),
        "right": float(right.mean()),
        "expected_calibration_error": calibration_error(reliability(told, right)),
        "auc_right": float(roc_auc_score(right, told)),
        "auc_partner": float(roc_auc_score(partner, told)),
        "auc_mean_of_pair": float(roc_auc_score(drawn.errors < 5, means)),
    }


def cross_validated(drawn: Drawn) -> dict[str, Any]:
    """Figures of fits to four fifths of the pairs on the rest."""
    pairs, points = np.zeros(len(drawn.errors)), np.zeros(len(drawn.pair))
    for fitted, _ in KFold(FOLDS, shuffle=True, random_state=0).split(pairs):
        inside = np.isin(np.arange(len(pairs)), fitted)  # (P,)
        weights, bias = fit_pairs(drawn.of(inside))
        logits = drawn.evidence @ weights + bias  # (P,)
        pairs[~inside] = 1 / (1 + np.exp(-logits[~inside]))
        for name in np.unique(drawn.chosen):
            own = drawn.chosen == name  # (P,)
            calibration = fit_points(drawn.of(inside & own), logits[inside & own])
            rest = (own & ~inside)[drawn.pair]  # (Q,)
            points[rest] = calibration.estimate(drawn.columns[rest], logits[drawn.pair[rest]])
    return {"pairs": pair_figures(pairs, drawn), "points": point_figures(points, drawn)}


def as_shipped(drawn: Drawn) -> dict[str, Any]:
    """Figures of what is there now."""
    logits = np.array([pair_logit(PairEvidence(*row)) for row in drawn.evidence])  # (P,)
    points = np.zeros(len(drawn.pair))
    for name in np.unique(drawn.chosen):
        rows = (drawn.chosen == name)[drawn.pair]  # (Q,)
        calibration = Calibration.from_pretrained(find_weights(str(name)))
        points[rows] = calibration.estimate(drawn.columns[rows], logits[drawn.pair[rows]])
    return {
        "pairs": pair_figures(1 / (1 + np.exp(-logits)), drawn),
        "points": point_figures(points, drawn),
    }


def write(drawn: Drawn, names: Sequence[str]) -> None:
    """Write the calibration of the weights of these names."""
    logits = np.array([pair_logit(PairEvidence(*row)) for row in drawn.evidence])  # (P,)
    for name in names:
        own = drawn.chosen == name  # (P,)
        calibration = fit_points(drawn.of(own), logits[own])
        calibration.save_pretrained(find_weights(str(name)), force=True)


def main() -> None:
    """Match or read, fit, write if asked to, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=60, help="of each kind")
    parser.add_argument("--start", type=int, default=0, help="number of the first pair")
    parser.add_argument("--model", default="auto", help="name or folder of weights")
    parser.add_argument("--what", choices=tuple(DETAIL), help="match this kind alone")
    parser.add_argument("--keep", type=Path, help="file for the evidence")
    parser.add_argument(
        "--from", dest="kept", type=Path, nargs="+", help="evidence of earlier calls"
    )
    parser.add_argument(
        "--write", nargs="*", metavar="WEIGHTS", help="write the calibration of points; of these"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    if options.kept:
        drawn = _joined([_read(path) for path in options.kept])
    else:
        whats = [options.what] if options.what else list(DETAIL)
        drawn = draw(options.pairs, options.start, model=options.model, whats=whats)
    if options.keep is not None:
        with atomic_path(options.keep, force=True) as path, path.open("wb") as stream:
            np.savez(stream, **drawn._asdict())
    drawn = often_chosen(drawn)
    if options.write is not None:
        write(drawn, options.write or np.unique(drawn.chosen).tolist())
    weights, bias = fit_pairs(drawn)
    print(
        json.dumps(
            {
                "WEIGHTS": dict(zip(PairEvidence._fields, weights.round(2).tolist(), strict=True)),
                "BIAS": round(bias, 2),
                "cross_validated": cross_validated(drawn),
                "now": as_shipped(drawn),
            },
            indent=2,
        )
    )


def _read(path: Path) -> Drawn:
    with np.load(path) as arrays:
        return Drawn(**{name: arrays[name] for name in Drawn._fields})


def _joined(parts: list[Drawn]) -> Drawn:
    before = np.cumsum([0, *(len(part.errors) for part in parts)])
    numbered = [
        part._replace(pair=part.pair + start) for part, start in zip(parts, before, strict=False)
    ]
    return Drawn(*(np.concatenate(column) for column in zip(*numbered, strict=True)))


if __name__ == "__main__":
    main()
