"""How likely a match is right: evidence that needs no truth, combined into a probability.

Right means within 5 % of the target's diameter. A point whose partner is missing from the target
still receives a position, but the evidence gives it away: its feature has no equal, the round trip
ends elsewhere, and many neighbours are squeezed into one place. And where the map is wrong as a
whole (see `verdict`), so are most of its points. The weights of the evidence are fitted on
generated shapes with known truth, some with parts cut off, and belong to the network.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.io.formats.documents import read_json
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import squared_edges
from ltenet.refinement.proposal import RefinedMap

#: File of the calibration, beside the weights it belongs to.
FILE = "calibration.json"
#: Distance up to which a match is right, relative to the target's diameter.
RIGHT = 0.05
#: Columns of the evidence.
COLUMNS = ("refinement", "best_likeness", "likeness", "round_trip", "stretch", "squeeze", "odds")
#: Columns of earlier versions, whose calibrations know no odds of having a partner.
_EARLIER = 6
#: Neighbours whose evidence is averaged: they tend to be right or wrong together.
_NEIGHBORS = 10
#: Log odds of having a partner where nobody tells: typical of points that are matched right.
_UNTOLD = 5.5
#: Lengths below this are sampling noise.
_BLUR = 0.02


@torch.no_grad()
def evidence(pair: Pair, refined: RefinedMap) -> FloatArray:
    """(N, 7) evidence for each match, see `COLUMNS`.

    Where no network tells whether a point has a partner, the odds are those of matched points.
    """
    source, places = pair.source.points, refined.positions  # (N, 3), (N, 3)
    landed = pair.target.nearest(places, 1).indices[:, 0]  # (N,)
    own = torch.arange(len(source))  # (N,)
    neighbors = pair.source.neighbors(_NEIGHBORS + 1)[:, 1:]  # (N, k)
    before = squared_edges(source, neighbors).sqrt()  # (N, k)
    after = squared_edges(places, neighbors).sqrt()  # (N, k)
    stretch = ((after + _BLUR) / (before + _BLUR)).log()  # (N, k)
    columns = torch.stack(
        [
            refined.confidence.to(source),
            pair.best.scores,
            pair.cosines_at(own, landed),
            (pair.round_trip(landed) + _BLUR).log(),
            stretch.abs().mean(dim=1),
            stretch.mean(dim=1),
            torch.full_like(places[:, 0], _UNTOLD)
            if pair.odds is None
            else pair.odds[0].to(source),
        ],
        dim=1,
    )  # (N, 7)
    return columns[neighbors].mean(dim=1).double().numpy()


@dataclass(frozen=True)
class Calibration:
    """A logistic model of the evidence, and a monotone curve from its output to probabilities.

    Attributes
    ----------
    weights
        One for each of `COLUMNS`, and one for the logit of the pair.
    bias
        Added to the weighted evidence.
    values
        Increasing outputs of the model, from 0 to 1.
    probabilities
        Share of right matches at each of these.
    """

    weights: tuple[float, ...] = (4.0, *(0.0,) * len(COLUMNS))
    bias: float = -2.0
    values: tuple[float, ...] = (0.0, 1.0)
    probabilities: tuple[float, ...] = (0.0, 1.0)

    def __post_init__(self) -> None:
        values, shares = np.asarray(self.values), np.asarray(self.probabilities)
        fine = len(self.weights) == len(COLUMNS) + 1 and len(values) == len(shares) >= 2
        fine = fine and bool((np.diff(values) > 0).all() and (np.diff(shares) >= 0).all())
        if not fine or shares[0] < 0 or shares[-1] > 1:
            raise InputError(
                f"got a calibration with {len(self.weights)} weights, {len(values)} values and "
                f"{len(shares)} probabilities, expected {len(COLUMNS) + 1} weights and two rising "
                "lists of equal length, the second from 0 to 1; try calibrating again"
            )

    @property
    def fitted(self) -> bool:
        """Whether this differs from the default for weights without a calibration."""
        return self != Calibration()

    def estimate(self, columns: FloatArray, pair: float | FloatArray) -> FloatArray:
        """(N,) probability that a match is right: (N, 7) evidence, logit () or (N,) of the pair."""
        weights = np.asarray(self.weights)  # (8,)
        logits = columns @ weights[:-1] + weights[-1] * pair + self.bias  # (N,)
        values = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))  # (N,)
        estimates: FloatArray = np.interp(values, self.values, self.probabilities)
        return estimates

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the calibration into a folder of weights."""
        with atomic_path(Path(folder) / FILE, force=force) as path:
            path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Calibration:
        """Read the calibration of a folder of weights; an uncalibrated default if it has none."""
        path = Path(folder) / FILE
        if not path.is_file():
            return cls()
        try:
            fields = read_json(path)
            weights = tuple(fields["weights"])
            if len(weights) == _EARLIER:  # written before pairs were judged
                weights = (*weights, 0.0)
            if len(weights) == _EARLIER + 1:  # written before networks told who has a partner
                weights = (*weights[:_EARLIER], 0.0, weights[_EARLIER])
            return cls(
                weights,
                float(fields["bias"]),
                tuple(fields["values"]),
                tuple(fields["probabilities"]),
            )
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(
                f"{path}: got an unreadable calibration ({error}), expected the file that belongs "
                "to the weights; try copying the folder again"
            ) from None


@lru_cache(maxsize=4)
def read_calibration(folder: Path) -> Calibration:
    """Read the calibration of a folder of weights, once."""
    return Calibration.from_pretrained(folder)
