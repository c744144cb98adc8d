"""Features that know the other shape, in matching."""

from __future__ import annotations

import numpy as np
import torch

from ltenet.matching.candidates import judged
from ltenet.matching.comparing import compared_pair, compared_parts, plain_pair
from ltenet.matching.networks import Networks
from ltenet.matching.preparation import PART, Prepared, prepare
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.refinement.judge import map_scores
from ltenet.refinement.methods import refine_pair
from ltenet.shape import Shape


def networks(blocks: int) -> Networks:
    """A small network with weights drawn at random, as if trained."""
    torch.manual_seed(0)
    config = ModelConfig(
        encoder=EncoderConfig(widths=(8, 12), dimension=16, neighbors=8),
        radius=0.5,
        comparison=blocks,
    )
    model = LTENet(config).eval()
    if model.comparison is not None:
        torch.nn.init.normal_(model.comparison.leaving.weight, std=0.3)
    return Networks("small", None, model, None)  # type: ignore[arg-type]


def prepared(used: Networks, count: int, seed: int) -> Prepared:
    points = np.random.default_rng(seed).normal(size=(count, 3)) * [1.0, 2.0, 0.5]
    ((found,),) = prepare(Shape(points), [used], points=4096, orient="none", clean=False)
    return found


def test_without_blocks_a_pair_is_compared_as_it_is() -> None:
    used = networks(0)
    source, target = prepared(used, 80, 1), prepared(used, 90, 2)
    pair = compared_pair(source, target)
    assert pair.odds is None
    assert torch.equal(pair.source.features, plain_pair(source, target).source.features)
    assert compared_parts(source, target).odds is None


def test_features_are_those_of_the_network() -> None:
    used = networks(2)
    source, target = prepared(used, 80, 1), prepared(used, 90, 2)
    pair = compared_pair(source, target)
    comparison = used.model.comparison
    assert comparison is not None
    with torch.no_grad():
        (found,) = comparison(
            [(source.points, target.points)],
            [(source.embedded.features, target.embedded.features)],
        )
    expected = torch.nn.functional.normalize(found.source, dim=1)
    torch.testing.assert_close(pair.source.features, expected)
    assert pair.odds is not None
    torch.testing.assert_close(pair.odds[1], found.target_overlap)
    plain = plain_pair(source, target)
    assert not torch.allclose(plain.source.features, pair.source.features, atol=1e-3)
    torch.testing.assert_close(plain.source.features, source.embedded.features)  # as before


def test_large_samples_are_compared_part_by_part() -> None:
    used = networks(1)
    source, target = prepared(used, round(2.6 * PART), 1), prepared(used, 200, 2)
    assert [len(one.sample.parts) for one in (source, target)] == [3, 1]
    pair, first = compared_pair(source, target), compared_parts(source, target)
    rows = source.sample.parts[0]
    torch.testing.assert_close(pair.source.features[rows], first.source.features)
    assert pair.odds is not None
    assert torch.isfinite(pair.odds[0]).all()


def test_the_map_is_judged_by_what_each_shape_shows_by_itself() -> None:
    used = networks(1)
    source, target = prepared(used, 80, 1), prepared(used, 90, 2)
    plain = plain_pair(source, target)
    refined = refine_pair(compared_pair(source, target), "none")
    assert judged(plain, refined) == map_scores(plain, refined.indices)
    lost = refined._replace(indices=torch.full_like(refined.indices, -1))
    assert judged(plain, lost) == map_scores(plain, plain.best.indices)


def test_what_follows_from_the_points_alone_is_computed_once() -> None:
    used = networks(1)
    shape = prepared(used, 80, 1).embedded
    other = shape.with_features(torch.randn(80, 16))
    assert other.neighbors(5).data_ptr() == shape.neighbors(5).data_ptr()
    assert not torch.equal(other.features, shape.features)
