"""GeoFMNet, SURFMNet and FMNet: their losses by plain formulas, and pairs learned by heart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import InputError, UsageError
from ltenet.evaluation.peers.learned.geofmnet import GeoFMNetConfig
from ltenet.evaluation.peers.learned.learner import Learner, learner_of
from ltenet.evaluation.peers.learned.shot_networks import (
    ShotNetworkConfig,
    descriptor_operators,
    map_penalties,
)
from ltenet.training.loop import train
from ltenet.training.runs import new_run

SHOT = ("network.functions=12", "network.blocks=2", "network.pool=8")
GEOFM = (
    "network.functions=10", "network.diffusion_functions=24", "network.width=32",
    "network.blocks=2", "network.outputs=24", "network.dropout=0.0", "network.pool=8",
)  # fmt: skip


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_orthogonal_inverse_maps_that_commute_cost_nothing() -> None:
    values = random(5).abs()
    signs = torch.diag(torch.tensor([1.0, -1, 1, 1, -1], dtype=torch.float64))
    for penalty in map_penalties(signs, signs, values, values):
        assert float(penalty) == pytest.approx(0)
    forth, back = random(5, 5), random(5, 5, seed=1)
    mu = random(5, seed=2).abs()
    bijective, orthogonal, commuting = map_penalties(forth, back, values, mu)
    eye = torch.eye(5).double()
    both = (forth @ back - eye).norm() ** 2 + (back @ forth - eye).norm() ** 2
    torch.testing.assert_close(bijective, both / 2)
    both = (forth.T @ forth - eye).norm() ** 2 + (back.T @ back - eye).norm() ** 2
    torch.testing.assert_close(orthogonal, both / 2)
    there = forth @ torch.diag(values) - torch.diag(mu) @ forth
    home = back @ torch.diag(mu) - torch.diag(values) @ back
    torch.testing.assert_close(commuting, (there.norm() ** 2 + home.norm() ** 2) / 2)
    inputs = [forth.requires_grad_(), back.requires_grad_()]
    assert torch.autograd.gradcheck(lambda f, b: map_penalties(f, b, values, mu), inputs)


def test_operators_multiply_by_a_descriptor() -> None:
    functions, masses, features = random(30, 4), random(30, seed=1).abs(), random(30, 3, seed=2)
    found = descriptor_operators(functions, masses, features)
    expected = functions.T @ torch.diag(masses * features[:, 1]) @ functions
    torch.testing.assert_close(found[1], expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ShotNetworkConfig(share=0), r"shot network: got .* share of 0, expected"),
        (lambda: GeoFMNetConfig(functions=90), r"geofmnet: got a map of 90 among 64 functions"),
    ],
)
def test_settings_that_make_no_network(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_the_losses_of_soft_maps_by_plain_formulas(
    settings: Callable[..., Any], four_pairs: list[TrainingPair]
) -> None:
    torch.manual_seed(0)
    supervised = learner_of(settings("fmnet", *SHOT)).eval()
    other = learner_of(settings("fmnet-unsupervised", *SHOT)).eval()
    other.load_state_dict(supervised.state_dict())
    pair = supervised.tensors(four_pairs[0], torch.device("cpu"))
    ((_, soft),) = supervised.soft_maps([pair])  # type: ignore[operator]
    torch.testing.assert_close(soft.square().sum(dim=0), torch.ones(96))
    partner = torch.cdist(pair.pair.source_truth, pair.pair.target).argmin(dim=1)
    far = pair.target.geodesics[:, partner]
    expected = (soft * far).square().sum() / 96
    torch.testing.assert_close(supervised.loss([pair], 0.0).total, expected)
    q = soft.square()
    kept = (q.T @ pair.target.geodesics @ q - pair.source.geodesics).square().mean() / 2
    torch.testing.assert_close(other.loss([pair], 0.0).total, kept)


def test_the_distance_of_the_true_map_is_zero(
    settings: Callable[..., Any], four_pairs: list[TrainingPair], alike: Callable[..., TrainingPair]
) -> None:
    """A shape with itself: the features agree, and so the map is the identity, the true one."""
    torch.manual_seed(0)
    network = learner_of(settings("geofmnet", *GEOFM, "network.regularizer=1e-9")).eval()
    pair = network.tensors(network.prepared(alike(four_pairs[0])), torch.device("cpu"))
    found = network.map_between(pair.source, pair.target)  # type: ignore[operator]
    torch.testing.assert_close(found, torch.eye(10), atol=0.05, rtol=0)
    assert float(network.loss([pair], 0.0).total.detach()) < 0.05


def test_supervised_networks_refuse_pairs_without_labels(
    settings: Callable[..., Any], tmp_path: Any, four_pairs: list[TrainingPair]
) -> None:

    for number in range(3):
        np.savetxt(tmp_path / f"{number}.xyz", four_pairs[number].source)
    config = settings(
        "geofmnet", *GEOFM, "pairs.what=folder", f'pairs.data="{tmp_path}"', "validation.pairs=1",
        "pairs.points=[64, 64]",
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"'folder', whose correspondences .* for geofmnet, exp"):
        train(
            config, new_run(config, tmp_path / "runs"), system=type(learner_of(config)).from_config
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "changes", "share"),
    [
        ("geofmnet", GEOFM, 0.3),
        ("surfmnet", SHOT, 0.5),
        ("fmnet", SHOT, 0.5),
        ("fmnet-unsupervised", SHOT, 0.7),
    ],
)
def test_it_learns_four_pairs_by_heart(
    four_pairs: list[TrainingPair],
    fitted: Callable[..., tuple[Learner, list[float]]],
    error_of: Callable[..., float],
    system: str,
    changes: tuple[str, ...],
    share: float,
) -> None:
    learner, losses = fitted(system, four_pairs, *changes, steps=150, lr=2e-3)
    assert losses[-1] < share * losses[0]
    if system in ("geofmnet", "fmnet"):
        untrained, _ = fitted(system, four_pairs, *changes, steps=0)
        assert error_of(learner, four_pairs) < 0.7 * error_of(untrained, four_pairs)
