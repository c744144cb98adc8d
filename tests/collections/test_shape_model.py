"""Procrustes, modes and group differences against families whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes as scipy_procrustes
from scipy.spatial.transform import Rotation
from scipy.stats import false_discovery_control

from ltenet.collections.groups import benjamini_hochberg, group_difference
from ltenet.collections.shape_model import (
    generalized_procrustes,
    principal_modes,
    quality,
    vertex_variance,
)
from ltenet.errors import InputError

VERTICES = 40


def family(count: int, deviations: tuple[float, ...], seed: int = 0):
    """Shapes mean + sum_k c_k mode_k with exactly these standard deviations of c."""
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal((VERTICES, 3))
    mean -= mean.mean(axis=0)
    # Modes orthogonal to translations, rotations and scale, so that alignment leaves them alone.
    motions = [np.tile(axis, (VERTICES, 1)).ravel() for axis in np.eye(3)]
    motions += [np.cross(axis, mean).ravel() for axis in np.eye(3)] + [mean.ravel()]
    basis = np.linalg.qr(np.stack(motions).T)[0]
    raw = rng.standard_normal((3 * VERTICES, len(deviations)))
    modes = np.linalg.qr(raw - basis @ (basis.T @ raw))[0].T  # (K, 3V)
    scores = rng.standard_normal((count, len(deviations)))
    scores -= scores.mean(axis=0)
    scores = np.linalg.qr(scores)[0] * np.sqrt(count - 1) * deviations  # exact covariance
    shapes = mean + (scores @ modes).reshape(count, VERTICES, 3)
    return mean, modes, scores, shapes


def test_modes_of_a_linear_family_are_found() -> None:
    deviations = (0.5, 0.2, 0.1)
    mean, modes, scores, shapes = family(20, deviations)
    model = principal_modes(shapes)
    np.testing.assert_allclose(model.mean, mean, atol=1e-12)
    np.testing.assert_allclose(model.variances, np.square(deviations), rtol=1e-9)
    np.testing.assert_allclose(model.explained.sum(), 1.0)
    found = np.abs(model.modes.reshape(3, -1) @ modes.T)
    np.testing.assert_allclose(found, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(np.abs(model.scores), np.abs(scores), atol=1e-9)
    np.testing.assert_allclose(model.project(shapes), model.scores, atol=1e-12)
    np.testing.assert_allclose(model.shapes(model.scores), shapes, atol=1e-12)
    expected = (np.square(modes).reshape(3, VERTICES, 3).sum(axis=2)).T @ np.square(deviations)
    np.testing.assert_allclose(vertex_variance(shapes), expected, rtol=1e-9)


def test_procrustes_undoes_motions_and_scales() -> None:
    mean, _, _, shapes = family(12, (0.02, 0.01))
    rng = np.random.default_rng(3)
    turns = Rotation.random(12, random_state=4).as_matrix()
    moved = np.stack(
        [
            rng.uniform(0.1, 50) * one @ turn.T + rng.normal(size=3)
            for one, turn in zip(shapes, turns, strict=True)
        ]
    )
    found = generalized_procrustes(moved)
    _, _, apart = scipy_procrustes(found.mean, mean)
    assert apart < 1e-7
    variances = principal_modes(found.aligned).variances * (
        np.square(mean).sum() / np.square(found.mean).sum()
    )
    np.testing.assert_allclose(variances[:2], np.square((0.02, 0.01)), rtol=0.01)
    np.testing.assert_allclose(
        found.sizes, np.sqrt(np.square(moved - moved.mean(1, keepdims=True)).sum((1, 2)))
    )
    again = generalized_procrustes(moved[::-1])
    _, _, other = scipy_procrustes(found.mean, again.mean)
    assert other < 1e-12  # the first specimen has no privilege


def test_size_can_be_kept() -> None:
    mean, *_ = family(3, (0.1,))
    sized = np.stack([mean, 2 * mean, 3 * mean])
    kept = generalized_procrustes(sized, scale=False)
    np.testing.assert_allclose(kept.mean, 2 * mean, atol=1e-9)
    assert principal_modes(kept.aligned).variances[0] > 0.1
    removed = generalized_procrustes(sized)
    assert np.abs(removed.aligned - removed.mean).max() < 1e-9


def test_bad_sets_are_refused() -> None:
    with pytest.raises(InputError, match=r"got shapes of dimensions \(1, 4, 3\)"):
        generalized_procrustes(np.zeros((1, 4, 3)))
    with pytest.raises(InputError, match="got a shape without extent at place 1"):
        generalized_procrustes(np.stack([np.eye(3), np.zeros((3, 3))]))


def test_quality_of_a_known_family() -> None:
    deviations = (0.5, 0.2)
    _, modes, scores, shapes = family(30, deviations)
    found = quality(shapes, modes=2, seed=1)
    np.testing.assert_allclose(found.compactness, np.cumsum(np.square(deviations)), rtol=1e-9)
    # Two modes rebuild any shape of the family from the others; one leaves the second mode out.
    assert found.generalisation[1] < 1e-9
    lengths = np.linalg.norm(modes[1].reshape(VERTICES, 3), axis=1).mean()
    expected = np.abs(scores[:, 1]).mean() * lengths
    assert found.generalisation[0] == pytest.approx(expected, rel=0.2)
    # With one mode, a draw's nearest real shape differs in the second mode at least.
    assert (found.specificity > 0).all()
    drawn = np.random.default_rng(0).standard_normal(4000) * deviations[0]
    first = np.linalg.norm(modes[0].reshape(VERTICES, 3), axis=1).mean()
    lower = np.abs(drawn[:, None] - scores[:, 0]).min(axis=1).mean() * first
    assert found.specificity[0] > lower


def test_a_planted_difference_is_found_where_it_is() -> None:
    rng = np.random.default_rng(0)
    shapes = rng.standard_normal((24, VERTICES, 3))
    shapes[12:, :5, 1] += 4.0
    groups = ["a"] * 12 + ["b"] * 12
    found = group_difference(shapes, groups, permutations=500, seed=1)
    assert (found.family_wise[:5] < 0.01).all()
    assert (found.family_wise[5:] > 0.05).mean() > 0.9
    assert (found.discovery[:5] < 0.05).all()
    assert found.overall < 0.01
    np.testing.assert_allclose(found.means[1], shapes[12:].mean(axis=0))
    assert found.names == ("a", "b")


def test_the_statistic_is_an_analysis_of_variance() -> None:
    """With the coordinates apart, sums of squares between and within, by explicit loops."""
    rng = np.random.default_rng(2)
    shapes = rng.standard_normal((9, 2, 3))
    groups = ["a", "b", "c"] * 3
    found = group_difference(shapes, groups, permutations=10)
    for vertex in range(2):
        rows = shapes[:, vertex]
        parts = [rows[np.array(groups) == name] for name in "abc"]
        between = sum(3 * np.square(part.mean(0) - rows.mean(0)).sum() for part in parts)
        within = sum(np.square(part - part.mean(0)).sum() for part in parts)
        assert found.statistic[vertex] == pytest.approx((between / 2) / (within / 6))


def test_under_the_null_the_error_rate_is_kept() -> None:
    rng = np.random.default_rng(5)
    overall = [
        group_difference(
            rng.standard_normal((12, 15, 3)), ["a", "b"] * 6, permutations=99, seed=number
        ).overall
        for number in range(120)
    ]
    rate = np.mean(np.array(overall) <= 0.1)
    assert 0.03 <= rate <= 0.19  # 0.1, three standard deviations either way
    assert np.mean(overall) == pytest.approx(0.5, abs=0.1)


def test_benjamini_hochberg_is_that_of_scipy() -> None:
    p_values = np.random.default_rng(0).random(50) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p_values), false_discovery_control(p_values))


def test_groups_that_are_too_small_are_refused() -> None:
    with pytest.raises(InputError, match=r"got a \(3\), b \(1\), expected at least two groups"):
        group_difference(np.zeros((4, 5, 3)), ["a", "a", "b", "a"])
