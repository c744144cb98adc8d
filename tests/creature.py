"""A small creature that bends, with features: what tests of refinement share."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair


def body(count: int, seed: int) -> Tensor:
    """Random points on a creature without symmetry: a trunk, a long and a short limb, a head."""
    generator = torch.Generator().manual_seed(seed)
    axes = torch.tensor([[0.25, 0.6, 0.15], [0.5, 0.07, 0.08], [0.3, 0.07, 0.08], [0.1, 0.2, 0.2]])
    centres = torch.tensor([[0.0, 0, 0], [0.6, 0.4, 0.0], [-0.4, 0.2, 0.1], [0.0, 0.75, 0.1]])
    part = torch.multinomial(
        torch.tensor([0.5, 0.2, 0.15, 0.15]), count, replacement=True, generator=generator
    )
    direction = torch.randn(count, 3, generator=generator)
    sphere = torch.nn.functional.normalize(direction, dim=1)
    return (sphere * axes[part] + centres[part]) * 0.9


def bent(points: Tensor) -> Tensor:
    """Bend about z by up to a radian along x, sway, and lean forward along y."""
    x, y, z = points.unbind(dim=1)
    angle = 1.0 * x
    turned = torch.stack(
        [x * angle.cos() - 0.3 * y * angle.sin(), y + x * angle.sin(), z + 0.2 * y * y], dim=1
    )
    return turned - torch.tensor([0.05, 0.02, 0.0]).to(points)


def embedded(points: Tensor, *, noise: float, seed: int, dimension: int = 64) -> Tensor:
    """Random Fourier features of the points at rest, with noise."""
    generator = torch.Generator().manual_seed(7)
    frequencies = 4.0 * torch.randn(3, dimension, generator=generator)
    phases = 2 * math.pi * torch.rand(dimension, generator=generator)
    features = torch.cos(points.float() @ frequencies + phases)
    own = torch.Generator().manual_seed(seed)
    return features + noise * torch.randn(features.shape, generator=own)


def pair_of(
    source: Tensor, target: Tensor, source_features: Tensor, target_features: Tensor
) -> Pair:
    """A pair of clouds with features."""
    return Pair(
        EmbeddedShape(source, source_features, name="source"),
        EmbeddedShape(target, target_features, name="target"),
    )
