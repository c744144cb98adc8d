"""Which points of two shapes have a partner on the other one: the matchability of LightGlue.

The encoder embeds each shape by itself; whether a partner is missing shows only where both meet. So
the points of two shapes read each other, and then those of their own shape, so that neighbours
agree on what they found [Sarlin et al. 2020]:

    x <- x + O_c softmax(Q_c K_c^T / sqrt(d)) V_c,    keys and values of the other shape,
    x <- x + O_s softmax(Q_s K_s^T / sqrt(d)) V_s,    those of the same shape,
    x <- x + W2 gelu(W1 norm(x)),

with Q, K and V linear in norm(x), which begins as a linear map of the unit features and of waves of
the coordinates. A linear map of the last x is the log odds that a point has a partner [Lindenberger
et al. 2023].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Channels of each head of attention.
_HEAD = 64
#: Scaled product of a query with the key of an equal point to begin with: equal points attract each
#: other from the first step on, and the blocks need not find out first what to compare.
_SHARPNESS = 16.0
#: Wavelengths at which the blocks read coordinates, for shapes of root-mean-square radius 0.5.
_WAVELENGTHS = (4.0, 2.0, 1.0, 0.5)


class Odds(NamedTuple):
    """Log odds that points have a partner on the other shape.

    Attributes
    ----------
    source, target
        (N,) and (M,)
    """

    source: Tensor
    target: Tensor


class Matchability(nn.Module):
    """Blocks that let the points of two shapes read each other.

    Parameters
    ----------
    dimension
        D, channels of the embedding; the blocks have half as many.
    blocks
        Their number.
    """

    def __init__(self, dimension: int, blocks: int) -> None:
        super().__init__()
        self.dimension, width = dimension, max(2, dimension // 2)
        self.entering = nn.Linear(dimension + 6 * len(_WAVELENGTHS), width)
        self.blocks = nn.ModuleList(_Block(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.odds = nn.Linear(width, 1)

    def forward(
        self, points: Sequence[tuple[Tensor, Tensor]], features: Sequence[tuple[Tensor, Tensor]]
    ) -> list[Odds]:
        """Tell of B pairs of shapes which points have a partner.

        Parameters
        ----------
        points
            (N_b, 3) and (M_b, 3) of each pair, in the coordinates of the network.
        features
            (N_b, D) and (M_b, D) embeddings, of any length.
        """
        sizes = [len(shape) for pair in features for shape in pair]
        given = torch.cat([shape for pair in features for shape in pair])  # (L, D)
        places = torch.cat([shape for pair in points for shape in pair])  # (L, 3)
        unit = F.normalize(given, dim=1) * self.dimension**0.5  # (L, D)
        mixed = self.entering(torch.cat([unit, _waves(places)], dim=1))  # (L, C)
        for block in self.blocks:
            mixed = block(mixed, sizes)
        odds = self.odds(self.norm(mixed))[:, 0].split(sizes)  # 2 B of (n,)
        return [Odds(*both) for both in zip(odds[::2], odds[1::2], strict=True)]


class _Block(nn.Module):
    """One block: (L, C) of shapes, two of a pair beside each other -> (L, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.across = _Attention(width)
        self.within = _Attention(width)
        self.norm = nn.LayerNorm(width)
        self.widening = nn.Linear(width, 2 * width)
        self.narrowing = nn.Linear(2 * width, width)

    def forward(self, mixed: Tensor, sizes: Sequence[int]) -> Tensor:
        mixed = mixed + self.across(mixed, sizes, exchanged=True)
        mixed = mixed + self.within(mixed, sizes, exchanged=False)
        widened = F.gelu(self.widening(self.norm(mixed)))  # (L, 2 C)
        return mixed + self.narrowing(widened)  # type: ignore[no-any-return]


class _Attention(nn.Module):
    """Attention to the points of the same shape, or of the other one of its pair."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 2 // _HEAD)
        inner = max(self.heads, width // 2 // self.heads * self.heads)
        self.norm = nn.LayerNorm(width)
        self.reading = nn.Linear(width, 3 * inner, bias=False)
        self.writing = nn.Linear(inner, width, bias=False)
        query, key, _ = self.reading.weight.detach().chunk(3)  # (C, width) each
        nn.init.normal_(query, std=(_SHARPNESS / (width * (inner // self.heads) ** 0.5)) ** 0.5)
        key.copy_(query)

    def forward(self, mixed: Tensor, sizes: Sequence[int], *, exchanged: bool) -> Tensor:
        read = self.reading(self.norm(mixed))  # (L, 3 C)
        split = read.view(len(read), 3, self.heads, -1)  # (L, 3, H, C / H)
        shapes = split.permute(1, 2, 0, 3)[:, None].split(list(sizes), dim=3)
        found = [
            F.scaled_dot_product_attention(shape[0], *shapes[number ^ exchanged][1:])[0]
            for number, shape in enumerate(shapes)
        ]  # 2 B of (H, n, C / H)
        return self.writing(torch.cat(found, dim=1).transpose(0, 1).flatten(1))  # type: ignore[no-any-return]


def _waves(points: Tensor) -> Tensor:
    """(L, 3) coordinates as (L, 6 W) sines and cosines: products of them tell distances."""
    wavelengths = points.new_tensor(_WAVELENGTHS)
    phases = (points[:, :, None] * (2 * torch.pi / wavelengths)).flatten(1)  # (L, 3 W)
    return torch.cat([phases.sin(), phases.cos()], dim=1)
