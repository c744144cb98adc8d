"""Statistics of a set of shapes: what `ltenet data info` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ltenet.data.shapeset import ShapeSet
from ltenet.data.statistics import Measures, measure
from ltenet.data.surface_distances import LEVELS
from ltenet.geometry.arrays import FloatArray

_REPORTED = (("p10", 0.1), ("p50", 0.5), ("p90", 0.9))


def choose_shapes(indices: Sequence[int], count: int, *, seed: int) -> list[int]:
    """At most `count` of the indices, in order; the same for the same seed."""
    if len(indices) <= count:
        return list(indices)
    rng = np.random.default_rng(seed)
    return sorted(int(index) for index in rng.choice(indices, count, replace=False))


def measure_set(shapes: ShapeSet, indices: Iterable[int], *, seed: int = 0) -> list[Measures]:
    """Measure some shapes of a set; each by its index and the seed alone."""
    return [
        measure(
            shapes.shape(index),
            np.random.default_rng([seed, index, 1]),
            surface=shapes.surface(index),
        )
        for index in indices
    ]


def describe_set(
    shapes: ShapeSet, indices: Sequence[int], measures: Sequence[Measures]
) -> dict[str, Any]:
    """All figures of a set as plain values, for JSON.

    Parameters
    ----------
    shapes
        The set.
    indices
        Which of its shapes were measured.
    measures
        Their measures.
    """
    kinds = getattr(shapes, "kinds", None)
    measured = [shapes.shape(index) for index in indices]
    vertices = [len(shape) for shape in measured]
    faces = [0 if shape.faces is None else len(shape.faces) for shape in measured]
    extents = np.median([np.ptp(shape.points, axis=0) for shape in measured], axis=0)  # (3,)
    return {
        "name": shapes.name,
        "shapes": len(shapes),
        "measured": len(indices),
        "pairs": len(shapes.pairs),
        "sizes": {
            "vertices": [min(vertices), max(vertices)],
            "faces": [min(faces), max(faces)],
        },
        "categories": _counts(shapes.categories[index] for index in indices),
        "poses": {} if kinds is None else _counts(kinds[index] for index in indices),
        "extents": [_rounded(side) for side in extents],
        "measures": summarize(measures),
        "spread": {
            "distances": _optional(spread([m.distances for m in measures])),
            "geodesics": _optional(spread(_present([m.geodesics for m in measures]))),
        },
    }


def summarize(measures: Sequence[Measures]) -> dict[str, dict[str, float]]:
    """Mean, standard deviation and 5th and 95th percentile of each measure over the shapes."""
    rows = [_scalars(one) for one in measures]
    result = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row[name] for row in rows if name in row]
        result[name] = {
            "mean": _rounded(np.mean(values)),
            "sd": _rounded(np.std(values)),
            "p5": _rounded(np.percentile(values, 5)),
            "p95": _rounded(np.percentile(values, 95)),
        }
    return result


def spread(quantiles: Sequence[FloatArray]) -> float | None:
    """Mean Wasserstein distance between two different shapes of a set; None for fewer than two."""
    if len(quantiles) < 2:
        return None
    between = wasserstein_distances(quantiles, quantiles)  # (N, N)
    return float(between.sum() / (len(quantiles) * (len(quantiles) - 1)))


def wasserstein_distances(first: Sequence[FloatArray], second: Sequence[FloatArray]) -> FloatArray:
    """(N, M) Wasserstein distances between (Q,) quantile functions."""
    one, other = np.stack(first), np.stack(second)  # (N, Q), (M, Q)
    distances: FloatArray = np.abs(one[:, None] - other[None]).mean(axis=2)  # (N, M)
    return distances


def _scalars(measures: Measures) -> dict[str, float]:
    """Name -> value of what is reported about one shape."""
    values = {"radius": measures.radius}
    if measures.area is not None:
        values["area"] = measures.area
    values |= {f"axis_{k + 1}": float(axis) for k, axis in enumerate(measures.axes)}
    for name in ("distances", "geodesics", "thickness"):
        quantiles = getattr(measures, name)
        if quantiles is not None:
            singular = {"distances": "distance", "geodesics": "geodesic"}.get(name, name)
            values |= {
                f"{singular}_{label}": float(np.interp(level, LEVELS, quantiles))
                for label, level in _REPORTED
            }
    for name in ("vertex_spacing", "area_spacing"):
        found = getattr(measures, name)
        if found is not None:
            values |= {name: found.mean, f"{name}_variation": found.variation}
    return values


def _present(quantiles: Sequence[FloatArray | None]) -> list[FloatArray]:
    return [one for one in quantiles if one is not None]


def _counts(labels: Iterable[str]) -> dict[str, int]:
    return dict(Counter(labels).most_common())


def _rounded(value: Any) -> float:
    """Five significant digits: more would only be noise of the sampling."""
    return float(f"{float(value):.5g}")


def _optional(value: float | None) -> float | None:
    return None if value is None else _rounded(value)
