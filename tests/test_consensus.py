"""Agreement of several deformations: a known median, and maps that are misled one way."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ltenet.coherence import CoherenceConfig, refine_coherently
from ltenet.refinement import EmbeddedPair
from ltenet.refinement.coherent import CONFIG, STIFFNESSES
from ltenet.refinement.consensus import Bent, agree, geometric_median
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


def test_nothing_finite_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    source = body(60, 0)
    pair = EmbeddedPair(source, source, *2 * (embedded(source, noise=0.1, seed=2),))
    broken = torch.full((60, 3), torch.nan)
    monkeypatch.setattr("ltenet.coherence.Solver.solve", lambda solver, stiffness: broken)
    assert agree(pair, CONFIG, STIFFNESSES) is None
