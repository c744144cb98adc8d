"""Predictions on disk: each made once, filed under the hash of everything it depends on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, LTENetError
from ltenet.evaluation.bench.memory import with_peak_memory
from ltenet.evaluation.bench.provenance import prediction_key
from ltenet.evaluation.peers.table import PairMatcher
from ltenet.files import atomic_path
from ltenet.io.formats.arrays import read_archive
from ltenet.shape import Shape

#: Environment variable with the folder of cached predictions.
CACHE_VARIABLE = "LTENET_CACHE"


class Prediction(NamedTuple):
    """A map, and how long it took.

    Attributes
    ----------
    map
        From source to target.
    seconds
        Wall time without loading and drawing.
    memory
        Most megabytes in use on top of those before; None if not known.
    matched
        (N,) whether the method gave a point a partner; None if it gave every point one. In `map`
        every point has one.
    """

    map: Correspondence
    seconds: float
    memory: float | None = None
    matched: NDArray[np.bool_] | None = None


class PredictionCache:
    """A folder of predictions; several processes may use it at once.

    Parameters
    ----------
    folder
        Created with the first prediction. Its contents may be deleted at any time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(
        self,
        method: Callable[[], PairMatcher],
        record: Mapping[str, Any],
        source: Shape,
        target: Shape,
    ) -> Prediction:
        """Return the prediction on file, or predict and file it.

        Parameters
        ----------
        method
            Returns the method; called only if there is something to predict.
        record
            Its `method_record`.
        source, target
            Shapes as the method sees them.
        """
        key = prediction_key(record, source, target)
        path = self.folder / key[:2] / f"{key}.npz"
        found = _read(path, len(source), len(target))
        if found is not None:
            return found
        match = method()
        start = time.perf_counter()
        correspondence, memory = with_peak_memory(lambda: match(source, target))
        seconds = time.perf_counter() - start
        complete = _complete(correspondence, source, target)
        matched = None if correspondence.matched.all() else correspondence.matched  # (N,)
        _write(path, Prediction(complete, seconds, memory, matched))
        written = _read(path, len(source), len(target))
        assert written is not None  # scores use the stored precision, also the first time
        return written


def default_cache() -> Path:
    """Folder for predictions: LTENET_CACHE, else in the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "ltenet" / "predictions"


def _complete(correspondence: Correspondence, source: Shape, target: Shape) -> Correspondence:
    """Give every point a partner, because all are scored.

    A point that the method leaves unmatched gets its strongest neighbour, and an outlier, which has
    no neighbours, those of the nearest point that has.
    """
    sizes = len(correspondence), correspondence.target_size
    if sizes != (len(source), len(target)):
        raise InputError(
            f"got a map of {sizes[0]} onto {sizes[1]} points, expected {len(source)} onto "
            f"{len(target)}; try a method that keeps the points of its shapes"
        )
    left_out = ~correspondence.matched  # (N,)
    if not left_out.any():
        return correspondence
    if correspondence.neighbors is None or correspondence.weights is None:
        raise InputError(
            f"got {left_out.sum()} of {len(source)} points without a partner, expected one for "
            "every point, because all are scored; try a threshold of 0"
        )
    known = correspondence.weights.sum(axis=1) > 0  # (N,)
    rows = np.flatnonzero(known)  # (P,)
    stand_in = np.arange(len(source))  # (N,)
    if len(rows) and not known.all():
        stand_in[~known] = rows[KDTree(source.points[rows]).query(source.points[~known])[1]]
    neighbors, weights = correspondence.neighbors[stand_in], correspondence.weights[stand_in]
    nearest = neighbors[np.arange(len(source)), weights.argmax(axis=1)]  # (N,)
    indices = np.where(left_out, nearest, correspondence.indices)  # (N,)
    return replace(correspondence, indices=indices, neighbors=neighbors, weights=weights)


def _write(path: Path, prediction: Prediction) -> None:
    correspondence = prediction.map
    arrays: dict[str, Any] = {
        "indices": correspondence.indices.astype(np.int32),
        "seconds": np.array(prediction.seconds),
    }
    if prediction.memory is not None:
        arrays["memory"] = np.array(prediction.memory)
    if correspondence.neighbors is not None and correspondence.weights is not None:
        arrays["neighbors"] = correspondence.neighbors.astype(np.int32)
        arrays["weights"] = correspondence.weights.astype(np.float32)
    if prediction.matched is not None:
        arrays["matched"] = prediction.matched
    if correspondence.scores is not None:
        arrays["scores"] = correspondence.scores.astype(np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path, force=True) as temporary:
        np.savez_compressed(temporary, **arrays)


def _read(path: Path, source_size: int, target_size: int) -> Prediction | None:
    """Read a prediction; None if there is no usable one."""
    if not path.is_file():
        return None
    try:
        arrays: dict[str, Any] = dict(read_archive(path))
        correspondence = Correspondence(
            indices=arrays["indices"],
            target_size=target_size,
            neighbors=arrays.get("neighbors"),
            weights=arrays.get("weights"),
            scores=arrays.get("scores"),
        )
        seconds = float(arrays["seconds"])
        memory = float(arrays["memory"]) if "memory" in arrays else None
    except (LTENetError, KeyError, TypeError, ValueError):
        return None  # damaged, so made again
    found = Prediction(correspondence, seconds, memory, arrays.get("matched"))
    return found if len(correspondence) == source_size else None
