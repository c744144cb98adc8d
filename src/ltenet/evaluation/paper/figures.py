"""Headline figures of a benchmark run, and of several trainings together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ltenet.evaluation.bench.results import TOLERANCE_KEYS, scored_by, summarize
from ltenet.evaluation.bench.run import BenchRun

#: Figures of a benchmark that a row keeps; the accuracies are kept as a curve besides.
_KEPT = ("err", "err_percent", "err_dpc", "auc", "coverage", "seconds_per_pair", "memory_mb")
#: Figures with a mean and a spread.
_FIGURES = ("acc_1", "acc_5", *_KEPT)


def brief(run: BenchRun) -> dict[str, Any]:
    """Headline figures of a benchmark, `{"mean", "std"}` each, and the accuracy curve.

    The curve holds mean and spread in % at the 100 tolerances, rounded: a result shall be small
    enough to keep. `acc_1_pairs` has a list for each training, here one: the accuracy of each pair,
    averaged over the sampling seeds. Verdicts need it.
    """
    whole = summarize(run)
    which, place = scored_by(run.config), TOLERANCE_KEYS.index("0.01")
    by_pair: dict[int, list[float]] = {}
    for score in run.scores:
        by_pair.setdefault(score.pair, []).append(getattr(score, which).accuracy[place])
    kept: dict[str, Any] = {
        "pairs": whole["pairs"],
        "scored": which,
        "acc_1": whole["acc"]["0.01"],
        "acc_5": whole["acc"]["0.05"],
        **{name: whole[name] for name in _KEPT},
        "acc_1_pairs": [[round(100 * float(np.mean(own)), 2) for own in by_pair.values()]],
        "curve": {
            part: [round(whole["acc"][key][part], 3) for key in TOLERANCE_KEYS]
            for part in ("mean", "std")
        },
        "remark": whole["remark"],
    }
    if "oracle" in whole:
        oracle = whole["oracle"]
        kept["oracle"] = {"acc_1": oracle["acc"]["0.01"], "err_percent": oracle["err_percent"]}
    return kept


def combined(tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures over several trainings: the mean, and the spread over trainings and samplings."""
    first = tests[0]
    if len(tests) == 1:
        return first
    pooled: dict[str, Any] = {}
    for name in _FIGURES:  # predictions on file may be of before a figure was measured
        own = [test[name] for test in tests if test.get(name) is not None]
        pooled[name] = _pooled(own) if len(own) == len(tests) else None
    pooled["acc_1_pairs"] = [own for test in tests for own in test["acc_1_pairs"]]
    if all("curve" in test for test in tests):
        curve = _pooled([test["curve"] for test in tests])
        pooled["curve"] = {part: np.round(values, 3).tolist() for part, values in curve.items()}
    return first | pooled


def _pooled(figures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of all values, given those of equally large groups."""
    means = np.array([figure["mean"] for figure in figures])  # (R,) or (R, T)
    variances = np.array([figure["std"] for figure in figures]) ** 2
    spread = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    return {"mean": means.mean(axis=0).tolist(), "std": spread.tolist()}
