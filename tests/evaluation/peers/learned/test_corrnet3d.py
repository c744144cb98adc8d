"""CorrNet3D: matches that sum to one, the published size, and four pairs learned by heart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.code_decoder import CodeDecoder
from ltenet.evaluation.peers.learned.corrnet3d import CorrNet3D, CorrNet3DConfig, Sharpener
from ltenet.evaluation.peers.learned.learner import Learner, learner_of
from ltenet.method.losses import smoothness
from ltenet.training.pair_tensors import PairTensors

SMALL = (
    "network.points=96", "network.widths=[16, 32]", "network.local=32", "network.head=[32, 16]",
    "network.sharpener=128", "network.decoder=[64, 32]", "network.neighbors=8", "network.groups=4",
)  # fmt: skip


def test_the_published_size() -> None:
    network = CorrNet3D(CorrNet3DConfig())
    sizes = [
        sum(p.numel() for p in part.parameters())
        for part in (network.encoder, network.sharpener, network.decoder)
    ]
    assert sizes == pytest.approx([1.30e6, 2.36e6, 1.71e6], rel=0.02)


def test_matches_of_a_target_sum_to_one() -> None:
    torch.manual_seed(0)
    config = CorrNet3DConfig(points=30, widths=(8,), local=8, head=(8,), sharpener=40, decoder=(8,),
                             neighbors=5, groups=2)  # fmt: skip
    network = CorrNet3D(config)
    f, g = torch.rand(2, 30, 8), torch.rand(2, 30, 8)
    matches = network.matches(f, g)
    torch.testing.assert_close(matches.sum(dim=1), torch.ones(2, 30))
    # The plain formula, with the sharpness in the forward pass.
    similar = 1 / (torch.cdist(f, g).square() + 1e-6)
    expected = (8 * network.sharpener(similar)).softmax(dim=1)
    torch.testing.assert_close(matches, expected, rtol=1e-3, atol=1e-4)


def test_gradients_of_the_sharpener_and_of_the_decoder() -> None:
    torch.manual_seed(0)
    sharpener = Sharpener(5, 7).double()
    inputs = torch.rand(2, 6, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sharpener, inputs)
    output = sharpener(inputs)
    torch.testing.assert_close(output.mean(dim=1), torch.zeros_like(output[:, 0]))
    torch.testing.assert_close(
        output.var(dim=1, correction=0), torch.ones_like(output[:, 0]), rtol=0.01, atol=0.01
    )
    decoder = CodeDecoder(4, (6, 5)).double().eval()
    points = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    codes = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda p, c: torch.cat(decoder([p[:4], p[4:]], c)), (points, codes)
    )
    assert float(torch.cat(decoder([100 * points], codes[:1])).detach().abs().max()) <= 2


def test_the_loss_by_plain_formulas(
    settings: Callable[..., object], four_pairs: list[TrainingPair]
) -> None:
    torch.manual_seed(0)
    network = learner_of(settings("corrnet3d", *SMALL))  # type: ignore[arg-type]
    network.eval()
    assert isinstance(network, CorrNet3D)
    pair = PairTensors.of(four_pairs[0], torch.device("cpu"))
    terms = network.loss([pair], 0.0)
    features, codes = network.encoder(torch.stack([pair.source, pair.target]))
    p = network.matches(features[:1], features[1:])[0]
    forth, back = p @ pair.target, p.T @ pair.source
    first, second = network.decoder([forth, back], codes)
    rebuilt = (pair.source - first).norm() + (pair.target - second).norm()
    torch.testing.assert_close(terms.rebuilt, rebuilt)
    torch.testing.assert_close(terms.bijective, (p @ p.T - torch.eye(96)).norm())
    smooth = smoothness(pair.source[None], forth[None]) + smoothness(pair.target[None], back[None])
    torch.testing.assert_close(terms.smooth, smooth[0])
    total = 10 * terms.rebuilt + terms.bijective + 0.1 * terms.smooth
    torch.testing.assert_close(terms.total, total)


def test_shapes_of_another_size_are_refused_in_training(
    settings: Callable[..., object], four_pairs: list[TrainingPair]
) -> None:
    network = learner_of(settings("corrnet3d", *SMALL, "network.points=90"))  # type: ignore[arg-type]
    pair = PairTensors.of(four_pairs[0], torch.device("cpu"))
    with pytest.raises(InputError, match=r"got shapes of 96 points, expected 90, .*points=96"):
        network.loss([pair], 0.0)
    with pytest.raises(InputError, match=r"corrnet3d: got widths .*, expected some layers"):
        CorrNet3DConfig(points=10, neighbors=20)


@pytest.mark.slow
def test_it_learns_four_pairs_by_heart(
    four_pairs: list[TrainingPair], fitted: Callable[..., tuple[Learner, list[float]]]
) -> None:
    """Both shapes can be rebuilt after a while, without any label."""
    _, losses = fitted("corrnet3d", four_pairs, *SMALL, steps=120, lr=3e-3)
    assert losses[-1] < 0.55 * losses[0]
