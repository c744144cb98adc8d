"""Networks that stand in for DGCNN: each against its formula written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ltenet.errors import InputError
from ltenet.method.encoder import DGCNN, EncoderConfig
from ltenet.method.encoders import ENCODERS, make_encoder
from ltenet.method.laplacian import laplacian_basis
from ltenet.method.losses import objective
from ltenet.method.model import LTENet, ModelConfig
from ltenet.method.pointnet import PointNet
from ltenet.method.spectral import SpectralNet, diffuse
from ltenet.shape import Shape

OTHERS = ("pointnet", "spectral")


def config(kind: str) -> EncoderConfig:
    return EncoderConfig(widths=(8, 12), dimension=10, neighbors=6, functions=12, kind=kind)  # type: ignore[arg-type]


def clouds(batch: int = 2, count: int = 60) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(batch, count, 3, generator=generator, dtype=torch.float64)
    return F.normalize(directions, dim=-1) * torch.tensor([1.0, 0.6, 0.3], dtype=torch.float64)


def arch() -> Shape:
    """A bent strip, whose ends are near each other in space and far apart along the mesh."""
    turn, width = np.meshgrid(np.linspace(0.2, 6.0, 40), np.arange(4), indexing="ij")
    points = np.stack([np.cos(turn), np.sin(turn), 0.15 * width], axis=2).reshape(-1, 3)
    corner = (np.arange(39)[:, None] * 4 + np.arange(3)).reshape(-1)
    faces = np.concatenate(
        [
            np.stack([corner, corner + 4, corner + 1], 1),
            np.stack([corner + 4, corner + 5, corner + 1], 1),
        ]
    )
    return Shape(points, faces=faces)


def layer(features: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    """Linear map, BatchNorm by the batch, LeakyReLU, written out."""
    values = features @ module.linear.weight.T  # type: ignore[union-attr]
    mean, variance = values.mean(dim=0), values.var(dim=0, unbiased=False)
    return F.leaky_relu((values - mean) / (variance + 1e-5).sqrt(), 0.2)


def test_pointnet_is_its_formula() -> None:
    torch.manual_seed(0)
    network = PointNet(config("pointnet")).double().train()
    shapes = clouds()
    first = layer(shapes.flatten(0, 1), network.layers[0])
    second = layer(first, network.layers[1])
    whole = second.view(2, 60, 12).amax(dim=1).repeat_interleave(60, dim=0)
    expected = layer(torch.cat([first, second, whole], dim=1), network.head)
    torch.testing.assert_close(network(shapes), expected.view(2, 60, 10))


def test_diffusion_is_the_heat_equation() -> None:
    """Against the matrix exponential of the full generalised eigenproblem."""
    points = clouds(1)[0]
    basis = laplacian_basis(points, 60)
    features, times = torch.randn(60, 2, dtype=torch.float64), torch.tensor([0.01, 0.3]).double()
    # With all functions, phi^-1 is phi^T m and the Laplacian is phi mu phi^T m.
    generator = basis.functions @ torch.diag(basis.values) @ torch.linalg.inv(basis.functions)
    for channel in range(2):
        expected = torch.linalg.matrix_exp(-times[channel] * generator) @ features[:, channel]
        found = diffuse(features, basis, times)[:, channel]
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    still = diffuse(features, basis, torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(still, features, rtol=1e-6, atol=1e-7)
    ever = diffuse(features, basis, torch.full((2,), 1e6, dtype=torch.float64))
    mean = (basis.masses[:, None] * features).sum(dim=0)
    torch.testing.assert_close(ever, mean.expand(60, 2), rtol=1e-5, atol=1e-6)


def test_the_spectral_network_uses_faces_where_they_are_given() -> None:
    shape = arch()
    torch.manual_seed(0)
    model = LTENet(ModelConfig(encoder=config("spectral"))).eval()
    on_mesh = model.embed(shape)
    on_cloud = model.embed(Shape(shape.points))
    assert on_mesh.shape == (len(shape), 10)
    assert not torch.allclose(on_mesh, on_cloud, atol=1e-3)
    with torch.no_grad():
        points = torch.tensor(shape.normalized(radius=None).points, dtype=torch.float32)
        basis = laplacian_basis(points, 12, faces=torch.tensor(np.array(shape.faces)))
        single = type(basis)(*(part.float() for part in basis))
        expected = model.encoder(points[None], [single])[0]
    torch.testing.assert_close(on_mesh, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="got faces for 2 shapes"):
        SpectralNet(config("spectral")).graphs_of(clouds(), torch.zeros(1, 3, dtype=torch.int64))


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("training", [True, False])
def test_gradients_along_a_direction_are_differences(kind: str, training: bool) -> None:
    """In float64: the slope along a random direction of all weights, by central differences."""
    torch.manual_seed(0)
    network = make_encoder(config(kind)).double().train(training)
    shapes = clouds(count=40)
    graphs = network.graphs_of(shapes)
    grad = torch.randn(2, 40, 10, dtype=torch.float64)
    parameters = list(network.parameters())
    directions = [torch.randn_like(value) for value in parameters]

    def value(step: float) -> float:
        with torch.no_grad():
            for own, along in zip(parameters, directions, strict=True):
                own.add_(along, alpha=step)
            result = float((network(shapes, graphs) * grad).sum())
            for own, along in zip(parameters, directions, strict=True):
                own.sub_(along, alpha=step)
        return result

    (network(shapes, graphs) * grad).sum().backward()
    slope = sum(float((p.grad * d).sum()) for p, d in zip(parameters, directions, strict=True))
    assert slope == pytest.approx((value(1e-6) - value(-1e-6)) / 2e-6, rel=1e-4)


@pytest.mark.parametrize("kind", tuple(ENCODERS))
def test_every_network_trains_saves_and_loads(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = LTENet(ModelConfig(encoder=config(kind))).train()
    shapes = clouds().float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        source, target = model(list(shapes), list(shapes.flip(1)))
        loss = objective(shapes, shapes.flip(1), torch.stack(source), torch.stack(target)).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert min(losses[1:]) < losses[0]
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    model.save_pretrained(tmp_path)
    again = LTENet.from_pretrained(tmp_path)
    assert type(again.encoder) is type(model.encoder)
    torch.testing.assert_close(again.embed(shapes[0]), model.embed(shapes[0]))


@pytest.mark.parametrize("kind", OTHERS)
def test_shapes_of_different_sizes_share_one_pass(kind: str) -> None:
    network = make_encoder(config(kind)).double().eval()
    first, second = clouds(count=50)[0], clouds(count=70)[0]
    both = network([first, second])
    assert [len(part) for part in both] == [50, 70]
    torch.testing.assert_close(both[1], network(second[None])[0], rtol=1e-6, atol=1e-8)


def test_older_configurations_mean_the_papers_network() -> None:
    assert isinstance(make_encoder(EncoderConfig()), DGCNN)
    assert ModelConfig().encoder.kind == "dgcnn"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "other"}, "got the kind 'other'"),
        ({"kind": "pointnet", "dynamic": True}, "it has no graph"),
        ({"kind": "pointnet", "surface": True}, "got surface for pointnet"),
        ({"surface": True, "dynamic": True}, "dynamic True, expected dgcnn"),
        ({"kind": "spectral", "functions": 1}, "got 1 eigenfunctions"),
    ],
)
def test_impossible_networks_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EncoderConfig(**options)  # type: ignore[arg-type]
