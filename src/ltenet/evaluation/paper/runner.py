"""Run the rows of an experiment: train what may be trained, test it, collect plain results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ltenet.data.pairs import Sampling
from ltenet.errors import InputError, LTENetError, MissingError, UsageError
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.run import run_bench
from ltenet.evaluation.paper.config import PaperConfig, Tell
from ltenet.evaluation.paper.figures import brief, combined
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
from ltenet.evaluation.paper.recipes import SCALES, PeerRecipe, Recipe
from ltenet.evaluation.paper.trainings import (
    Budget,
    Trained,
    Unfinished,
    trained,
    with_orientation,
)
from ltenet.evaluation.paper.whole_meshes import on_meshes

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
        before = earlier.get((row.setting, row.label), {})
        before = before if _same_row(before, head) else {}
        if before and _complete(before, plan, found, mesh=row.mesh):
            results.append(before | {"waiting": _waiting(found)})
            continue
        tell(f"{name}: row {number} of {len(plan.rows)}, {row.label} ({row.setting})")
        try:
            result = head | _run_row(row, plan, config, found, before, tell)
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


def _same_row(before: dict[str, Any], head: dict[str, Any]) -> bool:
    """Whether an earlier row says that it is what would be measured now."""
    return all(before.get(key) == value for key, value in head.items())


def _complete(
    before: dict[str, Any],
    plan: ExperimentPlan,
    found: Sequence[Trained | Unfinished],
    *,
    mesh: bool,
) -> bool:
    """Whether an earlier row is the one that would be measured now, by the same trainings."""
    runs = [made.as_dict() for made in found if isinstance(made, Trained)]
    also = _also(before["setting"], plan, found)
    return (
        before.get("trainings") == runs
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
    before: dict[str, Any],
    tell: Tell,
) -> dict[str, Any]:
    """Test a row with each of its trainings that is finished.

    Each training is tested once: of one whose run is no longer there, what `before` says stays.
    """
    if not found:
        return {
            "weights": row.weights,
            "trainings": [],
            "waiting": [],
            **_tests(row, row.weights, plan, (), config, tell),
            **({"mesh": on_meshes(row, row.weights, config, tell)} if row.mesh else {}),
        }
    assert isinstance(row.weights, Recipe | PeerRecipe)
    also = _also(row.setting, plan, found)
    measured: list[dict[str, Any]] = []
    waiting, folders = [], []
    for made, wanted in zip(found, wanted_trainings(row.weights, config.budget.steps), strict=True):
        kept = find_measured(before, wanted, made, (*plan.samplings, "also"))
        if kept is None and isinstance(made, Unfinished):
            waiting.append(str(made))
            continue
        if isinstance(made, Trained):
            folders.append(_folder(row, made))
        if kept is None:
            assert isinstance(made, Trained)
            kept = {"training": made.as_dict()} | _tests(
                row, str(folders[-1]), plan, also, config, tell
            )
        measured.append(kept)
    if not measured:
        return {"missing": f"in training: {'; '.join(waiting)}"}
    result: dict[str, Any] = {
        "weights": None,
        "trainings": [own["training"] for own in measured],
        "waiting": waiting,
        **{name: combined([own[name] for own in measured]) for name in plan.samplings},
        "also": _combined_also(measured),
        "measured": measured,
    }
    if row.mesh:
        mesh = before.get("mesh") or on_meshes(row, str(folders[0]), config, tell)
        result["mesh"] = mesh
    return result


def wanted_trainings(recipe: Recipe | PeerRecipe, steps: int | None = None) -> list[dict[str, Any]]:
    """Say which trainings a row is planned with, in the words of `Trained.as_dict`.

    Parameters
    ----------
    recipe
        How they are made.
    steps
        Length of every run; None for the length of its scale.
    """
    length: dict[str, Any] = {}
    if steps is not None:
        length["steps"] = steps
    elif isinstance(recipe, Recipe):
        length["steps"] = SCALES[recipe.scale].steps if recipe.trained else 0
    return [
        {
            "run": recipe.run_name(seed, steps),
            "preset": recipe.preset,
            "what": recipe.what,
            "changes": list(recipe.changes),
            "seed": seed,
            **length,
        }
        for seed in recipe.seeds
    ]


def find_measured(
    before: dict[str, Any],
    wanted: dict[str, Any],
    made: Trained | Unfinished | None,
    parts: Sequence[str],
) -> dict[str, Any] | None:
    """Return what an earlier row says of one training; None if it does not say all of it.

    Parameters
    ----------
    before
        The row.
    wanted
        Which training, in the words of `Trained.as_dict`.
    made
        What is there of it; None if that does not matter.
    parts
        What has to be measured.
    """
    for own in before.get("measured", []):
        training = own["training"]
        same = all(training.get(key) == value for key, value in wanted.items())
        if isinstance(made, Trained):
            same = training == made.as_dict()
        if same and all(part in own for part in parts):
            return dict(own)
    return None


def _tests(
    row: Row,
    weights: Any,
    plan: ExperimentPlan,
    also: Sequence[str],
    config: PaperConfig,
    tell: Tell,
) -> dict[str, Any]:
    """Test one set of weights, or a method without any, with each sampling and on further sets."""
    benchmark = SETTINGS[row.setting].benchmark
    tests: dict[str, Any] = {
        name: _tested(row, weights, benchmark, name, config) for name in plan.samplings
    }
    further: dict[str, Any] = {}
    for name in also:
        try:
            test = _tested(row, weights, name, "shared", config)
        except MissingError as error:  # the further sets need not be there
            tell(f"{row.label}: not tested on {name}: {error}")
            continue
        further[name] = {"shared": {key: test[key] for key in test if key != "curve"}}
    return {**tests, "also": further}


def _combined_also(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of the further sets that all trainings were tested on."""
    names = [name for name in measured[0]["also"] if all(name in own["also"] for own in measured)]
    return {
        name: {"shared": combined([own["also"][name]["shared"] for own in measured])}
        for name in names
    }


def _folder(row: Row, made: Trained) -> Path:
    """Weights of a training, with orientation networks where the row asks for them."""
    return with_orientation(made, like=row.setting) if row.oriented else made.weights


def _tested(
    row: Row, weights: Any, benchmark: str, sampling: Sampling, config: PaperConfig
) -> dict[str, Any]:
    """Figures of a row on one benchmark, with one set of weights."""
    pairs, seeds = config.pairs, config.seeds
    if row.peer:
        pairs, seeds = min(PEER_PAIRS, pairs or PEER_PAIRS), seeds[:PEER_SEEDS]
    bench = BenchConfig(
        benchmark=benchmark,
        data=config.data,
        method=row.method,
        model=weights,
        refine=row.refine,
        sampling=sampling,
        pairs=pairs,
        seeds=seeds,
        noise=row.noise,
        cycle=False,
    )
    if row.linear is not None:
        found = brief(run_linear(bench, row.linear))
        return found | {"seconds_per_pair": None, "memory_mb": None}
    bench = _bearable(bench, config) if row.peer else bench
    return brief(run_bench(bench, cache=config.cache, workers=config.workers))


def _bearable(bench: BenchConfig, config: PaperConfig) -> BenchConfig:
    """Return the benchmark with fewer pairs if the first one takes the method long."""
    first = replace(bench, pairs=1, seeds=bench.seeds[:1])
    seconds = run_bench(first, cache=config.cache).scores[0].seconds
    slow = seconds > SLOW and (bench.pairs is None or bench.pairs > SLOW_PAIRS)
    return replace(bench, pairs=SLOW_PAIRS) if slow else bench
