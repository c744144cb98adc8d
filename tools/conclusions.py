"""Which of the paper's conclusions our figures bear out, decided by the figures alone.

Two rows are compared pair by pair and training seed by training seed: both see the same test pairs,
and runs of one seed begin alike. The uncertainty of their difference is twice its standard error,
over pairs and over training seeds together. A difference counts if it is larger than that and than
one percentage point of acc at 1 %. Trained rows with fewer than two seeds decide nothing, nor do
rows of which none is that much above `CONTROL`, an untrained network in the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ltenet.evaluation.paper.plan import CONTROL
from ltenet.evaluation.paper.plans import NOISES
from ltenet.geometry.arrays import FloatArray

#: Least difference that counts, in percentage points.
LEAST = 1.0
#: Uncertainty, in percentage points, above which equality cannot be told from ignorance.
BLUR = 2.0
SETS = {"human": "SHREC'19", "animal": "TOSCA"}
_OPTIMAL = "optimal linear map (oracle, all points)"
_HALF = "optimal linear map (oracle, tested on the other half)"
_LEARNED = "embedding as it is"
_UNTRAINED = f"{CONTROL}, {_LEARNED}"


class Verdict(NamedTuple):
    """One line of the table.

    Attributes
    ----------
    experiment
        Its name.
    claim
        What the paper concludes.
    verdict
        "holds", "does not hold", "no clear difference" or "undecided".
    figures
        Ours.
    """

    experiment: str
    claim: str
    verdict: str
    figures: str


class Measured(NamedTuple):
    """Accuracies at 1 % of one row, with shared samples.

    Attributes
    ----------
    pairs
        (R, P) in %, by training and test pair; one training for methods that have none.
    seeds
        Of the R trainings; empty for methods that have none.
    own
        Mean on held-back shapes of the kind that training shows, None if not tested.
    """

    pairs: FloatArray
    seeds: tuple[int, ...] = ()
    own: float | None = None

    @property
    def mean(self) -> float:
        """Over trainings and pairs."""
        return float(self.pairs.mean())


Rows = dict[tuple[str, str], Measured]
Check = Callable[[Rows], tuple[str, str] | None]


def conclusions(results: Mapping[str, dict[str, Any]]) -> list[Verdict]:
    """Decide all checks whose rows are in `results`."""
    found = []
    for experiment, claim, check in CHECKS:
        if experiment not in results:
            continue
        outcome = check(accuracies(results[experiment]))
        if outcome is not None:
            found.append(Verdict(experiment, claim, *outcome))
    return found


def accuracies(result: dict[str, Any]) -> Rows:
    """Rows that were measured, by setting and label."""
    rows = {}
    for row in result["rows"]:
        if "acc_1_pairs" not in row.get("shared", ()):
            continue
        own = [test for name, test in row.get("also", {}).items() if name.startswith("generated")]
        rows[row["setting"], row["label"]] = Measured(
            np.array(row["shared"]["acc_1_pairs"]),
            tuple(made["seed"] for made in row["trainings"]),
            own[0]["shared"]["acc_1"]["mean"] if own else None,
        )
    return rows


def above(
    rows: Rows, *, what: str = "human", first: str, second: str, control: str = CONTROL
) -> tuple[str, str] | None:
    """Whether the first row is better than the second."""
    if (what, first) not in rows or (what, second) not in rows:
        return None
    better, worse = rows[what, first], rows[what, second]
    told = f"{_told(first, better)}; {_told(second, worse)}"
    return _verdict(better, worse, rows.get((what, control))), told


def alike(rows: Rows, *, what: str = "human", first: str, second: str) -> tuple[str, str] | None:
    """Whether two rows hardly differ."""
    outcome = above(rows, what=what, first=first, second=second)
    if outcome is None:
        return None
    verdict, told = outcome
    answers = {"undecided": "undecided", "no clear difference": "holds"}
    return answers.get(verdict, "does not hold"), told


def best(
    rows: Rows, *, what: str = "human", first: str, without: tuple[str, ...] = ()
) -> tuple[str, str] | None:
    """Whether a row is better than each of the others of its setting.

    Parameters
    ----------
    rows, what, first
        As in `above`.
    without
        Beginnings of labels that are not among the others.
    """
    others = {
        label: row
        for (setting, label), row in rows.items()
        if setting == what and label not in (first, CONTROL) and not label.startswith(without)
    }
    if (what, first) not in rows or not others:
        return None
    own, control = rows[what, first], rows.get((what, CONTROL))
    verdicts = [_verdict(own, rival, control) for rival in others.values()]
    order = ("does not hold", "undecided", "no clear difference", "holds")
    label, rival = max(others.items(), key=lambda item: item[1].mean)
    told = f"{_told(first, own)}; best of the others, {_told(label, rival)}"
    return min(verdicts, key=order.index), told


def _told(label: str, row: Measured) -> str:
    inside = "" if row.own is None else f" (held back: {row.own:.1f})"
    return f"{label}: {row.mean:.1f}{inside}"


def _verdict(better: Measured, worse: Measured, control: Measured | None) -> str:
    """Compare two rows, unless both are as good as untrained or trained only once."""
    if control is None or not any(_clear(row, control) for row in (better, worse)):
        return "undecided"
    if any(0 < len(row.seeds) < 2 for row in (better, worse)):
        return "undecided"
    difference, uncertainty = compared(better, worse)
    if abs(difference) > max(LEAST, uncertainty):
        return "holds" if difference > 0 else "does not hold"
    return "no clear difference" if uncertainty <= BLUR else "undecided"


def _clear(row: Measured, control: Measured) -> bool:
    """Whether a row is clearly above the control."""
    difference, uncertainty = compared(row, control)
    return difference > max(LEAST, uncertainty)


def compared(first: Measured, second: Measured) -> tuple[float, float]:
    """Difference of two rows and its uncertainty, twice the standard error, in points."""
    differences = _paired(first, second)  # (R, P)
    by_pair, by_seed = differences.mean(axis=0), differences.mean(axis=1)  # (P,), (R,)
    variance = sum(float(own.var(ddof=1)) / len(own) for own in (by_pair, by_seed) if len(own) > 1)
    return float(differences.mean()), 2 * variance**0.5


def _paired(first: Measured, second: Measured) -> FloatArray:
    """(R, P) differences over common training seeds and test pairs."""
    common = [seed for seed in first.seeds if seed in second.seeds]
    if common:
        rows = [[row.seeds.index(seed) for seed in common] for row in (first, second)]
        return first.pairs[rows[0]] - second.pairs[rows[1]]  # (R, P)
    if first.seeds and second.seeds:  # no two of them began alike
        return (first.pairs.mean(axis=0) - second.pairs.mean(axis=0))[None]  # (1, P)
    return first.pairs - second.pairs  # (R, P): one of them has no trainings


def _in_both(
    experiment: str, claim: str, first: str, second: str, control: str = CONTROL
) -> list[tuple[str, str, Check]]:
    rows = {"first": first, "second": second, "control": control}
    return [
        (experiment, f"{claim}, {name}", partial(above, what=what, **rows))
        for what, name in SETS.items()
    ]


#: What is checked: the experiment, the paper's conclusion, and how it is decided.
CHECKS: list[tuple[str, str, Check]] = [
    *_in_both("main", "LTENet is more accurate than DPC", "LTENet", "DPC"),
    *(
        (
            "main",
            f"LTENet is better than all other methods, {name}",
            # Our own weights, trained with labels or by another objective, are not among them, nor
            # is LTENet itself with another training set or with shapes turned upright.
            partial(best, what=what, first="LTENet", without=("weights ", "LTENet, ")),
        )
        for what, name in SETS.items()
    ),
    *(
        check
        for what, levels in NOISES.items()
        for level in levels[1:]
        for check in _in_both(
            "noise",
            f"LTENet is above DPC at noise {level:g}",
            f"LTENet, noise {level:g}",
            f"DPC, noise {level:g}",
            f"{CONTROL}, noise {level:g}",
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
        _UNTRAINED,
    ),
    *_in_both(
        "linear",
        "(ours) it improves LTENet on points it was not fitted to",
        f"LTENet, {_HALF}",
        f"LTENet, {_LEARNED}",
        _UNTRAINED,
    ),
    *_in_both(
        "linear",
        "(ours) it fits LTENet better than an untrained network",
        f"LTENet, {_OPTIMAL}",
        f"{CONTROL}, {_OPTIMAL}",
        _UNTRAINED,
    ),
    (
        "linear",
        "it improves DPC, SHREC'19",
        partial(above, first=f"DPC, {_OPTIMAL}", second=f"DPC, {_LEARNED}", control=_UNTRAINED),
    ),
    (
        "linear",
        "it harms DPC, TOSCA",
        partial(
            above,
            what="animal",
            first=f"DPC, {_LEARNED}",
            second=f"DPC, {_OPTIMAL}",
            control=_UNTRAINED,
        ),
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
