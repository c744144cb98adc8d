"""Figures of a benchmark on whole meshes: at listed points, and at landmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ltenet.evaluation.bench.mesh_scoring import CURVE, ListedScores
from ltenet.evaluation.bench.pair_statistics import by_seed, order_statistics, spread_of
from ltenet.evaluation.bench.scoring import PairScores

_LISTED_UNITS = {
    "geodesic": "distance along the target's edges, % of sqrt(area): mean over all listed points "
    "of all pairs; median and mean of the worst tenth of the pairs",
    "geodesic_curve": "% of listed points within the tolerance, in units of sqrt(area)",
    "flips_percent": "% of pairs with most points nearer to the mirror image of their truth",
    "limb_swaps_percent": "% of pairs with 5 to 50 % of such points",
}
_LANDMARK_UNITS = {
    "landmark_percent": "mean distance of a pair's landmarks from the truth, % of the target's "
    "diameter: mean, median and worst tenth of the pairs",
    "landmark_percent_symmetric": "the same against the better side of a symmetric class",
}


def listed_figures(scores: Sequence[PairScores]) -> dict[str, Any]:
    """Geodesic error, curve and flips; the same without pairs of a shape with itself."""
    figures = _listed(scores) | {"geodesic_curve": geodesic_curve(scores)}
    others = [score for score in scores if not _own(score).identity]
    if others and len(others) < len(scores):
        figures["without_identities"] = _listed(others) | {"pairs": len({s.pair for s in others})}
    return figures


def landmark_figures(scores: Sequence[PairScores]) -> dict[str, Any]:
    """Landmark errors overall and by class."""
    classes = {
        name: _landmarks(own) | {"pairs": len({score.pair for score in own})}
        for name in sorted({score.category for score in scores})
        if (own := [score for score in scores if score.category == name])
    }
    return _landmarks(scores) | {"classes": classes}


def geodesic_curve(scores: Sequence[PairScores]) -> dict[str, list[float]]:
    """Share (%) of all listed points within each tolerance."""
    within = np.sum([_own(score).within for score in scores], axis=0)  # (40,)
    points = sum(_own(score).points for score in scores)
    percent = 100 * within / points
    return {"tolerance": CURVE.round(6).tolist(), "percent": percent.round(4).tolist()}


def mesh_row(score: PairScores) -> dict[str, Any]:
    """Columns of one pair in the table of pairs."""
    if score.listed is not None:
        listed = score.listed
        return {
            "geodesic": listed.geodesic,
            "flipped": listed.flipped,
            "flip": listed.flip,
            "limb_swap": listed.limb_swap,
        }
    if score.landmarks is not None:
        landmarks = score.landmarks
        return {
            "landmark_percent": landmarks.plain,
            "landmark_percent_symmetric": landmarks.symmetric,
        }
    return {}


def mesh_units(score: PairScores) -> dict[str, str]:
    """Units of the figures that a protocol adds."""
    if score.listed is not None:
        return _LISTED_UNITS
    return {} if score.landmarks is None else _LANDMARK_UNITS


def _listed(scores: Sequence[PairScores]) -> dict[str, Any]:
    by_pair = by_seed(scores, lambda score: _own(score).geodesic)
    counts = by_seed(scores, lambda score: _own(score).points)
    pooled = [np.average(own, weights=points) for own, points in zip(by_pair, counts, strict=True)]
    return {
        "geodesic": spread_of(pooled) | order_statistics(by_pair),
        "flips_percent": _share(scores, lambda score: _own(score).flip),
        "limb_swaps_percent": _share(scores, lambda score: _own(score).limb_swap),
    }


def _landmarks(scores: Sequence[PairScores]) -> dict[str, Any]:
    def statistics(name: str) -> dict[str, float]:
        by_pair = by_seed(scores, lambda score: getattr(score.landmarks, name))
        return spread_of([own.mean() for own in by_pair]) | order_statistics(by_pair)

    return {
        "landmark_percent": statistics("plain"),
        "landmark_percent_symmetric": statistics("symmetric"),
    }


def _share(
    scores: Sequence[PairScores], known: Callable[[PairScores], bool | None]
) -> float | None:
    """Share (%) of pairs for which something holds; None where nobody can tell."""
    found = [value for score in scores if (value := known(score)) is not None]
    return 100 * float(np.mean(found)) if found else None


def _own(score: PairScores) -> ListedScores:
    assert score.listed is not None
    return score.listed
