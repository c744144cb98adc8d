"""Run the rows of an experiment: train what may be trained, test it, collect plain results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.data.pairs import Sampling
from ltenet.errors import InputError, LTENetError, MissingError, UsageError
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.results import TOLERANCE_KEYS, scored_by, summarize
from ltenet.evaluation.bench.run import BenchRun, run_bench
from ltenet.evaluation.paper.config import PaperConfig, Tell
from ltenet.evaluation.paper.linear import run_linear
from ltenet.evaluation.paper.plan import (
    PEER_PAIRS,
    PEER_SEEDS,
    SETTINGS,
    SLOW,
    SLOW_PAIRS,
    ExperimentPlan,
    Row,
)
from ltenet.evaluation.paper.published import published
from ltenet.evaluation.paper.recipes import PeerRecipe, Recipe
from ltenet.evaluation.paper.trainings import (
    Budget,
    Trained,
    Unfinished,
    trained,
    with_orientation,
)
from ltenet.evaluation.paper.whole_meshes import on_meshes

#: Figures of a benchmark that a row keeps; the accuracies are kept as a curve besides.
_KEPT = ("err", "err_percent", "err_dpc", "auc", "coverage", "seconds_per_pair", "memory_mb")
#: Figures with a mean and a spread.
_FIGURES = ("acc_1", "acc_5", *_KEPT)


#: Given all rows so far, in the order of the table.
Keep = Callable[[list[dict[str, Any]]], None]


def run_plan(
    name: str,
    plan: ExperimentPlan,
    config: PaperConfig,
    *,
    known: Sequence[dict[str, Any]] = (),
    keep: Keep = lambda rows: None,
    tell: Tell = lambda text: None,
) -> list[dict[str, Any]]:
    """Run every row; one that lacks a package, a run or fails says so, and the others go on.

    Parameters
    ----------
    name, plan, config
        What to run, and how.
    known
        Rows of an earlier result with the same seeds and pairs; complete ones are not run again.
    keep
        Called after each row that was tested, so that an interrupt loses none.
    tell
        Reports progress.

    Raises
    ------
    MissingError
        If the benchmark's data are missing: no row could be tested, so nothing is trained.
    """
    for what in dict.fromkeys(row.setting for row in plan.rows):
        open_benchmark(SETTINGS[what].benchmark, config.data)
    heads = [_head(name, row) for row in plan.rows]
    earlier = {(row["setting"], row["label"]): row for row in known if "setting" in row}
    results: list[dict[str, Any]] = []
    for number, (row, head) in enumerate(zip(plan.rows, heads, strict=True), start=1):
        found = _weights(row, config.budget)
        before = earlier.get((row.setting, row.label))
        if before is not None and _complete(before, head, plan, found, mesh=row.mesh):
            results.append(before | {"waiting": _waiting(found)})
            continue
        tell(f"{name}: row {number} of {len(plan.rows)}, {row.label} ({row.setting})")
        try:
            result = head | _run_row(row, plan, config, found, tell)
        except (InputError, UsageError):
            raise  # what was asked for is wrong, not this row
        except LTENetError as error:
            result = head | {"missing": str(error)}
            tell(f"{row.label}: {error}")
        results.append(result)
        rest = zip(plan.rows[number:], heads[number:], strict=True)
        later = [
            earlier.get((row.setting, row.label), head | {"missing": "not tested yet"})
            for row, head in rest
        ]
        keep([*results, *later])
    return results


def _head(name: str, row: Row) -> dict[str, Any]:
    """Say what a row is."""
    figures = published(name).row(row.published, row.setting)
    return {
        "label": row.label,
        "setting": row.setting,
        "benchmark": SETTINGS[row.setting].benchmark,
        "method": row.method,
        "refine": row.refine,
        "noise": row.noise,
        "linear": row.linear,
        "oriented": row.oriented,
        "published": None if figures is None else figures._asdict(),
    }


def _weights(row: Row, budget: Budget) -> list[Trained | Unfinished]:
    """Return the row's trainings, one for each seed; none for weights that ship."""
    if not isinstance(row.weights, Recipe | PeerRecipe):
        return []
    return [trained(row.weights, seed, budget) for seed in row.weights.seeds]


def _complete(
    before: dict[str, Any],
    head: dict[str, Any],
    plan: ExperimentPlan,
    found: Sequence[Trained | Unfinished],
    *,
    mesh: bool,
) -> bool:
    """Whether an earlier row is the one that would be measured now."""
    runs = [made.as_dict() for made in found if isinstance(made, Trained)]
    also = _also(head["setting"], plan, found)
    return (
        all(before.get(key) == value for key, value in head.items())
        and before.get("trainings") == runs
        and all(sampling in before for sampling in plan.samplings)
        and ("mesh" in before or not mesh)
        and set(before.get("also", {})) == set(also)
    )


