"""Prepared shapes on disk: read, oriented and embedded once, matched in any later process.

A file holds the shape, its sample, its plausible orientations and the raw output of the network for
every part, in float32. A prepared shape that is read gives the same maps, bit for bit, as the one
that was written. No pickles; a file appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltenet import __version__
from ltenet.files import atomic_path
from ltenet.io.formats.arrays import read_archive
from ltenet.matching.cleaning import Cleaned, reflected
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import PreparedShape, may_know
from ltenet.matching.networks import Networks
from ltenet.matching.orientation import FILE, Frame
from ltenet.matching.outliers import part_of
from ltenet.matching.preparation import Prepared
from ltenet.matching.sample import Sample
from ltenet.shape import Shape

#: Number of the file format; part of `preparation_digest`.
_FORMAT = 3
#: Files of a folder of weights that decide about a match.
_WEIGHTS = ("config.json", "model.safetensors", "calibration.json", FILE)
#: Options that change what `prepare` makes of a shape.
_OPTIONS = ("points", "orient", "seed")


def weights_digest(networks: Sequence[Networks]) -> str:
    """SHA-256 of names and contents of the weights."""
    digest = sha256()
    for one in networks:
        digest.update(one.name.encode())
        for file in (one.folder / name for name in _WEIGHTS):
            if file.is_file():
                digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def preparation_digest(config: MatchConfig, networks: Sequence[Networks]) -> str:
    """Hash everything but the shape that a prepared shape depends on."""
    options = [getattr(config, name) for name in _OPTIONS]
    text = repr((_FORMAT, __version__, options, weights_digest(networks)))
    return sha256(text.encode()).hexdigest()


def write_prepared(
    path: Path, prepared: PreparedShape, networks: Sequence[Networks], *, mirror: bool = False
) -> None:
    """Embed what is not embedded yet and write it; a file that is there is replaced.

    `mirror` says whether the shape was reflected.

    Weights that do not know the kind of the shape are left out, and those that compare shapes in a
    common frame, which depends on the other shape: these are embedded on demand.
    """
    sample = prepared[0][0].sample
    given = sample.cleaned.given
    arrays: dict[str, Any] = {
        "points": given.points,
        "inliers": sample.cleaned.inliers,
        "mirror": np.array(int(mirror)),
        "rows": sample.rows,
        "part_sizes": np.array([len(part) for part in sample.parts]),
        "parts": np.concatenate(sample.parts),
    }
    if given.faces is not None:
        arrays["faces"] = given.faces
    if sample.graph is not None:
        graph = csr_array(sample.graph)
        arrays |= {
            "graph_data": graph.data,
            "graph_indices": graph.indices,
            "graph_starts": graph.indptr,
        }
    for number, (one, orientations) in enumerate(zip(networks, prepared, strict=True)):
        arrays[f"matrices_{number}"] = np.stack([way.matrix for way in orientations])  # (o, 4, 4)
        frames = [way.frame for way in orientations if way.frame is not None]
        if frames:
            arrays[f"rotations_{number}"] = np.stack([frame.rotation for frame in frames])
            arrays[f"certainties_{number}"] = np.array([frame.certainty for frame in frames])
            arrays[f"kinds_{number}"] = np.array([frame.kinds for frame in frames])
        if one.relative or not may_know(one, orientations[0]):
            continue
        for way, side in enumerate(orientations):
            arrays[f"features_{number}_{way}"] = torch.cat(
                [side.part_features(part) for part in range(len(sample.parts))]
            ).numpy()  # (n, D), in the order of `parts`
    with atomic_path(path, force=True) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays)


def read_prepared(path: Path, networks: Sequence[Networks], *, name: str) -> PreparedShape:
    """Read what `write_prepared` wrote with the same networks; `name` is the shape's name."""
    arrays = read_archive(path)
    given = Shape(arrays["points"], arrays.get("faces"), name=name)
    part = part_of(given, arrays["inliers"])
    cleaned = Cleaned(given, arrays["inliers"], reflected(part) if int(arrays["mirror"]) else part)
    ends = np.cumsum(arrays["part_sizes"])[:-1]  # (parts - 1,)
    parts = tuple(np.split(arrays["parts"].copy(), ends))  # torch wants writable arrays
    graph = None
    if "graph_data" in arrays:
        size = len(arrays["rows"])
        contents = (arrays["graph_data"], arrays["graph_indices"], arrays["graph_starts"])
        graph = csr_array(contents, shape=(size, size))
    prepared = []
    for number, one in enumerate(networks):
        sample = Sample(cleaned, one.model, arrays["rows"], parts)
        sample.__dict__["graph"] = graph  # what its cached property would compute again
        prepared.append(
            tuple(
                Prepared(
                    sample,
                    matrix,
                    _frame(arrays, number, way),
                    _features(arrays.get(f"features_{number}_{way}"), ends),
                )
                for way, matrix in enumerate(arrays[f"matrices_{number}"])
            )
        )
    return tuple(prepared)


def _frame(arrays: Mapping[str, NDArray[Any]], number: int, way: int) -> Frame | None:
    if f"rotations_{number}" not in arrays:
        return None
    kinds = tuple(float(kind) for kind in arrays[f"kinds_{number}"][way])
    certainty = float(arrays[f"certainties_{number}"][way])
    return Frame(arrays[f"rotations_{number}"][way], certainty, kinds)


def _features(stacked: NDArray[Any] | None, ends: NDArray[Any]) -> dict[int, torch.Tensor]:
    """Embeddings (p, D) of each part from those of all."""
    if stacked is None:
        return {}
    return {part: torch.tensor(rows) for part, rows in enumerate(np.split(stacked, ends))}
