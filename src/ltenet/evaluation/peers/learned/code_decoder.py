"""A decoder that moves points by a code of the shape: of 3D-CODED, and of CorrNet3D."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.evaluation.peers.learned.pointnet import JoinedLinear, hidden_layers


class CodeDecoder(nn.Module):
    """Map [point, code] to a position: linear layers with BatchNorm and ReLU, then 2 tanh.

    Parameters
    ----------
    code
        Width of the code.
    widths
        Of the hidden layers.
    """

    def __init__(self, code: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.first = JoinedLinear(3, code, widths[0])
        self.norm = nn.BatchNorm1d(widths[0])
        self.hidden = hidden_layers(widths)
        self.last = nn.Linear(widths[-1], 3)

    def forward(self, points: Sequence[Tensor], codes: Tensor) -> list[Tensor]:
        """Decode: B shapes of (N_b, 3) points and (B, Z) codes -> B x (N_b, 3)."""
        sizes = [len(own) for own in points]
        features = F.relu(self.norm(self.first(torch.cat(list(points)), codes, sizes)))  # (M, C)
        places = 2 * torch.tanh(self.last(self.hidden(features)))  # (M, 3)
        return list(places.split(sizes))
