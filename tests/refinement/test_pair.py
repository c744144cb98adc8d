"""The pair: similarities, best matches and neighbours against plain formulas, either way round."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair
from tests.creature import body


def two(count: int = 70, size: int = 90) -> tuple[Pair, Tensor]:
    """A pair with random features, and its cosines (N, M) in double precision."""
    generator = torch.Generator().manual_seed(0)
    features = [torch.randn(n, 8, generator=generator) for n in (count, size)]
    cosines = torch.cosine_similarity(
        features[0].double()[:, None], features[1].double()[None], dim=2
    )
    shapes = (EmbeddedShape(body(n, n), f) for n, f in zip((count, size), features, strict=True))
    return Pair(*shapes), cosines


@pytest.mark.parametrize("kept", [1 << 20, 10])
@pytest.mark.parametrize("swapped", [False, True])
def test_similarities_are_those_of_the_formula(
    kept: int, swapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltenet.refinement.cosines.KEPT_ENTRIES", kept)
    monkeypatch.setattr("ltenet.refinement.cosines.BLOCK_ENTRIES", 300)  # several blocks
    pair, cosines = two()
    if swapped:
        pair, cosines = pair.reversed(), cosines.T
    close = {"atol": 1e-5, "rtol": 0.0}
    assert torch.equal(pair.best.indices, cosines.argmax(dim=1))
    assert torch.equal(pair.best_back.indices, cosines.argmax(dim=0))
    torch.testing.assert_close(pair.best.scores.double(), cosines.amax(dim=1), **close)
    nearest = pair.nearest(5)
    torch.testing.assert_close(nearest.scores.double(), cosines.topk(5).values, **close)
    assert torch.equal(nearest.indices, cosines.topk(5).indices)
    best = torch.maximum(cosines.amax(dim=1, keepdim=True), cosines.amax(dim=0))
    relative = cosines - best
    rows, columns = torch.tensor([3, 0, 9]), torch.tensor([8, 8, 1, 2])
    torch.testing.assert_close(
        pair.relative_block(rows, columns).double(), relative[rows][:, columns], **close
    )
    listed = pair.relative_at(rows[:, None], columns).double()
    torch.testing.assert_close(listed, relative[rows][:, columns], **close)
    torch.testing.assert_close(pair.relative_matrix().double(), relative, **close)
    torch.testing.assert_close(pair.cosine_block().double(), cosines, **close)


def test_reversing_shares_what_is_known() -> None:
    pair, _ = two()
    products: list[int] = []

    class Counted(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if getattr(function, "__name__", "") in {"mm", "matmul", "__matmul__"}:
                products.append(args[0].numel() * args[1].shape[-1])
            return function(*args, **(kwargs or {}))

    with Counted():
        back = pair.reversed()
        assert torch.equal(back.best_back.indices, pair.best.indices)  # whichever asks first
        assert back.reversed().best is pair.best
        assert back.source is pair.target
        pair.nearest(3)
        back.nearest(3)
        pair.relative_matrix()
    assert products == [70 * 8 * 90]


def test_a_round_trip_ends_where_features_lead_back_to() -> None:
    pair, cosines = two()
    indices = torch.arange(70)
    points = pair.source.points
    expected = (points - points[cosines.argmax(dim=0)[:70]]).norm(dim=1)
    torch.testing.assert_close(pair.round_trip(indices), expected)
    confidence = pair.confidence(indices, torch.ones(70))
    raw = torch.exp(-expected / 0.2)
    near = torch.cdist(points, points).topk(10, largest=False).indices
    torch.testing.assert_close(confidence, raw[near].mean(dim=1))


def test_neighbours_and_samples_are_prefixes() -> None:
    shape = EmbeddedShape(body(600, 1), torch.ones(600, 2))
    distances = torch.cdist(shape.points, shape.points)
    for k in (1, 4, 13, 20):
        expected = distances.topk(k, largest=False).values
        found = distances.gather(1, shape.neighbors(k))
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=0)
    assert torch.equal(shape.spread(500)[:100], shape.spread(100))
    assert EmbeddedShape(body(5, 0), torch.ones(5, 2)).neighbors(13).shape == (5, 5)
    squares = distances.topk(9, largest=False).values.square()
    assert float(shape.spacing) == pytest.approx(float(squares.mean().sqrt()), rel=1e-3)


def test_a_queried_point_is_the_nearest() -> None:
    shape = EmbeddedShape(body(50, 1), torch.ones(50, 2))
    found = shape.nearest(shape.points + 1e-6, 80)
    assert found.indices.shape == (50, 50)
    assert torch.equal(found.indices[:, 0], torch.arange(50))
