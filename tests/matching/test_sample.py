from __future__ import annotations

import numpy as np
import torch

from ltenet.matching.cleaning import cleaned
from ltenet.matching.sample import Sample
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.shape import Shape

AROUND = 12


def tube(gap: float, length: int = 60) -> Shape:
    """A thin tube in the form of a U, whose arms are `gap` apart."""
    turn = np.linspace(0, np.pi, 21)
    arm = np.arange(float(length), 0, -1)
    middle = np.concatenate(
        [
            np.stack([arm, 0 * arm + gap / 2], axis=1),
            gap / 2 * np.stack([-np.sin(turn), np.cos(turn)], axis=1),
            np.stack([arm[::-1], 0 * arm - gap / 2], axis=1),
        ]
    )  # (R, 2)
    along = np.gradient(middle, axis=0)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    across /= np.linalg.norm(across, axis=1, keepdims=True)  # (R, 2)
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    rings = middle[:, None] + 2 * np.cos(angle)[:, None] * across[:, None]  # (R, a, 2)
    heights = np.broadcast_to(2 * np.sin(angle), rings.shape[:2])
    points = np.concatenate([rings, heights[..., None]], axis=2).reshape(-1, 3)
    here = np.arange(len(points)).reshape(-1, AROUND)
    beside = np.roll(here, -1, axis=1)
    faces = np.concatenate(
        [
            np.stack([here[:-1], beside[:-1], here[1:]], axis=2).reshape(-1, 3),
            np.stack([beside[:-1], beside[1:], here[1:]], axis=2).reshape(-1, 3),
        ]
    )
    jitter = 0.05 * np.random.default_rng(0).standard_normal(points.shape)  # leaves no ties
    return Shape(points + jitter, faces=faces)


def features(shape: Shape, *, surface: bool) -> torch.Tensor:
    torch.manual_seed(0)
    encoder = EncoderConfig(widths=(8, 12), dimension=16, neighbors=20, surface=surface)
    model = LTENet(ModelConfig(encoder=encoder, radius=0.5)).eval()
    rows = np.arange(len(shape))
    return Sample(cleaned(shape, clean=False, mirror=False), model, rows, (rows,)).embed(
        0, np.eye(3)
    )


def as_cloud(shape: Shape) -> Shape:
    return Shape(shape.points)


def test_parts_that_touch_do_not_mix_in_the_embedding_of_a_mesh() -> None:
    touching = tube(gap=4.5)
    differ = (features(touching, surface=True) - features(as_cloud(touching), surface=True)).norm(
        dim=1
    )
    rings = differ.reshape(-1, AROUND)
    assert (rings[:50] > 1e-4).any(dim=1).all()  # along the whole arm
    # A network that does not ask for the surface, such as the paper's, sees the same points.
    assert torch.equal(
        features(touching, surface=False), features(as_cloud(touching), surface=False)
    )


def test_parts_that_do_not_touch_are_embedded_alike_with_and_without_faces() -> None:
    apart = tube(gap=60.0)
    torch.testing.assert_close(
        features(apart, surface=True), features(as_cloud(apart), surface=True)
    )


def test_a_mesh_far_from_the_origin_is_embedded_alike() -> None:
    near = tube(gap=4.5)
    far = Shape(1e-3 * near.points + 5e4, faces=near.faces)  # single precision would merge points
    torch.testing.assert_close(
        features(far, surface=True), features(near, surface=True), atol=1e-2, rtol=0
    )
