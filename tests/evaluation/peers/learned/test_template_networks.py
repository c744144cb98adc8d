"""3D-CODED and Elementary Structures: the way through the template, and shapes learned by heart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.bodies.body_pairs import own_generator
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.errors import InputError, UsageError
from ltenet.evaluation.peers.learned.learner import Learner, learner_of
from ltenet.evaluation.peers.learned.template_networks import (
    ElementaryStructures,
    TemplateConfig,
    TemplateNetwork,
)
from ltenet.method.divergence import chamfer
from ltenet.training.pair_tensors import PairTensors

SMALL = (
    "network.trunk=[32, 64]", "network.code=[64]", "network.decoder=[96, 64]",
    "network.template_points=256", "network.shift=0.0",
)  # fmt: skip


@pytest.fixture(scope="module")
def one_template() -> list[TrainingPair]:
    """Four pairs of one template."""
    config = PairConfig(what="animal", sampling="shared", points=(96, 96), radius=0.5)
    stream = TrainingPairs(config, 5)
    found = [stream.draw(index) for index in range(40)]
    return [pair for pair in found if pair.template == "dog"][:4]


def test_the_published_size() -> None:
    network = TemplateNetwork(TemplateConfig())
    parts = network.trunk, network.last, network.code
    encoder = sum(p.numel() for part in parts for p in part.parameters())
    decoder = sum(p.numel() for p in network.decoder.parameters())
    assert [encoder, decoder] == pytest.approx([2.24e6, 1.71e6], rel=0.02)
    deformation = ElementaryStructures(TemplateConfig(deformation=(128, 128))).deformation
    assert deformation is not None
    assert sum(p.numel() for p in deformation.parameters()) == pytest.approx(17_000, rel=0.1)


def test_templates_are_those_of_the_generator(settings: Callable[..., Any]) -> None:
    network = learner_of(settings("3d-coded", *SMALL))
    assert isinstance(network, TemplateNetwork)
    templates = own_generator("animal").templates
    assert network.templates.shape == (len(templates), 256, 3)
    rest = next(iter(templates.values())).rest
    assert rest is not None
    own = network.templates[0].numpy()
    assert np.linalg.norm(own[:, None] - rest, axis=2).min(axis=1).max() < 1e-6
    with pytest.raises(UsageError, match=r"got 'folder' for 3d-coded, expected generated shapes"):
        learner_of(settings("3d-coded", "pairs.what=folder"))
    with pytest.raises(InputError, match=r"template network: got layers .*, expected some"):
        TemplateConfig(template_points=0)


def test_pairs_without_a_template_are_refused(
    settings: Callable[..., Any], four_pairs: list[TrainingPair]
) -> None:
    network = learner_of(settings("3d-coded", *SMALL))
    bare = replace(four_pairs[0], source_rest=None)
    with pytest.raises(InputError, match=r"3d-coded: got training pairs without their places"):
        network.loss([PairTensors.of(bare, torch.device("cpu"))], 0.0)


def test_a_perfect_decoder_gives_the_truth() -> None:
    """With two affine shapes of one template, the map through it is exact up to its spacing."""
    torch.manual_seed(0)
    network = TemplateNetwork(TemplateConfig(template_points=200)).eval()
    template = torch.rand(200, 3)
    network.templates.copy_(template[None])
    shear = torch.tensor([[1.0, 0.4, 0], [0, 1, 0], [0.2, 0, 1]])

    def codes(shapes: list[torch.Tensor]) -> torch.Tensor:
        return torch.tensor([[float(s[:, 0].max() > 1.1)] for s in shapes])

    def decode(places: list[torch.Tensor], given: torch.Tensor) -> list[torch.Tensor]:
        return [p @ shear.T if float(c) else p for p, c in zip(places, given, strict=True)]

    network.codes, network.decode = codes, decode  # type: ignore[method-assign,assignment]
    order = torch.randperm(200)
    target = (template @ shear.T)[order]
    found = network.partners(template, target)
    torch.testing.assert_close(order[found], torch.arange(200))


def test_searching_lowers_the_chamfer_distance(settings: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    network = learner_of(settings("3d-coded", *SMALL)).eval()
    assert isinstance(network, TemplateNetwork)
    shapes = [torch.rand(80, 3), torch.rand(90, 3)]
    template, codes = network.templates[0], network.codes(shapes).detach()
    before = network.misfit(network.decode([template] * 2, codes), shapes)
    found = network.searched(shapes, codes, template, 30)
    after = network.misfit(network.decode([template] * 2, found), shapes)
    assert bool((after < before).all())
    expected = chamfer(network.decode([template] * 2, codes)[0][None], shapes[0][None])
    torch.testing.assert_close(before[:1], expected)


def test_gradients_of_the_codes() -> None:
    torch.manual_seed(0)
    config = TemplateConfig(trunk=(4, 6), code=(5,), decoder=(6,), deformation=(4,), shift=0.0)
    network = ElementaryStructures(config).double().eval()
    points = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    rest = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda p, r: network.decode([r], network.codes([p]))[0], (points, rest)
    )


@pytest.mark.slow
@pytest.mark.parametrize("system", ["3d-coded", "elementary"])
def test_it_learns_four_pairs_by_heart(
    one_template: list[TrainingPair],
    fitted: Callable[..., tuple[Learner, list[float]]],
    error_of: Callable[..., float],
    system: str,
) -> None:
    assert len(one_template) == 4
    learner, losses = fitted(system, one_template, *SMALL, steps=300, lr=4e-3)
    assert losses[-1] < 0.05 * losses[0]
    assert error_of(learner, one_template) < 0.12  # of shapes with radius 0.5
