"""Run the rows of an experiment: train what has to be trained, test it, collect plain results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltenet.data.pairs import Sampling
from ltenet.errors import InputError, LTENetError, UsageError
from ltenet.evaluation.bench import BenchConfig, BenchRun, run_bench
from ltenet.evaluation.benchmarks import open_benchmark
from ltenet.evaluation.paper.linear import run_linear
from ltenet.evaluation.paper.plan import SETTINGS, Plan, Recipe, Row
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.paper.trainings import Budget, Trained, train_once
from ltenet.evaluation.results import TOLERANCE_KEYS, scored_by, summarize

#: Figures of a benchmark that a row keeps; the accuracies are kept as a curve besides.
_KEPT = ("err", "err_percent", "err_dpc", "auc", "coverage", "seconds_per_pair")


@dataclass(frozen=True, kw_only=True)
class PaperConfig:
    """How an experiment is run.

    Attributes
    ----------
    data
        Folder of the benchmarks.
    budget
        What each training may take.
    cache
        Folder of predictions.
    pairs
        A random part of the test pairs, None for all.
    seeds
        Sampling seeds.
    workers
        Processes for predictions; 0 works in this one.
    """

    data: Path | None
    budget: Budget
    cache: Path
    pairs: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 0


#: Told what is being done.
Tell = Callable[[str], None]


def run_plan(
    name: str, plan: Plan, config: PaperConfig, *, tell: Tell = lambda text: None
) -> list[dict[str, Any]]:
    """Run every row; one that lacks a package or fails says so, and the others go on.

    Raises
    ------
    MissingError
        If the benchmark's data are missing: no row could be tested, so nothing is trained.
    """
    for what in dict.fromkeys(row.setting for row in plan.rows):
        open_benchmark(SETTINGS[what].benchmark, config.data)
    results = []
    for number, row in enumerate(plan.rows, start=1):
        tell(f"{name}: row {number} of {len(plan.rows)}, {row.label} ({row.setting})")
        found = published(name).row(row.published, row.setting)
        result: dict[str, Any] = {
            "label": row.label,
            "setting": row.setting,
            "benchmark": SETTINGS[row.setting].benchmark,
            "method": row.method,
            "refine": row.refine,
            "noise": row.noise,
            "linear": row.linear,
            "published": None if found is None else found._asdict(),
        }
        try:
            result |= _run_row(row, plan, config)
        except (InputError, UsageError):
            raise  # what was asked for is wrong, not this row
        except LTENetError as error:
            result["missing"] = str(error)
            tell(f"{row.label}: {error}")
        results.append(result)
    return results


def _run_row(row: Row, plan: Plan, config: PaperConfig) -> dict[str, Any]:
    trained: Trained | None = None
    weights = row.weights
    if isinstance(weights, Recipe):
        trained = train_once(weights, config.budget)
        weights = str(trained.run.best)
    tests: dict[str, Any] = {
        sampling: brief(_test(row, weights, sampling, config)) for sampling in plan.samplings
    }
    if row.linear is not None:
        tests = {name: test | {"seconds_per_pair": None} for name, test in tests.items()}
    return {
        "weights": weights if trained is None else None,
        "training": None if trained is None else trained.as_dict(),
        **tests,
    }


def _test(row: Row, weights: str | None, sampling: Sampling, config: PaperConfig) -> BenchRun:
    bench = BenchConfig(
        benchmark=SETTINGS[row.setting].benchmark,
        data=config.data,
        method=row.method,
        model=weights,
        refine=row.refine,
        sampling=sampling,
        pairs=config.pairs,
        seeds=config.seeds,
        noise=row.noise,
        cycle=False,
    )
    if row.linear is not None:
        return run_linear(bench, row.linear)
    return run_bench(bench, cache=config.cache, workers=config.workers)


def brief(run: BenchRun) -> dict[str, Any]:
    """Headline figures of a benchmark, `{"mean", "std"}` each, and the accuracy curve.

    The curve holds mean and spread in % at the 100 tolerances, rounded: a result shall be small
    enough to keep.
    """
    whole = summarize(run)
    kept: dict[str, Any] = {
        "pairs": whole["pairs"],
        "scored": scored_by(run.config),
        "acc_1": whole["acc"]["0.01"],
        "acc_5": whole["acc"]["0.05"],
        **{name: whole[name] for name in _KEPT},
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
