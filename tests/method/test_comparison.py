from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.comparison import Comparison
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig

ENCODER = EncoderConfig(widths=(8, 12), dimension=16, neighbors=6)


def trained(comparison: Comparison) -> Comparison:
    """Give the map that begins at zero other weights, as training does."""
    torch.nn.init.normal_(comparison.leaving.weight, std=0.1)
    return comparison


def shapes(seed: int, *sizes: int, dimension: int = 16) -> list[tuple[Tensor, Tensor]]:
    """Points and features of shapes of the given sizes."""
    drawn = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, 3, generator=drawn, dtype=torch.float64),
            torch.randn(size, dimension, generator=drawn, dtype=torch.float64),
        )
        for size in sizes
    ]


def attended(layer: torch.nn.Module, ours: Tensor, theirs: Tensor) -> Tensor:
    """Attention of (N, C) to (M, C), point by point and head by head."""
    query = layer.reading(layer.norm(ours)).chunk(3, dim=1)[0]  # (N, C')
    _, key, value = layer.reading(layer.norm(theirs)).chunk(3, dim=1)  # (M, C') each
    size = query.shape[1] // layer.heads
    found = torch.zeros_like(query)
    for head in range(layer.heads):
        own = slice(head * size, (head + 1) * size)
        for i in range(len(ours)):
            scores = torch.stack([query[i, own] @ other for other in key[:, own]])  # (M,)
            shares = torch.exp(scores / math.sqrt(size))  # (M,)
            found[i, own] = (shares / shares.sum()) @ value[:, own]
    return layer.writing(found)  # type: ignore[no-any-return]


def plain(comparison: Comparison, both: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Features and log odds of both shapes of one pair, as the docstring of the module says."""
    unit = [f / f.norm(dim=1, keepdim=True) * math.sqrt(f.shape[1]) for _, f in both]
    waves = [
        torch.cat(
            [
                wave(2 * math.pi * points[:, axis : axis + 1] / length)
                for wave in (torch.sin, torch.cos)
                for axis in range(3)
                for length in (4.0, 2.0, 1.0, 0.5)
            ],
            dim=1,
        )
        for points, _ in both
    ]
    mixed = [comparison.entering(torch.cat(one, dim=1)) for one in zip(unit, waves, strict=True)]
    for block in comparison.blocks:
        mixed = [m + attended(block.across, m, mixed[1 - n]) for n, m in enumerate(mixed)]
        mixed = [m + attended(block.within, m, m) for m in mixed]
        gelu = torch.nn.functional.gelu
        mixed = [m + block.narrowing(gelu(block.widening(block.norm(m)))) for m in mixed]
    mixed = [comparison.norm(m) for m in mixed]
    return [
        (u + comparison.leaving(m), comparison.overlap(m)[:, 0])
        for u, m in zip(unit, mixed, strict=True)
    ]


def test_points_read_the_other_shape_then_their_own() -> None:
    torch.manual_seed(0)
    comparison = trained(Comparison(16, 2).double())
    first, second = shapes(1, 7, 5), shapes(2, 6, 8)
    found = comparison(
        [(pair[0][0], pair[1][0]) for pair in (first, second)],
        [(pair[0][1], pair[1][1]) for pair in (first, second)],
    )
    for one, pair in zip(found, (first, second), strict=True):
        (source, here), (target, there) = plain(comparison, pair)
        for ours, theirs in zip(one, (source, target, here, there), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_source_and_target_are_treated_alike() -> None:
    torch.manual_seed(0)
    comparison = trained(Comparison(16, 1).double())
    (p, f), (q, g) = shapes(3, 9, 6)
    (forth,) = comparison([(p, q)], [(f, g)])
    (back,) = comparison([(q, p)], [(g, f)])
    torch.testing.assert_close(forth.source, back.target)
    torch.testing.assert_close(forth.target_overlap, back.source_overlap)


def test_equal_points_attract_each_other_from_the_start() -> None:
    torch.manual_seed(0)
    layer = Comparison(512, 1).blocks[0].across
    points = torch.randn(20, 256)
    query, key, _ = layer.reading(layer.norm(points)).chunk(3, dim=1)  # (20, 128) each
    shares = (query @ key.T / 8).softmax(dim=1)  # (20, 20)
    assert (shares.diagonal() > 0.9).all()


def test_gradcheck() -> None:
    torch.manual_seed(0)
    comparison = trained(Comparison(4, 1).double())
    (p, f), (q, g) = shapes(4, 4, 3, dimension=4)
    f.requires_grad_()
    g.requires_grad_()

    def compared(ours: Tensor, theirs: Tensor) -> tuple[Tensor, ...]:
        return tuple(comparison([(p, q)], [(ours, theirs)])[0])

    assert torch.autograd.gradcheck(compared, (f, g))


def test_a_network_compares_nothing_until_it_is_trained() -> None:
    torch.manual_seed(0)
    model = LTENet(ModelConfig(encoder=ENCODER)).eval()
    assert model.comparison is None
    longer = model.with_blocks(comparison=2)
    assert longer.config.comparison == 2
    assert longer.with_blocks(comparison=3).config.comparison == 2  # those that are there stay
    points = torch.randn(40, 3)
    features = model.embed(points)  # (40, D)
    assert torch.equal(features, longer.embed(points))
    assert longer.comparison is not None
    (found,) = longer.comparison([(points, points)], [(features, features)])
    cosines = torch.cosine_similarity(features, found.source)  # (40,)
    torch.testing.assert_close(cosines, torch.ones(40))


def test_the_encoder_begins_as_it_does_without_comparison() -> None:
    torch.manual_seed(0)
    bare = LTENet(ModelConfig(encoder=ENCODER)).state_dict()
    torch.manual_seed(0)
    more = LTENet(ModelConfig(encoder=ENCODER, comparison=1)).state_dict()
    assert all(torch.equal(more[name], value) for name, value in bare.items())


@pytest.mark.parametrize("blocks", [-1, 1000])
def test_impossible_numbers_of_blocks_are_refused(blocks: int) -> None:
    with pytest.raises(InputError, match="blocks of comparison"):
        ModelConfig(comparison=blocks)
