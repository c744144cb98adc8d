"""A training pair on the device: what the objectives look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.data.training_pairs import TrainingPair
from ltenet.method.matchability import Matchability, Odds
from ltenet.method.model import LTENet


class PairTensors(NamedTuple):
    """One training pair on the device.

    Attributes
    ----------
    source, target
        (N, 3) and (M, 3) points.
    source_truth, target_truth
        (N, 3) and (M, 3) where each point lies on the other shape.
    source_known, target_known
        (N,) and (M,) bool: whether that is known.
    source_rest, target_rest
        (N, 3) and (M, 3) where each point lies on the template, or None.
    source_along, target_along
        (N, L) and (M, L) coordinates along the surfaces, or None.
    """

    source: Tensor
    target: Tensor
    source_truth: Tensor
    target_truth: Tensor
    source_known: Tensor
    target_known: Tensor
    source_rest: Tensor | None = None
    target_rest: Tensor | None = None
    source_along: Tensor | None = None
    target_along: Tensor | None = None

    @classmethod
    def of(cls, pair: TrainingPair, device: torch.device) -> PairTensors:
        """Copy what training needs of a pair.

        A copy, because torch aligns its memory and numpy does not: products may round differently
        with another alignment, and a resumed run would not repeat itself to the last bit.
        """
        values = {name: getattr(pair, name) for name in cls._fields}
        return cls(
            **{
                name: torch.tensor(value, device=device)
                for name, value in values.items()
                if value is not None  # places on a template need not be known
            }
        )


def embed_pairs(
    model: LTENet, pairs: Sequence[PairTensors], *, joint: bool = True
) -> tuple[list[Tensor], list[Tensor]]:
    """Embed both shapes of every pair: B x (N, D) and B x (M, D)."""
    found: tuple[list[Tensor], list[Tensor]] = model(
        [pair.source for pair in pairs],
        [pair.target for pair in pairs],
        joint=joint,
        along=([pair.source_along for pair in pairs], [pair.target_along for pair in pairs]),
    )
    return found


def partner_odds(
    matchability: Matchability,
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
) -> list[Odds]:
    """Tell which points of every pair, with (N, D) and (M, D) embeddings, have a partner."""
    points = [(pair.source, pair.target) for pair in pairs]
    features = list(zip(source_features, target_features, strict=True))
    found: list[Odds] = matchability(points, features)
    return found


def both_shapes(pairs: Sequence[PairTensors]) -> list[Tensor]:
    """Points of all sources, then of all targets: 2 B shapes that go through a network at once."""
    return [*(pair.source for pair in pairs), *(pair.target for pair in pairs)]
