"""Fit how likely the map of a pair is right as a whole, on generated shapes.

    python -m tools.fit_verdict --pairs 60 --keep runs/verdict.npz
    python -m tools.fit_verdict --from runs/verdict.npz

People, animals and things are turned at random and matched with default options: pairs of one kind,
every third of them with parts missing, and unrelated ones, whose maps have no truth and are wrong.
Printed are the weights for `matching/verdict.py`, and figures of those that are there now: AUC for
a mean error below 5 % of the diameter, calibration error, and the share of pairs above 0.8 with an
error above 10 %.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

import numpy as np
import torch
from scipy.spatial.transform import Rotation
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ltenet.data.augmentation import Augmentation
from ltenet.data.training_pairs import PairConfig, TrainingPair, TrainingPairs
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.diameter import largest_distance
from ltenet.matching.confidence import evidence, read_calibration
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.matching.verdict import PairEvidence, pair_evidence, pair_probability
from ltenet.metrics import calibration_error, reliability
from ltenet.shape import Shape
from tools.calibrate import PARTS

SEED = 29
#: How uneven the meshes of each generator are.
DETAIL = {"human": 1.0, "animal": 4.0, "thing": 0.0}
#: Error of maps without a truth, in % of the diameter.
UNRELATED = 100.0
#: Weight of such pairs in the fit: users mostly match what belongs together.
RARER = 0.25


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


def draw(count: int) -> tuple[FloatArray, FloatArray]:
    """(P, 7) evidence of pairs, `count` of each combination, and their (P,) errors in %."""
    matcher = Matcher(MatchConfig(threshold=0.0))
    rows, errors = [], []
    kinds = list(DETAIL)
    for ours in kinds:
        for theirs in kinds:
            for index in range(count if ours == theirs else count // 4):
                source, target, truth = pair_of(ours, theirs, index)
                best = matcher.choose(matcher.prepare(source), matcher.prepare(target))
                scores = read_calibration(best.networks.folder).estimate(
                    evidence(best.pair, best.refined)
                )
                rows.append(pair_evidence(best, scores))
                back = np.linalg.inv(best.target.matrix)
                places = best.refined.positions.double().numpy() @ back[:3, :3].T + back[:3, 3]
                kept = best.source.sample.cleaned.inliers  # (N,)
                off = np.linalg.norm(places - truth[kept], axis=1)  # (N,), NaN without a truth
                off = off[np.isfinite(off)] / largest_distance(target.points)
                errors.append(100 * off.mean() if len(off) else UNRELATED)
                told = f"\r{ours} onto {theirs}: {index + 1}   "
                print(told, end="", file=sys.stderr, flush=True)
    return np.array(rows), np.array(errors)


def fit(rows: FloatArray, errors: FloatArray) -> dict[str, object]:
    """Fit the weights of the evidence (P, 7) to errors (P,)."""
    spread = rows.std(axis=0) + 1e-9
    shares = np.where(errors < UNRELATED, 1.0, RARER)  # (P,)
    model = LogisticRegression(C=1.0, max_iter=1000)
    model.fit(rows / spread, errors < 5, sample_weight=shares)
    weights = model.coef_[0] / spread
    return {
        "WEIGHTS": dict(zip(PairEvidence._fields, weights.round(2).tolist(), strict=True)),
        "BIAS": round(float(model.intercept_[0]), 2),
    }


def measure(rows: FloatArray, errors: FloatArray) -> dict[str, float]:
    """Figures of the weights that are there now."""
    told = np.array([pair_probability(PairEvidence(*row)) for row in rows])  # (P,)
    right = errors < 5
    return {
        "pairs": len(rows),
        "right_percent": 100 * float(right.mean()),
        "auc": float(roc_auc_score(right, told)),
        "calibration_error": calibration_error(reliability(told, right)),
        "sure_and_wrong_percent": 100 * float(((told > 0.8) & (errors > 10)).mean()),
    }


def main() -> None:
    """Match, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=60, help="of each kind")
    parser.add_argument("--keep", type=Path, help="file for the evidence")
    parser.add_argument("--from", dest="kept", type=Path, help="evidence of an earlier call")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    if options.kept is not None:
        with np.load(options.kept) as arrays:
            rows, errors = arrays["rows"], arrays["errors"]
    else:
        rows, errors = draw(options.pairs)
    if options.keep is not None:
        with atomic_path(options.keep, force=True) as path, path.open("wb") as stream:
            np.savez(stream, rows=rows, errors=errors)
    order = np.random.default_rng(0).permutation(len(rows))
    half = len(rows) // 2
    found = {"half": fit(rows[order[:half]], errors[order[:half]]), "all": fit(rows, errors)}
    print(json.dumps({"fitted": found, "now": measure(rows, errors)}, indent=2))


if __name__ == "__main__":
    main()
