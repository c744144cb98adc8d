"""Checks of a map: its arrays fit together, and shapes belong to it."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike

from ltenet.correspondence.algebra import UNMATCHED, MapArrays
from ltenet.errors import InputError
from ltenet.geometry.arrays import IntArray
from ltenet.shape import Shape, frozen

logger = logging.getLogger(__name__)


def checked_arrays(arrays: MapArrays, target_size: int) -> MapArrays:
    """Return read-only int64 and float64 arrays that fit together; raise if they do not."""
    indices = frozen(_integers("indices", arrays.indices, target_size))
    if indices.ndim != 1:
        raise InputError(
            f"correspondence: got indices of shape {indices.shape}, expected (N,); "
            "try neighbors and weights for soft partners"
        )
    scores = None
    if arrays.scores is not None:
        scores = frozen(np.asarray(arrays.scores, dtype=np.float64))
        if scores.shape != indices.shape or not ((scores >= 0) & (scores <= 1)).all():
            raise InputError(
                f"correspondence: got scores of shape {scores.shape} for {len(indices)} points, "
                "expected one from 0 to 1 for each; try leaving them out"
            )
    if arrays.neighbors is None and arrays.weights is None:
        return MapArrays(indices, scores)
    if arrays.neighbors is None or arrays.weights is None:
        raise InputError(
            "correspondence: got only one of neighbors and weights, expected both or neither; "
            "try leaving out the other one"
        )
    neighbors = frozen(_integers("neighbors", arrays.neighbors, target_size, lowest=0))
    weights = frozen(np.asarray(arrays.weights, dtype=np.float64))
    if neighbors.ndim != 2 or len(neighbors) != len(indices) or weights.shape != neighbors.shape:
        raise InputError(
            f"correspondence: got neighbors {neighbors.shape} and weights {weights.shape} for "
            f"{len(indices)} points, expected (N, K) for both; try one row per point"
        )
    nothing = (weights == 0).all(axis=1) & (indices == UNMATCHED)  # (N,)
    if not (np.isclose(weights.sum(axis=1), 1.0, atol=1e-4) | nothing).all():
        raise InputError(
            "correspondence: got rows of weights with other sums, expected each to sum to 1; "
            "try dividing each row by its sum"
        )
    return MapArrays(indices, scores, neighbors, weights)


def check_size(role: str, shape: Shape | None, size: int) -> None:
    """Raise if a shape has another size than the map's `role`, "source" or "target"."""
    if shape is not None and len(shape) != size:
        raise InputError(
            f"{shape.name}: got {len(shape)} points as the {role}, expected the map's {size}; "
            "try the shapes in the other order, or those that the map belongs to"
        )


def warn_of_other_hash(what: str, known: str | None, found: str | None) -> None:
    """Warn if both hashes are known and differ."""
    if known is not None and found is not None and known != found:
        logger.warning(
            "%s is not the shape that was matched (hash %s, not %s); the sizes agree, so it is "
            "used: check that its points are in the same order",
            what,
            found,
            known,
        )


def _integers(name: str, values: ArrayLike, size: int, *, lowest: int = UNMATCHED) -> IntArray:
    """Int64 values, all from `lowest` to `size` - 1."""
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"correspondence: got {name} of type {array.dtype}, expected integers; "
            "try rounding them"
        )
    if array.size and (array.min() < lowest or array.max() >= size):
        raise InputError(
            f"correspondence: got {name} from {array.min()} to {array.max()}, expected "
            f"{lowest} to {size - 1}; try the target that the map belongs to"
        )
    return array.astype(np.int64)
