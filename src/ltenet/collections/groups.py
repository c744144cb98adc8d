"""Where groups of shapes differ: a permutation test at each vertex, corrected for their number.

The statistic at a vertex is Goodall's F [Goodall 1991]: the variance between the groups' mean
positions over the variance within the groups. Labels are exchanged at random to learn what chance
gives. The largest F over all vertices controls the family-wise error [Nichols & Holmes 2002]; the
procedure of Benjamini and Hochberg [1995] controls the false discovery rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray

#: Fewest specimens of a group.
_LEAST = 2
#: Permutations evaluated at a time.
_BLOCK = 32


class GroupDifference(NamedTuple):
    """Result of the test at each vertex.

    Attributes
    ----------
    names
        The groups, sorted.
    means
        (g, V, 3) mean shape of each.
    statistic
        (V,) Goodall's F.
    p_values
        (V,) uncorrected.
    family_wise
        (V,) corrected by the largest statistic.
    discovery
        (V,) corrected for the false discovery rate.
    overall
        p-value of the hypothesis that the groups differ nowhere.
    """

    names: tuple[str, ...]
    means: FloatArray
    statistic: FloatArray
    p_values: FloatArray
    family_wise: FloatArray
    discovery: FloatArray
    overall: float


def group_difference(
    aligned: FloatArray, groups: Sequence[str], *, permutations: int = 1000, seed: int = 0
) -> GroupDifference:
    """Test at each vertex of (n, V, 3) aligned shapes whether `groups`, one name each, differ."""
    names = tuple(sorted(set(groups)))
    labels = np.array([names.index(group) for group in groups])  # (n,)
    counts = np.bincount(labels, minlength=len(names))  # (g,)
    if len(names) < 2 or counts.min() < _LEAST:
        sizes = ", ".join(f"{name} ({count})" for name, count in zip(names, counts, strict=True))
        raise InputError(
            f"groups: got {sizes}, expected at least two groups with {_LEAST} specimens each; "
            "try leaving out small groups"
        )
    rows = (aligned - aligned.mean(axis=0)).reshape(len(aligned), -1)  # (n, 3V)
    total = _per_vertex(np.square(rows).sum(axis=0))  # (V,)
    real = _statistic(rows, total, labels[None], counts)[0]  # (V,)
    rng = np.random.default_rng(seed)
    at_least = np.ones(len(real))  # the real labels are one of the permutations
    largest = []
    for start in range(0, permutations, _BLOCK):
        size = min(_BLOCK, permutations - start)
        mixed = np.stack([rng.permutation(labels) for _ in range(size)])  # (b, n)
        chance = _statistic(rows, total, mixed, counts)  # (b, V)
        at_least += (chance >= real * (1 - 1e-12)).sum(axis=0)
        largest.append(chance.max(axis=1))
    extremes = np.concatenate(largest) if largest else np.zeros(0)  # (P,)
    p_values = at_least / (permutations + 1)  # (V,)
    above = len(extremes) - np.searchsorted(np.sort(extremes), real * (1 - 1e-12))  # (V,)
    family_wise = (1 + above) / (permutations + 1)  # (V,)
    means = np.stack([aligned[labels == number].mean(axis=0) for number in range(len(names))])
    return GroupDifference(
        names,
        means,
        real,
        p_values,
        family_wise,
        benjamini_hochberg(p_values),
        float(family_wise.min()),
    )


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjust (V,) p-values: rejecting those below q keeps the false discovery rate below q."""
    count = len(p_values)
    order = np.argsort(p_values)[::-1]  # largest first
    scaled = p_values[order] * count / np.arange(count, 0, -1)  # (V,)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return adjusted


def _statistic(
    rows: FloatArray, total: FloatArray, labels: IntArray, counts: IntArray
) -> FloatArray:
    """Goodall's F (b, V) for each of (b, n) labellings of (n, 3V) centred rows."""
    between = np.zeros((len(labels), rows.shape[1] // 3))  # (b, V)
    for number, count in enumerate(counts):
        sums = (labels == number).astype(np.float64) @ rows  # (b, 3V)
        between += _per_vertex(np.square(sums)) / count
    within = np.maximum(total - between, 1e-12 * np.maximum(total, 1e-300))  # (b, V)
    groups, specimens = len(counts), labels.shape[1]
    statistic: FloatArray = (between / (groups - 1)) / (within / (specimens - groups))
    return statistic


def _per_vertex(values: FloatArray) -> FloatArray:
    """Sum (..., 3V) over the coordinates of each vertex: (..., V)."""
    summed: FloatArray = values.reshape(*values.shape[:-1], -1, 3).sum(axis=-1)
    return summed
