"""The figures of a benchmark: means over pairs for each seed, then mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ltenet import __version__
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.mesh_results import (
    landmark_figures,
    listed_figures,
    mesh_row,
    mesh_units,
)
from ltenet.evaluation.bench.pair_statistics import (
    Spread,
    by_seed,
    order_statistics,
    seeds_of,
    spread_of,
)
from ltenet.evaluation.bench.provenance import source_commit
from ltenet.evaluation.bench.run import BenchRun
from ltenet.evaluation.bench.scoring import PairScores
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.summary import RELIABLE
from ltenet.metrics import TOLERANCES, MapError, calibration_error

#: What the figures are measured in.
UNITS = {
    "acc": "% of points within the tolerance, which is a share of dmax",
    "err": "mean distance, unit of the set",
    "err_percent": "mean distance, % of dmax",
    "err_dpc": "100 x mean squared distance, as published (TOSCA: / 3)",
    "auc": "mean of acc over the tolerances, %",
    "coverage": "% of target points that are chosen",
    "cycle": "% of the source's diameter",
    "flips": "% of points taken for their mirror image",
    "err_percent_pairs": "err_percent of single pairs: median, mean of the worst tenth",
    "failed_percent": "% of pairs with an err_percent above 10",
    "geodesic": "% of sqrt(area), along the surface",
    "calibration_error": "gap between promised and observed share within 5 % of dmax, up to 1",
    "overlap_iou": "intersection over union of predicted and true overlap, of the shape where it "
    "is lower",
    "sure_failures_percent": "% of pairs with an err_percent above 10 and a mean probability of "
    "0.8 or more",
    "seconds_per_pair": "s",
    "memory_mb": "MB at the peak of a prediction, above those in use before",
    "minutes": "of all predictions, one after another",
}

#: Keys of the tolerances: "0.002" to "0.2".
TOLERANCE_KEYS = tuple(f"{tolerance:.3f}".rstrip("0") for tolerance in TOLERANCES)

#: Error of a pair, % of dmax, above which its map counts as failed.
FAILED = 10.0

_Figure = Callable[[PairScores], float | None]


def summarize(run: BenchRun) -> dict[str, Any]:
    """Return the result of a benchmark as one JSON object.

    `acc` to `auc` are of the chosen target points; with independent samples, where hardly any true
    partner was drawn, of the continuous prediction. `scored` says which, and both are there as
    `point` and `continuous`. Figures that a benchmark does not have are null.
    """
    config, scores = run.config, run.scores
    scored = scored_by(config)
    result: dict[str, Any] = {
        "benchmark": config.benchmark,
        "model": run.options.get("model"),
        "method": config.method,
        "orient": run.options.get("orient"),
        "refine": run.options.get("refine"),
        "pairs": len({score.pair for score in scores}),
        "seeds": list(config.seeds),
        "sampling": config.sampling,
        "by": config.by,
        "points": None if config.sampling == "full" else config.points,
        "noise": config.noise,
        "rotate": config.rotate,
        "partial": config.partial,
        "both": config.both,
        "scored": scored,
        **_errors(scores, scored),
    }
    for name in ("coverage", "cycle", "flips", "geodesic"):
        result[name] = _spread(scores, attrgetter(name))
    result["calibration_error"] = _calibration(scores)
    by_pair = by_seed(scores, lambda score: getattr(score, scored).err_percent)
    result["err_percent_pairs"] = order_statistics(by_pair)
    result["failed_percent"] = spread_of([100 * np.mean(own > FAILED) for own in by_pair])
    if config.partial is not None:
        result |= _overlap(scores)
    result["sure_failures_percent"] = _spread(scores, lambda score: _sure_failure(score, scored))
    result["seconds_per_pair"] = _spread(scores, attrgetter("seconds"))
    result["memory_mb"] = _spread(scores, attrgetter("memory"))
    for which in ("point", "continuous"):
        result[which] = _errors(scores, which)
    if config.sampling == "independent":
        result["oracle"] = _errors(scores, "oracle")
    categories = sorted({score.category for score in scores})
    if len(categories) > 1:
        result["categories"] = {
            name: _brief([s for s in scores if s.category == name], scored) for name in categories
        }
    if scores[0].listed is not None:
        result |= listed_figures(scores)
    if scores[0].landmarks is not None:
        result |= landmark_figures(scores)
    return result | {
        "remark": run.remark,
        "units": UNITS | mesh_units(scores[0]),
        "version": __version__,
        "commit": source_commit(),
        "minutes": round(sum(score.seconds for score in scores) / 60, 2),
        "weights": run.record.get("weights"),
        "code": run.record["code"],
    }


def scored_by(config: BenchConfig) -> str:
    """Which prediction the headline figures are of: "point" or "continuous"."""
    return "continuous" if config.sampling == "independent" else "point"


def table_rows(run: BenchRun) -> list[dict[str, Any]]:
    """Figures of every pair and seed, one flat row each."""
    rows = []
    for score in run.scores:
        row: dict[str, Any] = {
            name: getattr(score, name) for name in ("seed", "pair", "source", "target", "category")
        }
        for which in ("point", "continuous", "oracle"):
            error: MapError = getattr(score, which)
            prefix = "" if which == "point" else f"{which}_"
            row |= {
                f"{prefix}acc_1": 100 * float(error.accuracy[TOLERANCE_KEYS.index("0.01")]),
                f"{prefix}acc_5": 100 * float(error.accuracy[TOLERANCE_KEYS.index("0.05")]),
                f"{prefix}err": error.err,
                f"{prefix}err_percent": error.err_percent,
                f"{prefix}err_dpc": error.err_dpc,
                f"{prefix}auc": 100 * error.auc,
            }
        for name in ("coverage", "cycle", "flips", "geodesic", "seconds", "memory"):
            row[name] = getattr(score, name)
        row["probability"] = score.probability
        if score.overlap is not None:
            row |= {f"overlap_iou_{side}": v for side, v in score.overlap._asdict().items()}
        rows.append(row | mesh_row(score))
    return rows


def curves(run: BenchRun) -> dict[str, FloatArray]:
    """Accuracy curves in %, (2, T) each: mean and standard deviation over the seeds.

    "point" and "continuous", and "oracle" with independent samples; "continuous" is left out where
    the method has none.
    """
    found = {which: _curve(run.scores, which) for which in ("point", "continuous", "oracle")}
    if run.config.sampling != "independent":
        del found["oracle"]
    if np.array_equal(found["point"], found["continuous"]):
        del found["continuous"]
    return found


def _errors(scores: Sequence[PairScores], which: str) -> dict[str, Any]:
    curve = _curve(scores, which)  # (2, T)
    return {
        "acc": {
            key: {"mean": float(mean), "std": float(std)}
            for key, mean, std in zip(TOLERANCE_KEYS, *curve, strict=True)
        },
        "err": _spread(scores, attrgetter(f"{which}.err")),
        "err_percent": _spread(scores, attrgetter(f"{which}.err_percent")),
        "err_dpc": _spread(scores, attrgetter(f"{which}.err_dpc")),
        "auc": _spread(scores, lambda score: 100 * getattr(score, which).auc),
    }


def _overlap(scores: Sequence[PairScores]) -> dict[str, Any]:
    """Overlap of the shape where it is lower, and of each."""
    return {
        name: _spread(scores, attrgetter(f"overlap.{which}"))
        for name, which in (
            ("overlap_iou", "lower"),
            ("overlap_iou_source", "source"),
            ("overlap_iou_target", "target"),
        )
    }


def _sure_failure(score: PairScores, which: str) -> float | None:
    """100 for a pair that failed and was held to be right, else 0."""
    if score.probability is None:
        return None
    failed = getattr(score, which).err_percent > FAILED
    return 100.0 * (failed and score.probability >= RELIABLE)


def _brief(scores: Sequence[PairScores], which: str) -> dict[str, Any]:
    errors = _errors(scores, which)
    brief: dict[str, Any] = {"pairs": len({score.pair for score in scores})}
    brief["acc"] = {key: errors["acc"][key] for key in ("0.01", "0.05")}
    return brief | {key: errors[key] for key in ("err", "err_percent", "err_dpc", "auc")}


def _curve(scores: Sequence[PairScores], which: str) -> FloatArray:
    """(2, T) mean and spread over the seeds of the mean accuracy over pairs, in %."""
    by_seed = np.stack(
        [
            np.mean([getattr(s, which).accuracy for s in scores if s.seed == seed], axis=0)
            for seed in seeds_of(scores)
        ]
    )  # (S, T)
    return 100 * np.stack([by_seed.mean(axis=0), by_seed.std(axis=0)])


def _spread(scores: Sequence[PairScores], figure: _Figure) -> Spread | None:
    """Mean over pairs for each seed, then mean and standard deviation over the seeds."""
    if any(figure(score) is None for score in scores):
        return None
    return spread_of([own.mean() for own in by_seed(scores, figure)])


def _calibration(scores: Sequence[PairScores]) -> Spread | None:
    """Calibration error over all points of a seed, then mean and spread over the seeds."""
    counts: dict[int, FloatArray] = {}
    for score in scores:
        if score.reliability is None:
            return None
        counts[score.seed] = counts.get(score.seed, 0.0) + score.reliability  # (3, 10)
    return spread_of([calibration_error(each) for each in counts.values()])
