"""The loss of a step: the paper's objective, known correspondences, self-training.

`step_loss` adds the terms up; the functions below it evaluate them one by one.

Every term is a mean over the pairs of the batch of a mean over the points of a pair, so that
processes with equal shares of a batch average to the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.method.losses import objective
from ltenet.method.matchability import Matchability, Odds
from ltenet.method.model import LTENet, ModelConfig
from ltenet.training.config import (
    KnownTerm,
    ReconstructionTerm,
    SelfTrainingTerm,
    TrainingConfig,
)
from ltenet.training.pair_tensors import PairTensors, partner_odds
from ltenet.training.self_training import teach
from ltenet.training.soft_matching import soft_matching, soft_targets


class StepLoss(NamedTuple):
    """The loss of a step and its unweighted terms, each a mean over the batch; zero if left out.

    Attributes
    ----------
    total
        What is minimised.
    reconstruction
        The paper's objective.
    known
        Known correspondences.
    self_training
        Refined maps of the moving average.
    kept
        Share of the points that self-training kept.
    matchability
        Which points have a partner.
    """

    total: Tensor
    reconstruction: Tensor
    known: Tensor
    self_training: Tensor
    kept: Tensor
    matchability: Tensor


def step_loss(
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
    config: TrainingConfig,
    *,
    progress: float,
    teacher: LTENet,
    matchability: Matchability | None = None,
) -> StepLoss:
    """Evaluate every term that has a weight.

    Parameters
    ----------
    pairs, source_features, target_features
        B pairs and their (N_b, D) and (M_b, D) embeddings.
    progress
        Share of the run that is over.
    teacher
        Whose refined maps self-training learns from.
    matchability
        Blocks that tell which points have a partner; they learn from known correspondences.
    """
    features = (source_features, target_features)
    reconstruction = known = itself = kept = source_features[0].new_zeros(())
    partners = reconstruction
    own, weight = config.self_training, config.reconstruction.weight
    teaching = own.weight > 0 and progress >= own.start
    if teaching:
        lessons = [teach(pair, teacher, own) for pair in pairs]
        itself = known_loss(lessons, *features, own)
        kept = torch.stack([lesson.source_known.float().mean() for lesson in lessons]).mean()
        weight = weight * own.reconstruction
    if weight > 0:
        reconstruction = reconstruction_loss(pairs, *features, config.reconstruction, config.model)
    if config.known.weight > 0:
        known = known_loss(pairs, *features, config.known)
        if matchability is not None:
            partners = matchability_loss(pairs, partner_odds(matchability, pairs, *features))
    labelled = known + config.known.matchability * partners
    total = weight * reconstruction + config.known.weight * labelled + own.weight * itself
    return StepLoss(total, reconstruction, known, itself, kept, partners)


def reconstruction_loss(
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
    term: ReconstructionTerm,
    model: ModelConfig,
) -> Tensor:
    """Evaluate the paper's objective, all pairs at once if their sizes agree, else one by one.

    Parameters
    ----------
    pairs, source_features, target_features
        B pairs and their (N_b, D) and (M_b, D) embeddings.
    """
    sizes = {(len(pair.source), len(pair.target)) for pair in pairs}
    groups = [slice(None)] if len(sizes) == 1 else [slice(i, i + 1) for i in range(len(pairs))]
    totals = [
        objective(
            torch.stack([pair.source for pair in pairs[group]]),  # (B, N, 3)
            torch.stack([pair.target for pair in pairs[group]]),  # (B, M, 3)
            torch.stack(list(source_features[group])),  # (B, N, D)
            torch.stack(list(target_features[group])),  # (B, M, D)
            term.objective,
            transform=model.transform,
            measure=model.divergence,
        ).total
        for group in groups
    ]
    return torch.stack(totals).mean()


def known_loss(
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
    term: KnownTerm | SelfTrainingTerm,
) -> Tensor:
    """Evaluate the term of known, or believed, correspondences in both directions."""
    losses = [
        similarity_loss(pair, source, target, term)
        for pair, source, target in zip(pairs, source_features, target_features, strict=True)
    ]
    return torch.stack(losses).mean()


def matchability_loss(pairs: Sequence[PairTensors], odds: Sequence[Odds]) -> Tensor:
    """Cross-entropy of what is told of the points of B pairs: who has a partner."""
    losses = [
        F.binary_cross_entropy_with_logits(told, known.to(told))
        for pair, one in zip(pairs, odds, strict=True)
        for told, known in zip(one, (pair.source_known, pair.target_known), strict=True)
    ]
    return torch.stack(losses).mean()


def similarity_loss(
    pair: PairTensors,
    source_features: Tensor,
    target_features: Tensor,
    term: KnownTerm | SelfTrainingTerm,
) -> Tensor:
    """Soft cross-entropy of one pair, see `soft_matching`."""
    width = term.width
    return soft_matching(
        source_features,
        target_features,
        soft_targets(pair.source_truth, pair.source_known, pair.target, width=width),
        soft_targets(pair.target_truth, pair.target_known, pair.source, width=width),
        temperature=term.temperature,
    )
