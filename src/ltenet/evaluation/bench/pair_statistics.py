"""Statistics over pairs: mean, median, worst tenth; mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ltenet.evaluation.bench.scoring import PairScores
from ltenet.geometry.arrays import FloatArray

Spread = dict[str, float]


def by_seed(
    scores: Sequence[PairScores], figure: Callable[[PairScores], float | None]
) -> list[FloatArray]:
    """Figures of the pairs, (P,) for each seed."""
    return [
        np.array([figure(score) for score in scores if score.seed == seed], dtype=np.float64)
        for seed in seeds_of(scores)
    ]


def seeds_of(scores: Sequence[PairScores]) -> list[int]:
    """Seeds in the order in which they come."""
    return list(dict.fromkeys(score.seed for score in scores))


def spread_of(values: Sequence[float] | Sequence[np.floating]) -> Spread:
    """Mean and standard deviation over the seeds."""
    return {"mean": float(np.mean(values)), "std": float(np.std(values))}


def order_statistics(values: Sequence[FloatArray]) -> dict[str, float]:
    """Median of the pairs and mean of the worst tenth of them, each averaged over the seeds.

    Parameters
    ----------
    values
        (P,) figures of the pairs, for each seed; larger is worse.
    """
    return {
        "median": float(np.mean([np.median(own) for own in values])),
        "worst_tenth": float(np.mean([worst_tenth(own) for own in values])),
    }


def worst_tenth(values: FloatArray) -> float:
    """Mean of the largest tenth of (P,) values, at least one of them."""
    count = -(-len(values) // 10)
    return float(np.sort(values)[-count:].mean())
