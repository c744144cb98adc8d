"""How likely a match is right: evidence that needs no truth, weighed into a probability.

Right means within 5 % of the target's diameter. A point that has no partner because that part of
the target is missing still gets a place, but the evidence gives it away: its feature is unlike any
other, the way back leads elsewhere, and many neighbours are squeezed into one place. The weights
were fitted on generated shapes whose truth is known (some with parts cut off), and belong to the
network.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.neighbors import cosine_topk, knn_graph
from ltenet.refinement import EmbeddedPair, RefinedMap
from ltenet.shape import FloatArray
from ltenet.transport import nearest_points

#: File of the calibration beside the weights that it belongs to.
FILE = "calibration.json"
#: Distance up to which a match is right, of the target's diameter.
RIGHT = 0.05
#: What the columns of the evidence are.
COLUMNS = ("refinement", "best_likeness", "likeness", "round_trip", "stretch", "squeeze")
#: Neighbours whose evidence is averaged: they share their fate.
_NEIGHBORS = 10
#: Lengths below this are noise of the sampling.
_BLUR = 0.02


@torch.no_grad()
def evidence(pair: EmbeddedPair, refined: RefinedMap) -> FloatArray:
    """(N, 6) what speaks for each match, see `COLUMNS`."""
    source, places = pair.source_points, refined.positions  # (N, 3), (N, 3)
    landed = nearest_points(places, pair.target_points, 1).indices[:, 0]  # (N,)
    best = cosine_topk(pair.source_features, pair.target_features, 1).scores[:, 0]  # (N,)
    back = cosine_topk(pair.target_features, pair.source_features, 1).indices[:, 0]  # (M,)
    likeness = F.cosine_similarity(pair.source_features, pair.target_features[landed])  # (N,)
    trip = (source - source[back[landed]]).norm(dim=1)  # (N,)
    neighbors = knn_graph(source, min(_NEIGHBORS + 1, len(source)))[:, 1:]  # (N, k)
    before = _distances(source, neighbors)  # (N, k)
    after = _distances(places, neighbors)  # (N, k)
    stretch = ((after + _BLUR) / (before + _BLUR)).log()  # (N, k)
    columns = torch.stack(
        [
            refined.confidence.to(source),
            best,
            likeness,
            (trip + _BLUR).log(),
            stretch.abs().mean(dim=1),
            stretch.mean(dim=1),
        ],
        dim=1,
    )  # (N, 6)
    return columns[neighbors].mean(dim=1).double().numpy()


def _distances(points: Tensor, neighbors: Tensor) -> Tensor:
    distances: Tensor = (points[neighbors] - points[:, None]).norm(dim=2)  # (N, k)
    return distances


@dataclass(frozen=True)
class Calibration:
    """A logistic model of the evidence, and a monotone curve from its values to probabilities.

    Attributes
    ----------
    weights
        One for each of `COLUMNS`.
    bias
        Added to the weighted evidence.
    values
        Rising values of the model, from 0 to 1.
    probabilities
        What share of the matches with such a value was right.
    """

    weights: tuple[float, ...] = (4.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    bias: float = -2.0
    values: tuple[float, ...] = (0.0, 1.0)
    probabilities: tuple[float, ...] = (0.0, 1.0)

    def __post_init__(self) -> None:
        values, shares = np.asarray(self.values), np.asarray(self.probabilities)
        fine = len(self.weights) == len(COLUMNS) and len(values) == len(shares) >= 2
        fine = fine and bool((np.diff(values) > 0).all() and (np.diff(shares) >= 0).all())
        if not fine or shares[0] < 0 or shares[-1] > 1:
            raise InputError(
                f"a calibration with {len(self.weights)} weights, {len(values)} values and "
                f"{len(shares)} probabilities came; {len(COLUMNS)} weights and two rising lists of "
                "one length, the second from 0 to 1, are needed; calibrate again"
            )

    def estimate(self, columns: FloatArray) -> FloatArray:
        """(N, 6) evidence -> (N,) probability that the match is right."""
        logits = columns @ np.asarray(self.weights) + self.bias  # (N,)
        values = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))  # (N,)
        estimates: FloatArray = np.interp(values, self.values, self.probabilities)
        return estimates

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the calibration into the folder of the weights that it belongs to."""
        with atomic_path(Path(folder) / FILE, force=force) as path:
            path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Calibration:
        """Read the calibration of a folder of weights; a plain guess if these have none."""
        path = Path(folder) / FILE
        if not path.is_file():
            return cls()
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                tuple(fields["weights"]),
                float(fields["bias"]),
                tuple(fields["values"]),
                tuple(fields["probabilities"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}: the calibration cannot be read ({error}); the file that came with the "
                "weights is needed; copy the folder again"
            ) from None
