"""Which of the paper's conclusions our figures bear out, decided by the figures alone.

A difference counts if it is larger than one percentage point of acc at 1 % and than twice the
spread over the sampling seeds; the spread over trainings is not measured, so a verdict is no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ltenet.evaluation.paper.plans import NOISES

#: Least difference that counts, in percentage points.
LEAST = 1.0
SETS = {"human": "SHREC'19", "animal": "TOSCA"}
_OPTIMAL = "optimal linear map (oracle, all points)"
_HALF = "optimal linear map (oracle, tested on the other half)"
_LEARNED = "embedding as it is"


class Verdict(NamedTuple):
    """One line of the table.

    Attributes
    ----------
    experiment
        Its name.
    claim
        What the paper concludes.
    verdict
        "holds", "does not hold" or "no clear difference".
    figures
        Ours.
    """

    experiment: str
    claim: str
    verdict: str
    figures: str


Rows = dict[tuple[str, str], dict[str, float]]
Check = Callable[[Rows], tuple[str, str] | None]


def conclusions(results: Mapping[str, dict[str, Any]]) -> list[Verdict]:
    """Verdicts of all experiments in `results` that have the rows for them."""
    found = []
    for experiment, claim, check in CHECKS:
        if experiment not in results:
            continue
        outcome = check(accuracies(results[experiment]))
        if outcome is not None:
            found.append(Verdict(experiment, claim, *outcome))
    return found


def accuracies(result: dict[str, Any]) -> Rows:
    """Accuracy at 1 % with shared samples, as the paper measures it, by setting and label."""
    return {
        (row["setting"], row["label"]): row["shared"]["acc_1"]
        for row in result["rows"]
        if row.get("shared")
    }


def above(rows: Rows, *, what: str = "human", first: str, second: str) -> tuple[str, str] | None:
    """Whether the first row is better than the second."""
    if (what, first) not in rows or (what, second) not in rows:
        return None
    better, worse = rows[what, first], rows[what, second]
    told = f"{first}: {better['mean']:.1f}; {second}: {worse['mean']:.1f}"
    difference = better["mean"] - worse["mean"]
    if abs(difference) <= threshold(better, worse):
        return "no clear difference", told
    return ("holds" if difference > 0 else "does not hold"), told


def alike(rows: Rows, *, what: str = "human", first: str, second: str) -> tuple[str, str] | None:
    """Whether two rows hardly differ."""
    outcome = above(rows, what=what, first=first, second=second)
    if outcome is None:
        return None
    verdict, told = outcome
    return ("holds" if verdict == "no clear difference" else "does not hold"), told


def best(rows: Rows, *, what: str = "human", first: str) -> tuple[str, str] | None:
    """Whether a row is better than all others of its setting."""
    if (what, first) not in rows or len(rows) < 2:
        return None
    others = {label: value for (setting, label), value in rows.items() if setting == what}
    own = others.pop(first)
    label, rival = max(others.items(), key=lambda item: item[1]["mean"])
    told = f"{first}: {own['mean']:.1f}; best of the others, {label}: {rival['mean']:.1f}"
    difference = own["mean"] - rival["mean"]
    if abs(difference) <= threshold(own, rival):
        return "no clear difference", told
    return ("holds" if difference > 0 else "does not hold"), told


def threshold(first: dict[str, float], second: dict[str, float]) -> float:
    """Difference of accuracies that must be exceeded to count."""
    return max(LEAST, 2 * (first["std"] ** 2 + second["std"] ** 2) ** 0.5)


def _in_both(experiment: str, claim: str, first: str, second: str) -> list[tuple[str, str, Check]]:
    return [
        (experiment, f"{claim}, {name}", partial(above, what=what, first=first, second=second))
        for what, name in SETS.items()
    ]


#: What is checked: the experiment, the paper's conclusion, and how it is decided.
CHECKS: list[tuple[str, str, Check]] = [
    *_in_both("main", "LTENet is more accurate than DPC", "LTENet", "DPC"),
    *(
        check
        for what, levels in NOISES.items()
        for level in levels[1:]
        for check in _in_both(
            "noise",
            f"LTENet is above DPC at noise {level:g}",
            f"LTENet, noise {level:g}",
            f"DPC, noise {level:g}",
        )
        if SETS[what] in check[1]
    ),
    (
        "local-linearity",
        "DPC needs the smoothness term",
        partial(above, first="DPC", second="DPC without E_r"),
    ),
    (
        "local-linearity",
        "LTENet hardly needs it",
        partial(alike, first="LTENet", second="LTENet without E_r"),
    ),
    *_in_both(
        "linear",
        "the optimal linear map improves LTENet",
        f"LTENet, {_OPTIMAL}",
        f"LTENet, {_LEARNED}",
    ),
    *_in_both(
        "linear",
        "(ours) it improves LTENet on points it was not fitted to",
        f"LTENet, {_HALF}",
        f"LTENet, {_LEARNED}",
    ),
    *_in_both(
        "linear",
        "(ours) it fits LTENet better than an untrained network",
        f"LTENet, {_OPTIMAL}",
        f"untrained, {_OPTIMAL}",
    ),
    (
        "linear",
        "it improves DPC, SHREC'19",
        partial(above, first=f"DPC, {_OPTIMAL}", second=f"DPC, {_LEARNED}"),
    ),
    (
        "linear",
        "it harms DPC, TOSCA",
        partial(above, what="animal", first=f"DPC, {_LEARNED}", second=f"DPC, {_OPTIMAL}"),
    ),
    (
        "design",
        "cross-reconstruction contributes most",
        partial(above, first="cross", second="self"),
    ),
    (
        "design",
        "Cauchy-Schwarz is better than Chamfer",
        partial(above, first="full", second="Chamfer"),
    ),
    (
        "design",
        "Cauchy-Schwarz is better than earth mover's",
        partial(above, first="full", second="earth mover's"),
    ),
    ("sigma", "a bandwidth of 0.01 is best", partial(best, first="sigma 0.01")),
    ("neighbors", "K = 10 is best", partial(best, first="K = 10")),
    (
        "dimension",
        "512 channels are better than 32",
        partial(above, first="D = 512", second="D = 32"),
    ),
    (
        "dimension",
        "1024 channels are hardly better than 512",
        partial(alike, first="D = 1024", second="D = 512"),
    ),
    (
        "size",
        "230,000 shapes are hardly better than 2,000",
        partial(alike, first="full, 230,000 shapes", second="full, 2,000 shapes"),
    ),
]
