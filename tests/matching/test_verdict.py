"""Whether a map is right as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_pairs import own_generator
from ltenet.matching.matcher import match
from ltenet.matching.summary import summarize
from ltenet.matching.verdict import (
    BIAS,
    WEIGHTS,
    PairEvidence,
    pair_logit,
    pair_probability,
    typical,
)
from ltenet.shape import Shape

FINE = PairEvidence(0.5, 0.1, 0.0, 0.0, 0.15, 1.0, -0.2, 0.95)
POOR = PairEvidence(1.2, 0.5, 0.1, 0.1, 0.4, 0.5, -6.0, 0.5)


def test_the_probability_is_logistic_in_the_evidence():
    logit = sum(weight * value for weight, value in zip(WEIGHTS, FINE, strict=True)) + BIAS
    assert pair_logit(FINE) == pytest.approx(logit)
    assert pair_probability(logit) == pytest.approx(1 / (1 + np.exp(-logit)))
    poor, fine = (pair_probability(pair_logit(evidence)) for evidence in (POOR, FINE))
    assert poor < 0.3 < 0.8 < fine


@given(st.sampled_from(PairEvidence._fields), st.floats(0.01, 0.5))
def test_worse_evidence_never_raises_it(name, more):
    sign = 1 if name in ("direction", "prior", "confidence") else -1
    better = FINE._replace(**{name: getattr(FINE, name) + sign * more})
    assert pair_logit(better) >= pair_logit(FINE)


@given(st.floats(allow_nan=False))
def test_any_odds_are_a_probability(logit):
    assert 0 <= pair_probability(logit) <= 1


def test_half_of_the_points_may_be_without_a_partner():
    assert typical(np.array([0.0, 0.0, 0.9, 0.7])) == pytest.approx(0.8)
    assert typical(np.array([0.6])) == 0.6


@pytest.mark.slow
def test_a_person_matches_a_person_and_not_a_pretzel():
    vertices = own_generator("human").draw(4321, 2).vertices.astype(np.float64)
    rng = np.random.default_rng(0)
    person, again = (Shape(vertices[rng.choice(len(vertices), 1000, False)]) for _ in range(2))
    turned = Shape(again.points @ Rotation.random(random_state=4).as_matrix().T)
    angles = rng.uniform(0, 2 * np.pi, 1000)
    ring = np.stack([np.cos(2 * angles), np.sin(3 * angles), 0.3 * np.sin(angles)], axis=1)
    pretzel = Shape(ring + 0.05 * rng.normal(size=ring.shape))
    found = summarize(match(person, turned))
    assert (found.verdict, found.model) == ("reliable", "human")
    wrong = summarize(match(person, pretzel, threshold=0.0))
    assert wrong.verdict != "reliable"
    assert wrong.probability < 0.5
