from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.method.model import LTENet
from ltenet.training.config import SelfTrainingTerm
from ltenet.training.objectives import step_loss
from ltenet.training.pair_tensors import PairTensors
from ltenet.training.self_training import returns, teach
from ltenet.training.settings import load_config

CONFIG = load_config(
    "tiny",
    ["known.weight=0", "reconstruction.weight=1", "self_training.weight=2",
     "self_training.start=0.5", "self_training.reconstruction=0.1", "self_training.width=0.1",
     "self_training.keep=0.1"],
)  # fmt: skip


class Given(nn.Module):
    """A network that answers with given features."""

    def __init__(self, source: Tensor, target: Tensor) -> None:
        super().__init__()
        self.source, self.target = nn.Parameter(source), nn.Parameter(target)

    def forward(self, shapes: Sequence[Tensor]) -> list[Tensor]:
        assert not self.training
        return [self.source, self.target]


def teacher(source: Tensor, target: Tensor) -> LTENet:
    model = LTENet(CONFIG.model)
    model.encoder = Given(source, target)  # type: ignore[assignment]
    return model.train()


def places(points: Tensor, *, scale: float = 4.0) -> Tensor:
    """Random Fourier features: inner products approach a Gaussian of the distance."""
    generator = torch.Generator().manual_seed(0)
    phases = points @ (scale * torch.randn(3, 512, generator=generator))
    return torch.cat([phases.cos(), phases.sin()], dim=1)


@pytest.fixture(scope="module")
def pair() -> PairTensors:
    """Two poses of an animal, without their truth."""
    return drawn("independent")


def drawn(sampling: Literal["independent", "shared"]) -> PairTensors:
    config = PairConfig(what="animal", points=(200, 200), sampling=sampling)
    return PairTensors.of(TrainingPairs(config, 1).draw(0), torch.device("cpu"))


def blind(pair: PairTensors) -> PairTensors:
    return pair._replace(
        source_truth=torch.full_like(pair.source_truth, torch.nan),
        target_truth=torch.full_like(pair.target_truth, torch.nan),
        source_known=torch.zeros_like(pair.source_known),
        target_known=torch.zeros_like(pair.target_known),
    )


def test_round_trips_end_where_they_began_or_do_not() -> None:
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
    others = points + 10
    forth = others + torch.tensor([[0.0, 0, 0], [0.1, 0, 0], [-1.0, 0, 0]])
    kept = returns(points, forth, others, points, within=0.05)
    assert kept.tolist() == [True, True, False]
    assert returns(points, forth, others, points + 0.02, within=0.05).tolist() == [
        True,
        True,
        False,
    ]
    assert not returns(points, forth, others, points + 0.04, within=0.05).any()


def test_good_features_are_believed_and_made_better(pair: PairTensors) -> None:
    # The source's features say, up to noise, where its points truly lie on the target.
    noise = 0.05 * torch.randn(pair.source.shape, generator=torch.Generator().manual_seed(0))
    good = teacher(places(pair.source_truth + noise), places(pair.target))
    lesson = teach(blind(pair), good, SelfTrainingTerm(weight=1, keep=0.1))
    assert lesson.source_known.float().mean() > 0.6
    error = (lesson.source_truth - pair.source_truth).norm(dim=1)  # (N,)
    assert error[lesson.source_known].mean() < 0.85 * noise.norm(dim=1).mean()
    assert good.training  # left as it was


def test_the_same_points_are_recognised_and_told_exactly() -> None:
    pair = drawn("shared")
    noise = 0.02 * torch.randn(pair.source.shape, generator=torch.Generator().manual_seed(0))
    good = teacher(places(pair.source_truth + noise), places(pair.target))
    lesson = teach(blind(pair), good, SelfTrainingTerm(weight=1))
    right = (lesson.source_truth - pair.source_truth).norm(dim=1) < 1e-6  # (N,)
    assert right[lesson.source_known].float().mean() > 0.9
    assert lesson.source_known.float().mean() > 0.5
    back = (lesson.target_truth - pair.target_truth).norm(dim=1) < 1e-6  # (N,)
    assert back[lesson.target_known].float().mean() > 0.9


def test_nonsense_is_refused(pair: PairTensors) -> None:
    generator = torch.Generator().manual_seed(0)
    noise = [torch.randn(200, 16, generator=generator) for _ in range(2)]
    term = SelfTrainingTerm(weight=1)
    lesson = teach(blind(pair), teacher(*noise), term)
    assert lesson.source_known.float().mean() < 0.5
    strict = teach(blind(pair), teacher(*noise), replace(term, least=0.9))
    assert not strict.source_known.any()
    assert not strict.target_known.any()


def test_it_begins_when_it_should_and_replaces_the_objective_of_the_paper(
    pair: PairTensors,
) -> None:
    model = teacher(places(pair.source_truth), places(pair.target))
    features = [places(pair.source)], [places(pair.target)]
    before = step_loss([pair], *features, CONFIG, progress=0.4, teacher=model)
    assert before.self_training == before.kept == 0
    torch.testing.assert_close(before.total, before.reconstruction)
    after = step_loss([pair], *features, CONFIG, progress=0.6, teacher=model)
    assert after.kept > 0.5
    torch.testing.assert_close(after.total, 0.1 * after.reconstruction + 2 * after.self_training)
    # What is known of the pair is not looked at.
    other = step_loss([blind(pair)], *features, CONFIG, progress=0.6, teacher=model)
    assert other.total == after.total
