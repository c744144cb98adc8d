from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.encoder import EncoderConfig
from ltenet.method.matchability import Matchability
from ltenet.method.model import LTENet, ModelConfig

ENCODER = EncoderConfig(widths=(8, 12), dimension=16, neighbors=6)


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


def plain(told: Matchability, both: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """Log odds of both shapes of one pair, as the docstring of the module says."""
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
    mixed = [told.entering(torch.cat(one, dim=1)) for one in zip(unit, waves, strict=True)]
    for block in told.blocks:
        mixed = [m + attended(block.across, m, mixed[1 - n]) for n, m in enumerate(mixed)]
        mixed = [m + attended(block.within, m, m) for m in mixed]
        gelu = torch.nn.functional.gelu
        mixed = [m + block.narrowing(gelu(block.widening(block.norm(m)))) for m in mixed]
    return [told.odds(told.norm(m))[:, 0] for m in mixed]


def test_points_read_the_other_shape_then_their_own() -> None:
    torch.manual_seed(0)
    matchability = Matchability(16, 2).double()
    first, second = shapes(1, 7, 5), shapes(2, 6, 8)
    found = matchability(
        [(pair[0][0], pair[1][0]) for pair in (first, second)],
        [(pair[0][1], pair[1][1]) for pair in (first, second)],
    )
    for one, pair in zip(found, (first, second), strict=True):
        for ours, theirs in zip(one, plain(matchability, pair), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_source_and_target_are_treated_alike() -> None:
    torch.manual_seed(0)
    matchability = Matchability(16, 1).double()
    (p, f), (q, g) = shapes(3, 9, 6)
    (forth,) = matchability([(p, q)], [(f, g)])
    (back,) = matchability([(q, p)], [(g, f)])
    torch.testing.assert_close(forth.source, back.target)
    torch.testing.assert_close(forth.target, back.source)


def test_equal_points_attract_each_other_from_the_start() -> None:
    torch.manual_seed(0)
    layer = Matchability(512, 1).blocks[0].across
    points = torch.randn(20, 256)
    query, key, _ = layer.reading(layer.norm(points)).chunk(3, dim=1)  # (20, 128) each
    shares = (query @ key.T / 8).softmax(dim=1)  # (20, 20)
    assert (shares.diagonal() > 0.9).all()


def test_gradcheck() -> None:
    torch.manual_seed(0)
    matchability = Matchability(4, 1).double()
    (p, f), (q, g) = shapes(4, 4, 3, dimension=4)
    f.requires_grad_()
    g.requires_grad_()

    def told(ours: Tensor, theirs: Tensor) -> tuple[Tensor, ...]:
        return tuple(matchability([(p, q)], [(ours, theirs)])[0])

    assert torch.autograd.gradcheck(told, (f, g))


def test_blocks_are_added_to_a_network_that_embeds_as_before() -> None:
    torch.manual_seed(0)
    model = LTENet(ModelConfig(encoder=ENCODER)).eval()
    assert model.matchability is None
    longer = model.with_blocks(matchability=2)
    assert longer.config.matchability == 2
    assert longer.with_blocks(matchability=3).config.matchability == 2  # those that are there stay
    points = torch.randn(40, 3)
    assert torch.equal(model.embed(points), longer.embed(points))


def test_the_encoder_begins_as_it_does_without_blocks() -> None:
    torch.manual_seed(0)
    bare = LTENet(ModelConfig(encoder=ENCODER)).state_dict()
    torch.manual_seed(0)
    more = LTENet(ModelConfig(encoder=ENCODER, matchability=1)).state_dict()
    assert all(torch.equal(more[name], value) for name, value in bare.items())


@pytest.mark.parametrize("blocks", [-1, 1000])
def test_impossible_numbers_of_blocks_are_refused(blocks: int) -> None:
    with pytest.raises(InputError, match="blocks of matchability"):
        ModelConfig(matchability=blocks)


def test_it_learns_which_half_of_a_cloud_is_missing() -> None:
    """Features that tell places, and a target without its upper half."""
    torch.manual_seed(0)
    told = Matchability(32, 1)
    optimizer = torch.optim.AdamW(told.parameters(), lr=3e-3)
    waves = torch.randn(3, 32)

    def draw() -> tuple[Tensor, Tensor, Tensor]:
        source, target = torch.randn(60, 3), torch.randn(120, 3)
        height = float(torch.randn(())) * 0.5
        return source, target[target[:, 1] < height], source[:, 1] < height

    def logits(source: Tensor, target: Tensor) -> Tensor:
        features = ((source @ waves).sin(), (target @ waves).sin())
        return told([(source, target)], [features])[0].source

    for _ in range(150):
        source, target, known = draw()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits(source, target), known.float()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = [
        float(((logits(source, target) > 0) == known).float().mean())
        for source, target, known in (draw() for _ in range(20))
    ]
    assert sum(right) / 20 > 0.8
