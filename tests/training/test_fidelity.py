"""Presets `paper` and `dpc` against statements of their own about DPC's code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.method import plain
from ltenet.method.model import LTENet
from ltenet.shape import Shape
from ltenet.training.loop import make_optimizer
from ltenet.training.objectives import step_loss
from ltenet.training.pair_tensors import PairTensors
from ltenet.training.settings import load_config

KEPT = ("model.center=false", "pairs.center=false")


def drawn(preset: str, *changes: str) -> TrainingPair:
    config = load_config(preset, ["pairs.what=animal", *changes])
    return TrainingPairs(config.pairs, config.seed).draw(3)


@pytest.mark.parametrize("preset", ["paper", "dpc"])
def test_shapes_are_centred_unless_dpcs_loader_is_asked_for(preset: str) -> None:
    """DPC's loader takes the vertices of a shape at random indices, the same in both shapes."""
    centred, kept = drawn(preset), drawn(preset, *KEPT)
    for name in ("source", "target"):
        ours, theirs = getattr(centred, name), getattr(kept, name)
        np.testing.assert_allclose(ours.mean(axis=0), 0, atol=1e-6)
        offset = theirs.mean(axis=0)
        assert np.abs(offset).max() > 0.1  # the origin of a body is not its mean
        np.testing.assert_allclose(theirs - offset, ours, atol=1e-5)
    # The same indices in both shapes: each point is where its partner's truth says.
    np.testing.assert_allclose(np.sort(kept.source_truth, axis=0), np.sort(kept.target, axis=0))


def test_weights_that_keep_the_origin_are_embedded_there() -> None:
    config = load_config("paper", [*KEPT, "model.encoder.widths=[8]", "model.encoder.dimension=4"])
    torch.manual_seed(0)
    model = LTENet(config.model).eval()
    points = np.random.default_rng(0).normal(size=(60, 3)) + 5
    features = model.embed(Shape(points))
    with torch.no_grad():
        expected = model.encoder(torch.tensor(points[None], dtype=torch.float32))[0]
    torch.testing.assert_close(features, expected)
    assert not torch.allclose(features, model.embed(Shape(points - 5)))


def test_steps_of_training_are_those_of_the_plain_page() -> None:
    """Losses over several steps, in float64: the fast modules against the page they speed up."""
    config = load_config(
        "paper",
        ["model.encoder.widths=[8, 12]", "model.encoder.dimension=10", "pairs.points=[80, 80]"],
    )
    pairs = [TrainingPairs(config.pairs, config.seed).draw(index) for index in range(2)]
    torch.manual_seed(0)
    ours = LTENet(config.model).double().train()
    page = plain.DGCNN((8, 12), 10, config.model.encoder.neighbors).double().train()
    page.load_state_dict(ours.encoder.state_dict())
    optimizers = [make_optimizer(net, config.optim) for net in (ours, page)]  # type: ignore[arg-type]
    tensors = [PairTensors.of(pair, torch.device("cpu")) for pair in pairs]
    batch = [
        PairTensors(*(v.double() if v is not None and v.is_floating_point() else v for v in t))
        for t in tensors
    ]
    source = torch.stack([pair.source for pair in batch])
    target = torch.stack([pair.target for pair in batch])
    for _ in range(4):
        features = ours(list(source), list(target), joint=config.joint)
        loss = step_loss(batch, *features, config, progress=0.0, teacher=ours).total
        expected = plain.objective(source, target, page(source), page(target))
        torch.testing.assert_close(loss, expected, rtol=1e-8, atol=1e-8)
        for value, optimizer in zip((loss, expected), optimizers, strict=True):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
