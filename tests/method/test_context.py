from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.context import ContextBlock
from ltenet.method.encoder import DGCNN, EncoderConfig
from ltenet.method.model import LTENet, ModelConfig

WITHOUT = EncoderConfig(widths=(8, 12), dimension=256, neighbors=6)
WITH = EncoderConfig(widths=(8, 12), dimension=256, neighbors=6, context=2)


def trained(block: ContextBlock) -> ContextBlock:
    """Give the maps that begin at zero other weights, as training does."""
    for last in (block.writing, block.narrowing):
        torch.nn.init.normal_(last.weight, std=0.05)
    return block


def plain_block(block: ContextBlock, features: Tensor) -> Tensor:
    """One shape, point by point and head by head, as the docstring of the module says."""
    read = block.reading(block.attention_norm(features))  # (N, 3 C)
    query, key, value = read.chunk(3, dim=1)  # (N, C) each
    size = query.shape[1] // block.heads
    found = torch.zeros_like(query)  # (N, C)
    for head in range(block.heads):
        own = slice(head * size, (head + 1) * size)
        for i in range(len(features)):
            scores = torch.stack([query[i, own] @ other for other in key[:, own]])  # (N,)
            shares = torch.exp(scores / math.sqrt(size))  # (N,)
            found[i, own] = (shares / shares.sum()) @ value[:, own]
    features = features + block.writing(found)  # (N, D)
    widened = torch.nn.functional.gelu(block.widening(block.point_norm(features)))  # (N, D)
    return features + block.narrowing(widened)


def test_a_block_is_attention_and_a_pointwise_network() -> None:
    torch.manual_seed(0)
    block = trained(ContextBlock(256).double())
    assert block.heads == 2
    first, second = torch.randn(7, 256).double(), torch.randn(5, 256).double()
    found = block(torch.cat([first, second]), [7, 5])
    expected = torch.cat([plain_block(block, first), plain_block(block, second)])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dimension", [1, 10, 130])
def test_any_dimension_will_do(dimension: int) -> None:
    assert ContextBlock(dimension)(torch.randn(4, dimension), [4]).shape == (4, dimension)


def test_gradcheck() -> None:
    torch.manual_seed(0)
    block = trained(ContextBlock(6).double())
    features = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda given: block(given, [2, 3]), features)


def test_a_point_reads_all_others_of_its_shape_and_none_of_another() -> None:
    torch.manual_seed(0)
    block = trained(ContextBlock(16))
    features = torch.randn(9, 16)
    changed = features.clone()
    changed[0] += 1.0
    moved = (block(features, [5, 4]) - block(changed, [5, 4])).abs().amax(dim=1)  # (9,)
    assert (moved[:5] > 0).all()
    assert (moved[5:] == 0).all()


def test_a_network_embeds_alike_until_new_blocks_are_trained() -> None:
    torch.manual_seed(0)
    model = LTENet(ModelConfig(encoder=WITHOUT)).eval()
    longer = model.with_blocks(context=2)
    assert longer.config.encoder == WITH
    assert longer.with_blocks().config.encoder.context == 2  # those that are there stay
    points = torch.randn(40, 3)
    assert torch.equal(model.embed(points), longer.embed(points))
    for block in longer.encoder.context:
        trained(block)
    assert not torch.equal(model.embed(points), longer.embed(points))


def test_the_other_weights_begin_as_they_do_without_blocks() -> None:
    torch.manual_seed(0)
    bare = DGCNN(WITHOUT).state_dict()
    torch.manual_seed(0)
    more = DGCNN(WITH).state_dict()
    assert all(torch.equal(more[name], value) for name, value in bare.items())


@pytest.mark.parametrize(("kind", "context"), [("dgcnn", -1), ("dgcnn", 100), ("pointnet", 1)])
def test_impossible_numbers_of_blocks_are_refused(kind: str, context: int) -> None:
    with pytest.raises(InputError, match="blocks of context"):
        EncoderConfig(kind=kind, context=context)  # type: ignore[arg-type]
