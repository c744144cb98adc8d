"""Known partners as rows of a few weights: the truth may lie between the drawn points."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.evaluation.peers.landing import triangle_weights
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.training.pair_tensors import PairTensors


class PartnerRows(NamedTuple):
    """Where source points lie among the target points.

    Attributes
    ----------
    rows
        (n,) source points whose place is known.
    indices, weights
        (n, K) target points and their weights, which sum to 1.
    """

    rows: Tensor
    indices: Tensor
    weights: Tensor

    @classmethod
    def of(cls, pair: PairTensors) -> PartnerRows:
        """Find the place on the triangle of the three nearest target points."""
        rows = pair.source_known.nonzero()[:, 0]  # (n,)
        truth = pair.source_truth[rows].detach().cpu().double().numpy()  # (n, 3)
        points = pair.target.detach().cpu().double().numpy()  # (M, 3)
        near = nearest_neighbors(points, truth, 3).indices  # (n, 3)
        weights = triangle_weights(truth, points[near])  # (n, 3)
        device, dtype = pair.source.device, pair.source.dtype
        return cls(
            rows,
            torch.from_numpy(near).to(device),
            torch.from_numpy(weights).to(device=device, dtype=dtype),
        )

    def values(self, features: Tensor) -> Tensor:
        """(n, C) values of (M, C) target features at the partners."""
        return torch.einsum("nk,nkc->nc", self.weights, features[self.indices])
