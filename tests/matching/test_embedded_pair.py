"""Prepared shapes as pairs, which know who has a partner."""

from __future__ import annotations

import numpy as np
import torch

from ltenet.matching.embedded_pair import FEWEST, embedded_pair, first_pair
from ltenet.matching.networks import Networks
from ltenet.matching.preparation import PART, Prepared, prepare
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.shape import Shape


def networks(blocks: int) -> Networks:
    """A small network with weights drawn at random."""
    torch.manual_seed(0)
    config = ModelConfig(
        encoder=EncoderConfig(widths=(8, 12), dimension=16, neighbors=8),
        radius=0.5,
        matchability=blocks,
    )
    return Networks("small", None, LTENet(config).eval(), None)  # type: ignore[arg-type]


def prepared(used: Networks, count: int, seed: int) -> Prepared:
    points = np.random.default_rng(seed).normal(size=(count, 3)) * [1.0, 2.0, 0.5]
    ((found,),) = prepare(Shape(points), [used], points=4096, orient="none", clean=False)
    return found


def test_networks_that_do_not_tell_leave_it_to_the_features() -> None:
    used = networks(0)
    source, target = prepared(used, 80, 1), prepared(used, 90, 2)
    assert embedded_pair(source, target).odds is None
    assert first_pair(source, target).odds is None


def test_odds_are_those_of_the_network() -> None:
    used = networks(2)
    source, target = prepared(used, FEWEST, 1), prepared(used, FEWEST + 10, 2)
    pair = embedded_pair(source, target)
    assert used.model.matchability is not None
    with torch.no_grad():
        (found,) = used.model.matchability(
            [(source.points, target.points)],
            [(source.embedded.features, target.embedded.features)],
        )
    assert pair.odds is not None
    torch.testing.assert_close(pair.odds[0], found.source)
    torch.testing.assert_close(pair.odds[1], found.target)


def test_large_samples_read_each_other_part_by_part() -> None:
    used = networks(1)
    source, target = prepared(used, round(2.6 * PART), 1), prepared(used, FEWEST, 2)
    assert [len(one.sample.parts) for one in (source, target)] == [3, 1]
    pair, first = embedded_pair(source, target), first_pair(source, target)
    assert pair.odds is not None
    assert first.odds is not None
    rows = source.sample.parts[0]
    torch.testing.assert_close(pair.odds[0][rows], first.odds[0])
    assert torch.isfinite(pair.odds[0]).all()


def test_of_sparse_clouds_the_network_is_not_asked() -> None:
    used = networks(1)
    source, target = prepared(used, FEWEST - 1, 1), prepared(used, FEWEST, 2)
    assert embedded_pair(source, target).odds is None
    assert first_pair(target, source).odds is None
