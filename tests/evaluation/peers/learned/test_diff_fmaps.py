"""Diff-FMaps: least squares, maps between bases, two stages, and pairs learned by heart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.diff_fmaps import (
    DiffFMapsConfig,
    estimated_map,
    least_squares,
    soft_positions,
)
from ltenet.evaluation.peers.learned.learner import Learner, learner_of
from ltenet.evaluation.peers.learned.partner_rows import PartnerRows
from ltenet.training.pair_tensors import PairTensors

WIDTHS = ("trunk=[32, 64]", "code=[32]", "head=[64]", "dropout=0.0")
SMALL = (
    *(f"network.{part}.{change}" for change in WIDTHS for part in ("basis", "descriptors")),
    "network.basis.outputs=12", "network.descriptors.outputs=24",
)  # fmt: skip
UNIVERSAL = (*(f"network.basis.{change}" for change in WIDTHS), "network.basis.outputs=12")


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_least_squares_are_those_of_numpy_and_differentiable() -> None:
    basis, values = random(30, 5), random(30, 4, seed=1)
    expected = np.linalg.lstsq(basis.numpy(), values.numpy(), rcond=None)[0]
    np.testing.assert_allclose(least_squares(basis, values).numpy(), expected, atol=1e-5)
    inputs = random(8, 3).requires_grad_(), random(8, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(least_squares, inputs)


def test_descriptors_that_agree_give_the_true_map() -> None:
    ours, matrix = random(40, 5), random(5, 5, seed=1)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    theirs = (ours @ matrix)[order]
    descriptors = ours @ random(5, 9, seed=2)
    found = estimated_map(ours, theirs, descriptors, descriptors[order])
    torch.testing.assert_close(found, matrix, rtol=1e-3, atol=1e-3)


def test_soft_positions_of_distant_rows_are_the_positions() -> None:
    rows, positions = 100 * random(20, 4), random(20, 3, seed=1)
    torch.testing.assert_close(soft_positions(rows, rows, positions), positions, atol=1e-4, rtol=0)
    inputs = [random(6, 2).requires_grad_(), random(7, 2, seed=1).requires_grad_(), random(7, 3)]
    assert torch.autograd.gradcheck(soft_positions, inputs)


@pytest.mark.parametrize("sampling", ["shared", "independent"])
def test_partners_lie_at_their_true_positions(sampling: str) -> None:
    config = PairConfig(what="animal", sampling=sampling, points=(300, 300), radius=0.5)
    pair = PairTensors.of(TrainingPairs(config, 0).draw(1), torch.device("cpu"))
    partners = PartnerRows.of(pair)
    error = (partners.values(pair.target) - pair.source_truth[partners.rows]).norm(dim=1)
    torch.testing.assert_close(partners.weights.sum(dim=1), torch.ones(len(error)))
    assert float(error.max()) < (1e-5 if sampling == "shared" else 0.3)
    assert float(error.mean()) < 0.03


def test_the_basis_rests_in_the_second_half(
    settings: Callable[..., Any], four_pairs: list[TrainingPair]
) -> None:
    torch.manual_seed(0)
    network = learner_of(settings("diff-fmaps", *SMALL))
    pairs = [PairTensors.of(pair, torch.device("cpu")) for pair in four_pairs]
    statistics = network.basis.norm.running_mean.clone()  # type: ignore[union-attr,operator]
    network.loss(pairs, 0.5).total.backward()
    assert all(p.grad is None for p in network.basis.parameters())  # type: ignore[union-attr]
    assert torch.equal(network.basis.norm.running_mean, statistics)  # type: ignore[union-attr,arg-type]
    network.loss(pairs, 0.49).total.backward()
    assert all(p.grad is not None for p in network.basis.parameters())  # type: ignore[union-attr]
    assert network.basis.training
    with pytest.raises(InputError, match=r"got a first stage of 2, expected a share"):
        DiffFMapsConfig(stage=2)


@pytest.mark.slow
def test_it_learns_four_pairs_by_heart(
    four_pairs: list[TrainingPair],
    fitted: Callable[..., tuple[Learner, list[float]]],
    error_of: Callable[..., float],
) -> None:
    learner, losses = fitted(
        "diff-fmaps", four_pairs, *SMALL, steps=500, lr=5e-3,
        progress=lambda step: float(step >= 250),
    )  # fmt: skip
    assert losses[249] < 0.3 * losses[0]
    assert losses[-1] < 0.3 * losses[250]
    untrained, _ = fitted("diff-fmaps", four_pairs, *SMALL, steps=0)
    assert error_of(learner, four_pairs) < 0.5 * error_of(untrained, four_pairs)


@pytest.mark.slow
def test_the_universal_embedding_learns_four_pairs_by_heart(
    four_pairs: list[TrainingPair],
    fitted: Callable[..., tuple[Learner, list[float]]],
    error_of: Callable[..., float],
) -> None:
    learner, losses = fitted("diff-fmaps-universal", four_pairs, *UNIVERSAL, steps=250, lr=5e-3)
    assert losses[-1] < 0.3 * losses[0]
    untrained, _ = fitted("diff-fmaps-universal", four_pairs, *UNIVERSAL, steps=0)
    assert error_of(learner, four_pairs) < 0.5 * error_of(untrained, four_pairs)
