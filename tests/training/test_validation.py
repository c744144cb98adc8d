from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ltenet.data.training_pairs import TrainingPairs
from ltenet.method.matchability import Matchability
from ltenet.method.model import LTENet
from ltenet.training.config import TrainingConfig
from ltenet.training.validation import (
    HeldBack,
    draw_held_back,
    mean_scores,
    score,
    score_sums,
)

Settings = Callable[..., TrainingConfig]


class Oracle(nn.Module):
    """Features that give away a place: given ones for the source, its own for the target."""

    def __init__(self, places: np.ndarray) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.from_numpy(places))

    def forward(self, shapes: Sequence[Tensor]) -> list[Tensor]:
        return [_features(self.places), _features(shapes[1])]


def _features(places: Tensor) -> Tensor:
    """Random Fourier features: inner products approach a Gaussian of the distance."""
    generator = torch.Generator().manual_seed(0)
    frequencies = torch.randn(3, 2048, generator=generator) * 10
    phases = places @ frequencies
    return torch.cat([phases.cos(), phases.sin()], dim=1)


def oracle(config: TrainingConfig, places: np.ndarray) -> LTENet:
    model = LTENet(config.model).eval()
    model.encoder = Oracle(places)  # type: ignore[assignment]
    return model


def test_the_truth_scores_perfectly_and_its_aliases_count_as_flips(small: Settings) -> None:
    config = small("pairs.points=[128, 128]", "pairs.sampling=shared")
    pair = TrainingPairs(config.pairs, 0, "validation").draw(0)
    right = score(oracle(config, pair.source_truth), pair, config)
    assert right.error < 0.1
    assert right.accuracy_1 > 0.98
    assert right.left_right == right.front_back == 0
    mirrored = score(oracle(config, pair.source_mirrored), pair, config)
    assert mirrored.left_right > 0.4
    assert mirrored.error > 5
    opposite = score(oracle(config, pair.source_opposite), pair, config)
    assert opposite.front_back > 0.1
    assert opposite.front_back > opposite.left_right


def test_who_has_a_partner_is_scored_too(small: Settings) -> None:
    changes = "pairs.points=[128, 128]", "pairs.augmentation.cut_chance=1.0"
    config = small(*changes)
    pair = TrainingPairs(config.pairs, 0, "validation").draw(0)
    assert 0.1 < pair.source_known.mean() < 0.95
    model = oracle(config, pair.source_truth)
    assert score(model, pair, config).overlap == 0
    torch.manual_seed(0)
    model.matchability = Matchability(4096, 1)
    torch.nn.init.constant_(model.matchability.odds.bias, 50.0)  # every point has a partner
    assert score(model, pair, config).overlap == pytest.approx(pair.source_known.mean())
    torch.nn.init.constant_(model.matchability.odds.bias, -50.0)
    assert score(model, pair, config).overlap == 0


def test_points_that_are_not_known_do_not_count(small: Settings) -> None:
    config = small("pairs.sampling=shared")
    pair = TrainingPairs(config.pairs, 0, "validation").draw(0)
    places = pair.source_truth.copy()
    places[:20] = pair.source_mirrored[:20]
    known = np.ones(len(places), dtype=bool)
    known[:20] = False
    partly = score(oracle(config, places), replace(pair, source_known=known), config)
    assert partly.error < 0.1
    nothing = replace(pair, source_known=np.zeros_like(known))
    unlabelled = score(oracle(config, places), nothing, config)
    assert unlabelled.error == unlabelled.accuracy_1 == 0
    assert unlabelled.loss == pytest.approx(partly.loss)
    assert unlabelled.cycle == pytest.approx(partly.cycle)


def test_shares_add_up_to_the_whole(small: Settings) -> None:
    config = small("validation.pairs=3")
    model = LTENet(config.model)
    own = partial(score, model, config=config)
    whole = score_sums(model, draw_held_back(config), own)
    parts = [
        score_sums(model, draw_held_back(config, shard=shard, shards=2), own) for shard in range(2)
    ]
    torch.testing.assert_close(parts[0] + parts[1], whole)
    assert whole[:, 0].tolist() == [3, 3]
    assert model.training
    scores = mean_scores(whole)
    assert scores.independent.error == pytest.approx(float(whole[0, 3]) / 3)
    assert mean_scores(torch.zeros_like(whole)).shared.error == 0


def test_validation_never_sees_training_pairs(small: Settings) -> None:
    config = small()
    held_back: HeldBack = draw_held_back(config)
    assert all(pair.shared for pair in held_back.shared)
    assert not any(pair.shared for pair in held_back.independent)
    train = TrainingPairs(config.pairs, config.seed).draw(0)
    assert not np.array_equal(train.source, held_back.independent[0].source)
