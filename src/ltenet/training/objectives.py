"""What a step minimises: the paper's objective, known correspondences, self-training.

Every term is a mean over the pairs of the batch of a mean over the points of a pair, so that
processes with equal shares of a batch average to the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.data.training_pairs import TrainingPair
from ltenet.losses import objective
from ltenet.model import ModelConfig
from ltenet.reconstruction import soft_correspondence
from ltenet.training.config import KnownTerm, ReconstructionTerm, TrainingConfig
from ltenet.training.soft_matching import soft_matching, soft_targets
from ltenet.transforms import TransformConfig


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
    """

    source: Tensor
    target: Tensor
    source_truth: Tensor
    target_truth: Tensor
    source_known: Tensor
    target_known: Tensor

    @classmethod
    def of(cls, pair: TrainingPair, device: torch.device) -> PairTensors:
        """Take over what training needs of a pair."""
        return cls(*(torch.from_numpy(getattr(pair, name)).to(device) for name in cls._fields))


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
    """

    total: Tensor
    reconstruction: Tensor
    known: Tensor


def step_loss(
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
    config: TrainingConfig,
    *,
    progress: float,
) -> StepLoss:
    """Evaluate every term that has a weight.

    Parameters
    ----------
    pairs, source_features, target_features
        B pairs and their (N_b, D) and (M_b, D) embeddings.
    progress
        Share of the run that is over.
    """
    features = (source_features, target_features)
    reconstruction = known = source_features[0].new_zeros(())
    if config.reconstruction.weight > 0:
        reconstruction = reconstruction_loss(
            pairs, *features, config.reconstruction, config.model, progress=progress
        )
    if config.known.weight > 0:
        known = known_loss(pairs, *features, config.known, config.model.transform)
    total = config.reconstruction.weight * reconstruction + config.known.weight * known
    return StepLoss(total, reconstruction, known)


def reconstruction_loss(
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
    term: ReconstructionTerm,
    model: ModelConfig,
    *,
    progress: float = 1.0,
) -> Tensor:
    """Evaluate the paper's objective: in one go if all pairs have the same sizes, else in turn.

    Parameters
    ----------
    pairs, source_features, target_features
        B pairs and their (N_b, D) and (M_b, D) embeddings.
    progress
        Share of the run that is over, for the annealed bandwidth.
    """
    measure = replace(model.divergence, sigma=annealed_sigma(term, model, progress))
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
            measure=measure,
        ).total
        for group in groups
    ]
    return torch.stack(totals).mean()


def annealed_sigma(term: ReconstructionTerm, model: ModelConfig, progress: float) -> float:
    """Bandwidth at a share of the run: geometrically from `sigma_start` to the model's own."""
    final = model.divergence.sigma
    if term.sigma_start is None:
        return final
    left = max(0.0, 1 - progress / term.sigma_share)
    return float(final * (term.sigma_start / final) ** left)


def known_loss(
    pairs: Sequence[PairTensors],
    source_features: Sequence[Tensor],
    target_features: Sequence[Tensor],
    term: KnownTerm,
    transform: TransformConfig,
) -> Tensor:
    """Evaluate the term of the known correspondences, in both directions."""
    losses = []
    for pair, source, target in zip(pairs, source_features, target_features, strict=True):
        if term.mode == "similarity":
            loss = similarity_loss(pair, source, target, term)
        else:
            loss = _distance(source, target, pair.target, pair.source_truth, pair.source_known,
                             transform)  # fmt: skip
            loss = loss + _distance(target, source, pair.source, pair.target_truth,
                                    pair.target_known, transform)  # fmt: skip
        losses.append(loss)
    return torch.stack(losses).mean()


def similarity_loss(
    pair: PairTensors, source_features: Tensor, target_features: Tensor, term: KnownTerm
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


def _distance(
    features: Tensor,
    other_features: Tensor,
    other_points: Tensor,
    truth: Tensor,
    known: Tensor,
    transform: TransformConfig,
) -> Tensor:
    """Mean distance from the cross-reconstruction to the true position, over known points."""
    rebuilt = soft_correspondence(features[None], other_features[None], other_points[None],
                                  transform)[0]  # fmt: skip
    square = (rebuilt - truth).square().sum(dim=1)  # (N,)
    # The root has no derivative at zero; the offset is far below any spacing of points.
    distance = (square + 1e-12).sqrt()  # (N,)
    return (distance * known).sum() / known.sum().clamp_min(1)