def _also(
    setting: str, plan: ExperimentPlan, found: Sequence[Trained | Unfinished]
) -> tuple[str, ...]:
    """Further tests of a row: of our own trainings, not of other systems."""
    own = any(not isinstance(made, Trained) or made.pairs_seen is None for made in found)
    return SETTINGS[setting].also if plan.also and own else ()


def _waiting(found: Sequence[Trained | Unfinished]) -> list[str]:
    """Say how far the trainings are that cannot be tested yet."""
    return [str(made) for made in found if isinstance(made, Unfinished)]


def _run_row(
    row: Row,
    plan: ExperimentPlan,
    config: PaperConfig,
    found: Sequence[Trained | Unfinished],
    tell: Tell,
) -> dict[str, Any]:
    """Test a row with each of its trainings that is finished."""
    ready = [made for made in found if isinstance(made, Trained)]
    waiting = _waiting(found)
    if found and not ready:
        return {"missing": f"in training: {'; '.join(waiting)}"}
    weights = [str(_folder(row, made)) for made in ready] if found else [row.weights]
    benchmark = SETTINGS[row.setting].benchmark
    tests: dict[str, Any] = {
        sampling: _tested(row, weights, benchmark, sampling, config) for sampling in plan.samplings
    }
    also: dict[str, Any] = {}
    for name in _also(row.setting, plan, found):
        try:
            test = _tested(row, weights, name, "shared", config)
        except MissingError as error:  # the further sets need not be there
            tell(f"{row.label}: not tested on {name}: {error}")
            continue
        also[name] = {"shared": {key: test[key] for key in test if key != "curve"}}
    return {
        "weights": None if found else row.weights,
        "trainings": [made.as_dict() for made in ready],
        "waiting": waiting,
        **tests,
        "also": also,
        **({"mesh": on_meshes(row, weights[0], config, tell)} if row.mesh else {}),
    }


def _folder(row: Row, made: Trained) -> Path:
    """Weights of a training, with orientation networks where the row asks for them."""
    return with_orientation(made, like=row.setting) if row.oriented else made.weights


def _tested(
    row: Row,
    weights: Sequence[Any],
    benchmark: str,
    sampling: Sampling,
    config: PaperConfig,
) -> dict[str, Any]:
    """Figures of a row on one benchmark, over its trainings."""
    pairs, seeds = config.pairs, config.seeds
    if row.peer:
        pairs, seeds = min(PEER_PAIRS, pairs or PEER_PAIRS), seeds[:PEER_SEEDS]
    tests = []
    for each in weights:
        bench = BenchConfig(
            benchmark=benchmark,
            data=config.data,
            method=row.method,
            model=each,
            refine=row.refine,
            sampling=sampling,
            pairs=pairs,
            seeds=seeds,
            noise=row.noise,
            cycle=False,
        )
        if row.linear is not None:
            tests.append(
                brief(run_linear(bench, row.linear)) | {"seconds_per_pair": None, "memory_mb": None}
            )
        else:
            bench = _bearable(bench, config) if row.peer else bench
            tests.append(brief(run_bench(bench, cache=config.cache, workers=config.workers)))
    return combined(tests)


def _bearable(bench: BenchConfig, config: PaperConfig) -> BenchConfig:
    """Return the benchmark with fewer pairs if the first one takes the method long."""
    first = replace(bench, pairs=1, seeds=bench.seeds[:1])
    seconds = run_bench(first, cache=config.cache).scores[0].seconds
    slow = seconds > SLOW and (bench.pairs is None or bench.pairs > SLOW_PAIRS)
    return replace(bench, pairs=SLOW_PAIRS) if slow else bench


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
    curve = _pooled([test["curve"] for test in tests])
    return first | {
        **pooled,
        "acc_1_pairs": [own for test in tests for own in test["acc_1_pairs"]],
        "curve": {part: np.round(values, 3).tolist() for part, values in curve.items()},
    }


def _pooled(figures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of all values, given those of equally large groups."""
    means = np.array([figure["mean"] for figure in figures])  # (R,) or (R, T)
    variances = np.array([figure["std"] for figure in figures]) ** 2
    spread = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    return {"mean": means.mean(axis=0).tolist(), "std": spread.tolist()}
