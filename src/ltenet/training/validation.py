"""How good the weights are on held-back pairs: never on a benchmark.

Each figure is a mean over pairs. Predictions are nearest neighbours by cosine similarity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from ltenet.data.loading import Drawable
from ltenet.data.set_pairs import open_pairs
from ltenet.data.training_pairs import TrainingPair
from ltenet.geometry.arrays import IntArray
from ltenet.geometry.diameter import largest_distance
from ltenet.method.model import LTENet
from ltenet.method.neighbors import cosine_topk
from ltenet.metrics import accuracy, distances_to_truth, flipped
from ltenet.training.config import TrainingConfig
from ltenet.training.objectives import reconstruction_loss
from ltenet.training.pair_tensors import PairTensors, embed_pairs, partner_odds


class Scores(NamedTuple):
    """Figures of one pair, or their mean over several.

    Attributes
    ----------
    loss
        The paper's objective: needs no labels.
    cycle
        Mean distance between a point and where there and back again leads, in % of the diameter:
        needs no labels.
    error
        Mean distance from the truth in % of the target's diameter.
    accuracy_1, accuracy_5
        Share of points within 1 % and 5 %.
    left_right, front_back
        Share of points taken for their mirrored or opposite partner.
    overlap
        Intersection over union of the points that have a partner and those that are held to have
        one; 0 for networks that do not tell.
    """

    loss: float
    cycle: float
    error: float
    accuracy_1: float
    accuracy_5: float
    left_right: float
    front_back: float
    overlap: float = 0.0


class Validation(NamedTuple):
    """Mean scores on pairs with independent and with shared samples."""

    independent: Scores
    shared: Scores


class HeldBack(NamedTuple):
    """The pairs to validate on, or this process's share of them, drawn once."""

    independent: Sequence[TrainingPair]
    shared: Sequence[TrainingPair]


def draw_held_back(config: TrainingConfig, *, shard: int = 0, shards: int = 1) -> HeldBack:
    """Draw the validation pairs: those of training, with all the points and fixed samplings."""
    most = config.pairs.points[1]

    def drawn(sampling: Literal["independent", "shared"]) -> list[TrainingPair]:
        pairs = replace(config.pairs, sampling=sampling, points=(most, most), equal_counts=True)
        stream = open_pairs(pairs, config.seed, "validation")
        return draw_share(stream, config.validation.pairs, shard=shard, shards=shards)

    return HeldBack(drawn("independent"), drawn("shared"))


def draw_share(
    stream: Drawable[TrainingPair], count: int, *, shard: int = 0, shards: int = 1
) -> list[TrainingPair]:
    """Draw this process's share of the first `count` pairs of a stream."""
    return [stream.draw(index) for index in range(shard, count, shards)]


@torch.no_grad()
def score_sums(
    model: nn.Module, held_back: HeldBack, score_pair: Callable[[TrainingPair], Scores]
) -> Tensor:
    """Sum the scores over pairs: (2, 1 + scores) float64, the number of pairs first.

    Sums add up over processes; `mean_scores` divides.

    Parameters
    ----------
    model
        Set to evaluation mode meanwhile.
    held_back
        The pairs.
    score_pair
        Scores one of them with that model.
    """
    training = model.training
    model.eval()
    try:
        sums = torch.zeros(2, 1 + len(Scores._fields), dtype=torch.float64)  # (2, 1 + S)
        for row, pairs in zip(sums, held_back, strict=True):
            for pair in pairs:
                row += torch.tensor([1.0, *score_pair(pair)], dtype=torch.float64)
        return sums
    finally:
        model.train(training)


def mean_scores(sums: Tensor) -> Validation:
    """Turn summed scores into their means."""
    means = (sums[:, 1:] / sums[:, :1].clamp_min(1)).tolist()  # 2 lists of S
    return Validation(*(Scores(*row) for row in means))


@torch.no_grad()
def score(model: LTENet, pair: TrainingPair, config: TrainingConfig) -> Scores:
    """Embed one pair and score the map from source to target."""
    tensors = PairTensors.of(pair, next(model.parameters()).device)
    (source,), (target,) = embed_pairs(model, [tensors])  # (N, D), (M, D)
    term = config.reconstruction
    loss = reconstruction_loss([tensors], [source], [target], term, config.model)
    forth = cosine_topk(source, target, 1).indices[:, 0].cpu().numpy()  # (N,)
    back = cosine_topk(target, source, 1).indices[:, 0].cpu().numpy()  # (M,)
    found = scores_of_maps(pair, forth, back, loss=float(loss))
    if model.matchability is None:
        return found
    (odds,) = partner_odds(model.matchability, [tensors], [source], [target])
    told = (odds.source > 0).cpu().numpy()  # (N,)
    common, either = told & pair.source_known, told | pair.source_known  # (N,) each
    return found._replace(overlap=float(common.sum() / max(1, either.sum())))


def scores_of_maps(
    pair: TrainingPair, forth: IntArray, back: IntArray, *, loss: float = 0.0
) -> Scores:
    """Score maps from source to target (N,) and back (M,) against the truth of a pair."""
    trip = distances_to_truth(pair.source[back[forth]], pair.source)  # (N,)
    cycle = 100 * float(trip.mean()) / largest_distance(pair.source)
    known = pair.source_known  # (N,)
    if not known.any():
        return Scores(loss, cycle, 0.0, 0.0, 0.0, 0.0, 0.0)
    diameter = largest_distance(pair.target)
    predicted, truth = pair.target[forth][known], pair.source_truth[known]  # (K, 3) each
    distances = distances_to_truth(predicted, truth)  # (K,)
    close, near = accuracy(distances, diameter, (0.01, 0.05))
    mirrored, opposite = pair.source_mirrored[known], pair.source_opposite[known]  # (K, 3) each
    return Scores(
        loss=loss,
        cycle=cycle,
        error=100 * float(distances.mean()) / diameter,
        accuracy_1=float(close),
        accuracy_5=float(near),
        left_right=float(flipped(predicted, truth, mirrored, diameter).mean()),
        front_back=float(flipped(predicted, truth, opposite, diameter).mean()),
    )
