"""Inputs without a canonical frame: what changes them, and that gradients are right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from ltenet.configuration import from_dict, to_dict
from ltenet.errors import InputError
from ltenet.method.encoder import DGCNN, EncoderConfig
from ltenet.method.frameless import Inputs, input_channels, scaled_invariants

SMALL = EncoderConfig(widths=(8, 12), dimension=10, neighbors=6, dilations=(1, 2))


def network(inputs: Inputs, *, seed: int = 0) -> DGCNN:
    torch.manual_seed(seed)
    return DGCNN(replace(SMALL, inputs=inputs)).double().eval()


def shape(count: int = 200, *, seed: int = 0) -> Tensor:
    """Points without any symmetry."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    return points * torch.tensor([1.0, 0.5, 0.3], dtype=torch.float64) + 0.2 * points.square()


def turned(points: Tensor, *, seed: int = 0) -> Tensor:
    rotation = torch.from_numpy(Rotation.random(random_state=seed).as_matrix().copy())
    return points @ rotation.T + 0.3


@pytest.mark.parametrize("inputs", ["invariants", "axes"])
@pytest.mark.parametrize("seed", range(3))
def test_no_motion_changes_the_features(inputs: Inputs, seed: int) -> None:
    encoder, points = network(inputs), shape()
    before, after = encoder([points, turned(points, seed=seed)])
    torch.testing.assert_close(after, before, atol=1e-8, rtol=1e-6)


def test_coordinates_are_read_as_they_are() -> None:
    encoder, points = network("coordinates"), shape()
    assert encoder.input is None
    before, after = encoder([points, turned(points)])
    assert float((after - before).detach().abs().max()) > 0.05 * float(before.detach().abs().max())


def test_axes_alone_tell_a_shape_from_its_mirror_image() -> None:
    points = shape()
    mirrored = points * torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64)
    blind, seeing = (network(inputs)([points, mirrored]) for inputs in ("invariants", "axes"))
    torch.testing.assert_close(blind[1], blind[0], atol=1e-8, rtol=1e-6)
    assert float((seeing[1] - seeing[0]).detach().abs().max()) > 1e-3


def test_measures_hardly_depend_on_the_number_of_points() -> None:
    flat = torch.rand(8000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    flat[:, 2] = 0.0
    coarse, fine = (scaled_invariants(points).mean(dim=0) for points in (flat[:2000], flat))
    assert coarse.shape == (input_channels("invariants"),)
    # Both spreads within the plane, at each scale; the third is 0.
    torch.testing.assert_close(
        fine[[4, 5, 9, 10, 14, 15]], coarse[[4, 5, 9, 10, 14, 15]], rtol=0.1, atol=0
    )
    torch.testing.assert_close(fine[[3, 8, 13]], torch.zeros(3).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_gradcheck(training: bool) -> None:
    encoder = network("axes").train(training)
    points = [shape(40), shape(30, seed=1)]
    names = ["input.axes.weigh.weight", "input.axes.layers.0.weight", "layers.0.weight"]
    parameters = dict(encoder.named_parameters())

    def output(*values: Tensor) -> Tensor:
        given = dict(zip(names, values, strict=True))
        found = torch.func.functional_call(encoder, given, (points,))
        return torch.cat(found)[:5]

    values = [parameters[name].detach().clone().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(output, values, atol=1e-5, fast_mode=True)


def test_shapes_of_a_batch_do_not_touch_each_other() -> None:
    encoder, first, second = network("axes"), shape(80), shape(60, seed=1)
    together = encoder([first, second])
    torch.testing.assert_close(together[1], encoder([second])[0], atol=1e-10, rtol=1e-8)


def test_settings_without_inputs_are_the_paper_s() -> None:
    settings = to_dict(EncoderConfig())
    del settings["inputs"]
    assert from_dict(EncoderConfig, settings, where="old").inputs == "coordinates"
    assert set(DGCNN(SMALL).state_dict()) < set(network("axes").state_dict())
    with pytest.raises(InputError, match=r"inputs 'normals', expected one of .*; try the paper's"):
        EncoderConfig(inputs="normals")  # type: ignore[arg-type]


def test_all_layers_share_statistics_when_asked() -> None:
    encoder = network("axes")
    encoder.share_statistics()
    assert encoder.input is not None
    assert encoder.input.axes is not None
    assert all(layer.shared for layer in (encoder, *encoder.layers, *encoder.input.axes.layers))
