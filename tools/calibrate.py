"""Fit how likely a match is right, on generated shapes, and write it beside the weights.

    python -m tools.calibrate human --write
    python -m tools.calibrate human

The first command fits and writes `calibration.json` into the package, the second only measures
what is there, on other shapes. In half of the pairs both shapes may be parts: cropped or cut, with
holes, in view of a camera, or a limb. Printed are the expected calibration error (ten bins of equal
width, weighted by their points), and how well the probability tells points without a partner (AUC).

A point is right if the map is right as a whole (`matching/verdict.py`, by `tools.fit_verdict`) and
the point in it. The latter is fitted here, on maps that are right as a whole; figures are of the
product, on all maps.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ltenet.data.augmentation import Augmentation, random_rotation
from ltenet.data.training_pairs import PairConfig, TrainingPairs
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.diameter import largest_distance
from ltenet.matching.confidence import RIGHT, Calibration, evidence
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.matching.verdict import PairEvidence, pair_evidence, pair_probability, typical
from ltenet.method.model import find_weights
from ltenet.metrics import calibration_error, reliability
from ltenet.shape import Shape

#: What is missing from both shapes of half of the pairs.
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
#: Mean error, relative to the diameter, up to which a map is right as a whole.
WHOLE = 0.1
KNOTS = 20
FIT_SEED, TEST_SEED = 11, 12


class Sample(NamedTuple):
    """Points of many pairs.

    Attributes
    ----------
    columns
        (P, 6) evidence.
    right
        (P,) whether the match was right.
    partner
        (P,) whether there was anything to match with.
    partial
        (P,) whether a part of that target was missing.
    whole
        (P,) whether the map was right as a whole.
    verdict
        (P, 7) evidence of the pair but for its last column, the mean probability of its points.
    pair
        (P,) number of the pair.
    """

    columns: FloatArray
    right: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    partner: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    partial: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    whole: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    verdict: FloatArray
    pair: np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def draw(what: str, model: str, count: int, seed: int) -> Sample:
    """Match generated pairs and look which points are right."""
    detail = {"human": 1.0, "animal": 4.0, "thing": 0.0}[what]
    rows = []
    for partial in (False, True):
        parts = PARTS if partial else {}
        augmentation = Augmentation(noise=0.002, density=3.0, detail=detail, **parts)
        config = PairConfig(
            what=what,  # type: ignore[arg-type]
            points=(640, 1024),
            equal_counts=False,
            augmentation=augmentation,
        )
        pairs = TrainingPairs(config, seed, "validation")
        matcher = Matcher(MatchConfig(model=model, threshold=0.0))
        for index in range(count // 2):
            pair = pairs.draw(index)
            rng = np.random.default_rng([seed, index, partial])
            turn = random_rotation("any", rng)
            source = Shape(pair.source @ turn.T, name="source")
            target = Shape(pair.target.astype(np.float64), name="target")
            best = matcher.choose(matcher.prepare(source), matcher.prepare(target))
            places = best.refined.positions.double().numpy()  # (N, 3)
            back = np.linalg.inv(best.target.matrix)
            places = places @ back[:3, :3].T + back[:3, 3]
            kept = best.source.sample.cleaned.inliers  # (N,)
            errors = np.linalg.norm(places - pair.source_truth[kept], axis=1)  # (N,)
            known = pair.source_known[kept]  # (N,)
            diameter = largest_distance(target.points)
            right = (errors <= RIGHT * diameter) & known
            columns = evidence(best.pair, best.refined)  # (N, 6)
            found = pair_evidence(best, np.zeros(1))
            size = len(right)
            rows.append(
                (
                    columns,
                    right,
                    known,
                    np.full(size, partial),
                    np.full(size, errors[known].mean() < WHOLE * diameter),
                    np.tile(np.array(found), (size, 1)),
                    np.full(size, len(rows)),
                )
            )
            print(f"\r{index + 1} of {count // 2}", end="", file=sys.stderr, flush=True)
    return Sample(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def fit(sample: Sample) -> Calibration:
    """Weigh the evidence, then bring its values to the observed shares."""
    sample = Sample(*(column[sample.whole] for column in sample))
    centre, spread = sample.columns.mean(axis=0), sample.columns.std(axis=0) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=500)
    model.fit((sample.columns - centre) / spread, sample.right)
    weights = model.coef_[0] / spread
    bias = float(model.intercept_[0] - weights @ centre)
    plain = Calibration(tuple(weights.tolist()), bias)
    values = plain.estimate(sample.columns)
    curve = IsotonicRegression(out_of_bounds="clip").fit(values, sample.right)
    knots = np.unique(np.quantile(values, np.linspace(0, 1, KNOTS)).round(6))
    shares = np.maximum.accumulate(curve.predict(knots)).round(6)
    return Calibration(plain.weights, bias, tuple(knots.tolist()), tuple(shares.tolist()))


def measure(calibration: Calibration, sample: Sample) -> dict[str, float]:
    """Figures of a calibration on a sample."""
    estimates = calibration.estimate(sample.columns)  # (P,)
    for number in np.unique(sample.pair):
        own = sample.pair == number  # (P,)
        found = PairEvidence(*sample.verdict[own][0])._replace(points=typical(estimates[own]))
        estimates[own] *= pair_probability(found)
    missing = sample.partial
    return {
        "points": len(estimates),
        "right": float(sample.right.mean()),
        "expected_calibration_error": calibration_error(reliability(estimates, sample.right)),
        "auc_right": float(roc_auc_score(sample.right, estimates)),
        "auc_partner": float(roc_auc_score(sample.partner[missing], estimates[missing])),
    }


def main() -> None:
    """Fit if asked to, then measure on other shapes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", help="name or folder of weights")
    parser.add_argument(
        "--what", choices=("human", "animal", "thing"), help="by default that of the name"
    )
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--write", action="store_true", help="fit and write the calibration")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    what = options.what or options.model.split("-")[0].replace("any", "thing")
    folder = find_weights(options.model)
    if options.write:
        fit(draw(what, options.model, options.pairs, FIT_SEED)).save_pretrained(folder, force=True)
    figures = measure(
        Calibration.from_pretrained(folder),
        draw(what, options.model, options.pairs, TEST_SEED),
    )
    print(json.dumps({"model": options.model, "pairs": options.pairs, **figures}, indent=2))


if __name__ == "__main__":
    main()
