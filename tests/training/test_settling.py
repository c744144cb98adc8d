from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import UsageError
from ltenet.method import plain
from ltenet.method.model import LTENet
from ltenet.training.config import TrainingConfig
from ltenet.training.settling import settle


def test_statistics_are_those_of_the_pooled_batches(small: Callable[..., TrainingConfig]) -> None:
    """Against the plain network, whose statistics of each batch are read off one by one."""
    config = small()
    torch.manual_seed(0)
    model = LTENet(config.model).eval()
    for norm in model.modules():
        if isinstance(norm, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(norm.running_mean)  # stale: none of it may survive
    pairs, passes, size = TrainingPairs(config.pairs, config.seed), 3, 2
    encoder = config.model.encoder
    twin = plain.DGCNN(encoder.widths, encoder.dimension, encoder.neighbors)
    twin.load_state_dict(model.encoder.state_dict())
    first_edges, batches = [], []
    for start in range(0, passes * size, size):
        drawn = [pairs.draw(index) for index in range(start, start + size)]
        points = torch.stack(
            [torch.tensor(pair.source) for pair in drawn]
            + [torch.tensor(pair.target) for pair in drawn]
        )
        for norm in twin.modules():
            if isinstance(norm, torch.nn.BatchNorm1d):
                norm.momentum = 1.0  # the running statistics are those of the batch
        with torch.no_grad():
            twin.train()(points)
        batches.append({name: value.clone() for name, value in twin.named_buffers()})
        neighbors = plain.gather(points, plain.nearest_points(points, encoder.neighbors))
        center = points[:, :, None].expand_as(neighbors)
        edges = torch.cat([neighbors - center, center], dim=-1)
        first_edges.append((edges @ twin.layers[0].weight.T).detach().flatten(0, 2))
    before = {name: value.clone() for name, value in model.named_parameters()}
    settle(model, pairs, passes, batch_size=size)
    for name, value in model.encoder.named_buffers():
        if name.endswith("num_batches_tracked"):
            continue
        expected = torch.stack([batch[name] for batch in batches]).mean(dim=0)
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5, msg=name)
    # In the first layer nothing depends on other statistics: its mean is that of all edges.
    pooled = torch.cat(first_edges).mean(dim=0)
    torch.testing.assert_close(
        model.encoder.layers[0].norm.running_mean, pooled, rtol=1e-4, atol=1e-5
    )
    assert all(torch.equal(before[name], value) for name, value in model.named_parameters())


def test_mode_and_momentum_come_back_and_once_is_enough(
    small: Callable[..., TrainingConfig],
) -> None:
    config = small()
    model = LTENet(config.model).eval()
    pairs = TrainingPairs(config.pairs)
    settle(model, pairs, 2)
    once = {name: value.clone() for name, value in model.named_buffers()}
    assert not model.training
    assert model.encoder.norm.momentum == config.model.encoder.momentum
    settle(model.train(), pairs, 2)
    assert model.training
    for name, value in model.named_buffers():
        if not name.endswith("num_batches_tracked"):
            assert torch.equal(value, once[name]), name


def test_no_passes_are_refused(small: Callable[..., TrainingConfig]) -> None:
    config = small()
    with pytest.raises(UsageError, match="got 0 passes of 4 pairs, expected at least 1"):
        settle(LTENet(config.model), TrainingPairs(config.pairs), 0)
