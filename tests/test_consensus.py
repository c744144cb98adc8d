"""Agreement of several deformations: a known median, and maps that are misled one way."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ltenet.coherence import CoherenceConfig, refine_coherently
from ltenet.deformation import DeformationGraph
from ltenet.refinement import EmbeddedPair
from ltenet.refinement.coherent import CONFIG, STIFFNESSES, match_one_to_one
from ltenet.refinement.consensus import Agreement, Bent, agree, geometric_median
from ltenet.refinement.pair import Options, Task
from tests.creature import bent, body, embedded


def test_the_majority_wins() -> None:
    here, there = torch.zeros(1, 3), torch.ones(1, 3)
    maps = [Bent(here, 1.0, here), Bent(here, 1.0, here), Bent(there, 1.0, there)]
    torch.testing.assert_close(geometric_median(maps), here, atol=2e-3, rtol=0)


def test_a_dear_map_has_little_say() -> None:
    here, there = torch.zeros(1, 3), torch.ones(1, 3)
    maps = [Bent(here, 0.5, here), Bent(there, 1.0, there), Bent(there, 1.0, there)]
    torch.testing.assert_close(geometric_median(maps), here, atol=2e-3, rtol=0)


@given(st.integers(0, 1000))
def test_the_median_is_the_nearest_place_to_all(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    places = torch.randn(4, 1, 3, generator=generator, dtype=torch.float64)
    found = geometric_median([Bent(place, 0.0, place) for place in places])

    def total(place: torch.Tensor) -> float:
        return float((places[:, 0] - torch.as_tensor(place)).norm(dim=1).sum())

    best = minimize(total, places.mean(dim=0)[0].numpy(), method="Nelder-Mead")
    assert total(found[0]) <= best.fun * 1.02


def test_both_ways_are_better_than_one() -> None:
    source, rest = body(400, 0), body(400, 1)
    features = embedded(source, noise=0.7, seed=2), embedded(rest, noise=0.7, seed=3)
    pair = EmbeddedPair(source, bent(rest), *features)
    agreed = agree(pair, CONFIG, STIFFNESSES)
    assert agreed is not None
    once = refine_coherently(*pair[:4], CoherenceConfig(stiffness=10.0))
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
    pair = EmbeddedPair(source, bent(rest), *features)
    swapped = EmbeddedPair(bent(rest), source, *features[::-1])
    forth, back = (agree(one, CONFIG, STIFFNESSES) for one in (pair, swapped))
    assert forth is not None
    assert back is not None
    # What is bent is the same shape, whichever of the two is called the target.
    assert (forth.bent_target is None) != (back.bent_target is None)


@pytest.mark.parametrize("turned", [False, True])
def test_equal_points_are_assigned_by_the_shape_that_was_bent(turned: bool) -> None:
    source = body(200, 0)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))  # (N,)
    target = bent(source)[order]  # (N, 3)
    nothing = torch.zeros(200, 3)
    features = torch.ones(200, 8)  # no help
    task = Task(EmbeddedPair(source, target, features, features), None, Options())
    places, bent_target = (nothing, source[order]) if turned else (bent(source), None)
    graph = DeformationGraph(target if turned else source, 40, rigidity=0.1)
    agreed = Agreement(places, task.start, torch.ones(200), bent_target, graph)
    same, indices = match_one_to_one(task, agreed)
    assert same
    assert torch.equal(order[indices], torch.arange(200))


def test_nothing_finite_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    source = body(60, 0)
    pair = EmbeddedPair(source, source, *2 * (embedded(source, noise=0.1, seed=2),))
    broken = torch.full((60, 3), torch.nan)
    monkeypatch.setattr("ltenet.coherence.Solver.solve", lambda solver, stiffness: broken)
    assert agree(pair, CONFIG, STIFFNESSES) is None
