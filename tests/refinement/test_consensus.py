"""Consensus of several deformations: a known median, and maps misled in one direction."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ltenet.refinement.bending import Bent, refine_by_bending
from ltenet.refinement.coherent import CONFIG, STIFFNESSES, match_one_to_one
from ltenet.refinement.consensus import BendingVote, Consensus, find_consensus, geometric_median
from ltenet.refinement.deformation import DeformationGraph
from ltenet.refinement.options import BendingConfig
from tests.creature import bent, body, embedded, pair_of


def vote(places: torch.Tensor, cost: float) -> BendingVote:
    return BendingVote(places, cost, Bent(places, torch.eye(3)[None]))


def test_the_majority_wins() -> None:
    here, there = torch.zeros(1, 3), torch.ones(1, 3)
    maps = [vote(here, 1.0), vote(here, 1.0), vote(there, 1.0)]
    torch.testing.assert_close(geometric_median(maps), here, atol=2e-3, rtol=0)


def test_a_dear_map_has_little_say() -> None:
    here, there = torch.zeros(1, 3), torch.ones(1, 3)
    maps = [vote(here, 0.5), vote(there, 1.0), vote(there, 1.0)]
    torch.testing.assert_close(geometric_median(maps), here, atol=2e-3, rtol=0)


@given(st.integers(0, 1000))
def test_the_median_is_the_nearest_place_to_all(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    places = torch.randn(4, 1, 3, generator=generator, dtype=torch.float64)
    found = geometric_median([vote(place, 0.0) for place in places])

    def total(place: torch.Tensor) -> float:
        return float((places[:, 0] - torch.as_tensor(place)).norm(dim=1).sum())

    best = minimize(total, places.mean(dim=0)[0].numpy(), method="Nelder-Mead")
    assert total(found[0]) <= best.fun * 1.02


def test_both_ways_are_better_than_one() -> None:
    source, rest = body(400, 0), body(400, 1)
    features = embedded(source, noise=0.7, seed=2), embedded(rest, noise=0.7, seed=3)
    pair = pair_of(source, bent(rest), *features)
    agreed = find_consensus(pair, CONFIG, STIFFNESSES)
    assert agreed is not None
    once = refine_by_bending(pair, BendingConfig(stiffness=10.0))
    error, error_once = (
        float((places - bent(source)).norm(dim=1).mean())
        for places in (agreed.places, once.deformed)
    )
    assert error < error_once
    assert agreed.indices.shape == agreed.confidence.shape == (400,)
    assert ((agreed.confidence >= 0) & (agreed.confidence <= 1)).all()


def test_the_target_counts_as_bent_where_that_cost_less() -> None:
    source, rest = body(300, 0), body(300, 1)
    features = embedded(source, noise=0.5, seed=2), embedded(rest, noise=0.5, seed=3)
    pair = pair_of(source, bent(rest), *features)
    swapped = pair_of(bent(rest), source, *features[::-1])
    forth, back = (find_consensus(one, CONFIG, STIFFNESSES) for one in (pair, swapped))
    assert forth is not None
    assert back is not None
    # What is bent is the same shape, whichever of the two is called the target.
    assert forth.target_bent != back.target_bent


@pytest.mark.parametrize("turned", [False, True])
def test_equal_points_are_assigned_by_the_shape_that_was_bent(turned: bool) -> None:
    source = body(200, 0)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))  # (N,)
    target = bent(source)[order]  # (N, 3)
    nothing = torch.zeros(200, 3)
    features = torch.ones(200, 8)  # no help
    pair = pair_of(source, target, features, features)
    graph = DeformationGraph(target if turned else source, 40, rigidity=0.1)
    cheapest = Bent(source[order] if turned else bent(source), graph.frames())
    places = nothing if turned else bent(source)
    start = torch.zeros(200, dtype=torch.int64)
    consensus = Consensus(places, start, torch.ones(200), torch.zeros(200), cheapest, graph, turned)
    indices = match_one_to_one(pair, consensus, "auto")
    assert indices is not None
    assert torch.equal(order[indices], torch.arange(200))
    assert match_one_to_one(pair, consensus, False) is None


def test_the_cheapest_deformation_keeps_its_own_frames() -> None:
    """Its frames are those of its stiffness, not of the last one tried."""
    source = body(200, 0)
    features = embedded(source, noise=0.5, seed=2), embedded(source, noise=0.5, seed=3)
    pair = pair_of(source, bent(source), *features)
    consensus = find_consensus(pair, CONFIG, (3.0, 1e6))  # the second cannot bend
    alone = find_consensus(pair, CONFIG, (3.0,))
    assert consensus is not None
    assert alone is not None
    assert consensus.target_bent == alone.target_bent
    assert torch.equal(consensus.cheapest.frames, alone.cheapest.frames)
    assert torch.equal(consensus.cheapest.points, alone.cheapest.points)


def test_nothing_finite_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    source = body(60, 0)
    pair = pair_of(source, source, *2 * (embedded(source, noise=0.1, seed=2),))
    broken = Bent(torch.full((60, 3), torch.nan), torch.eye(3)[None])
    monkeypatch.setattr("ltenet.refinement.bending.Bender.bend", lambda bender, stiffness: broken)
    assert find_consensus(pair, CONFIG, STIFFNESSES) is None
