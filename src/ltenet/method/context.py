"""Attention among all points of a shape: what a point is depends on where the others are.

EdgeConv sees a point's surroundings only. Each block here lets every point read all others
[Vaswani et al. 2017], in the order of pre-norm transformers, and adds what it finds to the
features:

    x <- x + O softmax(Q K^T / sqrt(d)) V,    x <- x + W2 gelu(W1 norm(x)),

with Q, K and V linear in norm(x). The maps O and W2 begin at zero, so that a new block changes
nothing: a network that was trained without can be trained on with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Channels of each head.
_HEAD = 64


class ContextBlock(nn.Module):
    """One block: (M, D) features of several shapes -> (M, D).

    Parameters
    ----------
    dimension
        D. Queries, keys and values have half of it, in heads of 64.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.heads = max(1, dimension // 2 // _HEAD)
        inner = max(self.heads, dimension // 2 // self.heads * self.heads)
        self.attention_norm = nn.LayerNorm(dimension)
        self.reading = nn.Linear(dimension, 3 * inner, bias=False)
        self.writing = nn.Linear(inner, dimension, bias=False)
        self.point_norm = nn.LayerNorm(dimension)
        self.widening = nn.Linear(dimension, dimension)
        self.narrowing = nn.Linear(dimension, dimension)
        for last in (self.writing, self.narrowing):
            nn.init.zeros_(last.weight)
        nn.init.zeros_(self.narrowing.bias)

    def forward(self, features: Tensor, sizes: Sequence[int]) -> Tensor:
        """Apply the block to shapes of the given sizes, which sum to M."""
        read = self.reading(self.attention_norm(features))  # (M, 3 C)
        found = [self._attend(shape) for shape in read.split(list(sizes))]
        features = features + self.writing(torch.cat(found))  # (M, D)
        widened = F.gelu(self.widening(self.point_norm(features)))  # (M, D)
        return features + self.narrowing(widened)  # type: ignore[no-any-return]

    def _attend(self, read: Tensor) -> Tensor:
        """Attend within one shape: queries, keys and values (N, 3 C) -> (N, C)."""
        split = read.view(len(read), 3, self.heads, -1)  # (N, 3, H, C / H)
        query, key, value = split.permute(1, 2, 0, 3)[:, None]  # (1, H, N, C / H) each
        found = F.scaled_dot_product_attention(query, key, value)[0]  # (H, N, C / H)
        return found.transpose(0, 1).flatten(1)  # (N, C)
