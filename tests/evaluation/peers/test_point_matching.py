"""Softassign, RPM-L2E, Chamfer matching, LM-ICP and non-rigid ICP: formulas, and copies found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from known_shapes import shuffled, turned
from scipy.spatial.distance import cdist

from ltenet.evaluation.peers.deformations import ThinPlate
from ltenet.evaluation.peers.nearest_registration import NearestRegistration, robust_mean
from ltenet.evaluation.peers.nonrigid_icp import (
    NonRigidICP,
    edge_differences,
    position_matrix,
    solved,
)
from ltenet.evaluation.peers.rpm_l2e import RPML2E, likely_pairs, robust_displacement
from ltenet.evaluation.peers.softassign import AffineFit, SoftAssign, ThinPlateFit, soft_matches
from ltenet.shape import Shape


def found_share(method: object, source: Shape, target: Shape, place: np.ndarray) -> float:
    return float((method(source, target).indices == place).mean())  # type: ignore[operator]


@pytest.fixture(scope="module")
def few(body: Shape) -> Shape:
    return Shape(body.points[:120], name="few")  # farthest points: any prefix is even


def warped(shape: Shape, strength: float) -> Shape:
    points = shape.points - shape.points.mean(axis=0)
    plate = ThinPlate(points, controls=8)
    loads = np.random.default_rng(4).standard_normal(plate.size - 12)
    values = torch.from_numpy(np.concatenate([np.zeros(12), strength * loads]))
    return Shape(plate.moved(values, points).numpy())


def test_soft_matches_become_a_permutation_when_cold() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 3))
    order = rng.permutation(30)
    squares = cdist(points, points[order], "sqeuclidean")
    noise = np.zeros_like(squares)
    cold = soft_matches(squares, 1e-3, noise)
    np.testing.assert_array_equal(order[cold.argmax(axis=1)], np.arange(30))
    np.testing.assert_allclose(cold.max(axis=1), 1, atol=0.01)
    warm = soft_matches(squares, 1.0, noise)
    assert (warm.sum(axis=0) <= 1 + 1e-9).all()
    assert warm.sum(axis=1).max() < 1.2


def test_an_outlier_goes_to_the_slack() -> None:
    points = np.concatenate([np.random.default_rng(0).random((20, 3)), [[9.0, 9, 9]]])
    matches = soft_matches(cdist(points, points[:20], "sqeuclidean"), 0.01, np.zeros((21, 20)))
    assert matches[20].sum() < 1e-6
    assert matches[:20].sum(axis=1).min() > 0.9


def test_affine_fits_are_tied_to_the_identity() -> None:
    rng = np.random.default_rng(1)
    points, matrix = rng.standard_normal((40, 3)), rng.standard_normal((3, 3))
    goals = points @ matrix.T + (1.0, 2, 3)
    fit = AffineFit(points)
    fit.fit(goals, 1e-12)
    np.testing.assert_allclose(fit.moved(points), goals, atol=1e-6)
    fit.fit(goals, 1e12)
    np.testing.assert_allclose(fit.moved(points), points, atol=1e-6)


def test_thin_plates_solve_the_bordered_system() -> None:
    """With no price on the affine part, the fit is the textbook smoothing spline."""
    rng = np.random.default_rng(2)
    points, goals = rng.standard_normal((25, 3)), rng.standard_normal((25, 3))
    temperature = 0.01
    fit = ThinPlateFit(points)
    fit.fit(goals, temperature)
    stiffness = 25 * temperature
    kernel = -cdist(points, points)
    plane = np.concatenate([np.ones((25, 1)), points], axis=1)
    system = np.block([[kernel + stiffness * np.eye(25), plane], [plane.T, np.zeros((4, 4))]])
    loads = np.linalg.solve(system, np.concatenate([goals, np.zeros((4, 3))]))[:25]
    np.testing.assert_allclose(fit._loads, loads, atol=1e-9)
    away = rng.standard_normal((6, 3))
    both = np.concatenate([points, away])
    np.testing.assert_allclose(fit.moved(both)[:25], fit.moved(points), atol=1e-9)


@pytest.mark.parametrize("deformation", ["affine", "tps"])
def test_softassign_finds_copies(few: Shape, deformation: str) -> None:
    method = SoftAssign(deformation=deformation, cooling=0.8)
    assert found_share(method, few, *shuffled(few)) == 1.0
    bent = warped(few, 0.1)
    if deformation == "tps":
        assert found_share(method, few, *shuffled(bent)) > 0.95


def test_robust_kernels() -> None:
    squares = torch.tensor([0.0, 0.01, 0.04, 4.0], dtype=torch.float64)
    found = torch.tensor([True, True, True, True])
    assert float(robust_mean(squares, found, 0.04, "chamfer")) == pytest.approx(0.09 / 4)
    nothing = torch.tensor([False, True, True, True])
    assert float(robust_mean(squares, nothing, 0.04, "chamfer")) == pytest.approx(0.13 / 4)
    huber = 0.01 + 0.04 + 2 * 2 * 0.2 - 0.04
    assert float(robust_mean(squares, found, 0.04, "huber")) == pytest.approx(huber / 4)
    for kind in ("chamfer", "huber"):
        inputs = torch.tensor([0.001, 0.01, 0.3, 4.0], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda s, k=kind: robust_mean(s, found, 0.04, k), inputs)


@pytest.mark.parametrize(
    ("kernel", "deformation"), [("chamfer", "rigid"), ("huber", "rigid"), ("chamfer", "affine")]
)
def test_nearest_registration_finds_a_turned_copy(
    few: Shape, kernel: str, deformation: str
) -> None:
    method = NearestRegistration(kernel=kernel, deformation=deformation)
    target, place = shuffled(turned(few, 20))
    assert found_share(method, few, target, place) > 0.95


@pytest.mark.slow
def test_chamfer_matching_bends(few: Shape) -> None:
    target, place = shuffled(warped(few, 0.15))
    bent = NearestRegistration(deformation="tps")
    rigid = NearestRegistration(deformation="rigid")
    assert found_share(bent, few, target, place) > found_share(rigid, few, target, place) + 0.1


def test_shape_contexts_propose_the_permutation(few: Shape) -> None:
    points = few.normalized(radius=1.0).points
    order = np.random.default_rng(0).permutation(len(points))
    rows, columns = likely_pairs(points, points[order])
    np.testing.assert_array_equal(rows, order[columns])
    assert len(rows) == len(points)


def test_wrong_matches_do_not_move_the_displacement() -> None:
    rng = np.random.default_rng(3)
    points = rng.standard_normal((80, 3))
    points = (points - points.mean(axis=0)) / np.sqrt(3)
    smooth = 0.1 * np.sin(points[:, [1, 2, 0]])
    goals = points + smooth
    wrong = rng.choice(80, 15, replace=False)
    goals[wrong] += rng.standard_normal((15, 3)) * 2
    controls = points[:30]
    weights = robust_displacement(points, goals, controls, stiffness=1e-4)
    moved = np.exp(-0.8 * cdist(points, controls, "sqeuclidean")) @ weights
    right = np.setdiff1d(np.arange(80), wrong)
    error = np.linalg.norm(moved - smooth, axis=1)[right]
    assert error.mean() < 0.02
    plain = np.linalg.lstsq(
        np.exp(-0.8 * cdist(points, controls, "sqeuclidean")), goals - points, rcond=None
    )[0]
    least = np.exp(-0.8 * cdist(points, controls, "sqeuclidean")) @ plain
    assert error.mean() < 0.2 * np.linalg.norm(least - smooth, axis=1)[right].mean()


def test_rpm_l2e_finds_a_copy(few: Shape) -> None:
    assert found_share(RPML2E(rounds=2), few, *shuffled(few)) == 1.0
    bent = warped(few, 0.05)
    assert found_share(RPML2E(rounds=4), few, *shuffled(bent)) > 0.9


def test_non_rigid_icp_solves_its_energy() -> None:
    rng = np.random.default_rng(0)
    points, goals, weights = rng.random((30, 3)), rng.random((30, 3)), rng.random(30)
    places, differences = position_matrix(points), edge_differences(points, None)
    maps = solved(places, differences, weights, goals, 0.7)
    np.testing.assert_allclose((places @ np.tile(np.eye(4)[:, :3], (30, 1))), points)

    def energy(values: np.ndarray) -> float:
        fit = (weights[:, None] * (places @ values - goals) ** 2).sum()
        return float(fit + 0.49 * ((differences @ values) ** 2).sum())

    best = energy(maps)
    for _ in range(5):
        assert energy(maps + 1e-3 * rng.standard_normal(maps.shape)) > best
    affine = np.tile(rng.standard_normal((4, 3)), (30, 1))  # one map for all costs nothing
    np.testing.assert_allclose(differences @ affine, 0, atol=1e-12)


def test_non_rigid_icp_finds_copies(few: Shape) -> None:
    method = NonRigidICP(levels=4, iterations=2)
    assert found_share(method, few, *shuffled(few)) == 1.0
    assert found_share(method, few, *shuffled(warped(few, 0.05))) > 0.9
