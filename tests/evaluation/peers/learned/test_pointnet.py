"""PointNet: its parts against plain formulas, and the system that matches its features."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.learner import Learner, learner_of
from ltenet.evaluation.peers.learned.pointnet import (
    JoinedLinear,
    PointNet,
    PointNetConfig,
    pooled,
    repeated,
)

SMALL = (
    "network.pointnet.trunk=[32, 64]", "network.pointnet.code=[32]",
    "network.pointnet.head=[64]", "network.pointnet.outputs=32", "network.pointnet.dropout=0.0",
)  # fmt: skip


def test_a_joined_layer_is_one_layer_on_both() -> None:
    torch.manual_seed(0)
    layer = JoinedLinear(5, 7, 4).double()
    points, codes = torch.randn(9, 5).double(), torch.randn(2, 7).double()
    joined = torch.cat([points, codes.repeat_interleave(torch.tensor([4, 5]), dim=0)], dim=1)
    torch.testing.assert_close(layer(points, codes, [4, 5]), layer.linear(joined))
    assert torch.autograd.gradcheck(
        lambda p, c: layer(p, c, [4, 5]), (points.requires_grad_(), codes.requires_grad_())
    )


def test_codes_are_maxima_of_single_shapes() -> None:
    features = torch.arange(10.0).reshape(5, 2)
    assert pooled(features, [2, 3]).tolist() == [[2, 3], [8, 9]]
    assert repeated(pooled(features, [2, 3]), [2, 3])[:, 0].tolist() == [2, 2, 8, 8, 8]


def test_the_published_size() -> None:
    network = PointNet(PointNetConfig(outputs=20))
    weights = sum(m.weight.numel() for m in network.modules() if isinstance(m, nn.Linear))
    assert weights == pytest.approx(1.43e6, rel=0.01)


def test_features_follow_the_order_of_the_points() -> None:
    torch.manual_seed(0)
    network = PointNet(PointNetConfig(trunk=(8, 16), code=(8,), head=(16,), outputs=6)).eval()
    points, order = torch.randn(30, 3), torch.randperm(30)
    alone, other = network([points])[0], network([torch.randn(7, 3), points[order]])[1]
    torch.testing.assert_close(other, alone[order])


@pytest.mark.parametrize("change", ["trunk=[]", "outputs=0", "dropout=1.0"])
def test_widths_that_make_no_network(settings: Callable[..., object], change: str) -> None:
    with pytest.raises(InputError, match=r"pointnet: got .*, expected .*; try"):
        learner_of(settings("pointnet", f"network.pointnet.{change}"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_learns_four_pairs_by_heart(
    four_pairs: list[TrainingPair],
    fitted: Callable[..., tuple[Learner, list[float]]],
    error_of: Callable[..., float],
    tmp_path: Path,
) -> None:
    learner, losses = fitted("pointnet", four_pairs, *SMALL, steps=200, lr=5e-3)
    assert losses[-1] < 0.6 * losses[0]
    untrained, _ = fitted("pointnet", four_pairs, *SMALL, steps=0)
    assert error_of(learner, four_pairs) < 0.3 * error_of(untrained, four_pairs)
    learner.save_pretrained(tmp_path / "weights")
    again = type(learner).from_pretrained(tmp_path / "weights")
    assert error_of(again, four_pairs) == error_of(learner, four_pairs)
