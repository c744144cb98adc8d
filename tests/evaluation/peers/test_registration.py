"""Density registration: objectives against plain sums, and deformed copies that are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from known_shapes import shuffled, turned
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from ltenet.evaluation.peers.deformations import Affine, Rigid, ThinPlate, make_deformation
from ltenet.evaluation.peers.registration import DENSITIES, DensityRegistration, products
from ltenet.method.divergence import cauchy_schwarz
from ltenet.shape import Shape


def clouds() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 3)), rng.standard_normal((55, 3))


def test_inner_products_are_means_of_kernels() -> None:
    first, second = clouds()
    logs = products(torch.from_numpy(first), torch.from_numpy(second), 0.7)
    for found, one, other in (
        (logs.between, first, second),
        (logs.first, first, first),
        (logs.second, second, second),
    ):
        expected = np.exp(-cdist(one, other, "sqeuclidean") / (4 * 0.7**2)).mean()
        assert float(found.exp()) == pytest.approx(expected, rel=1e-9)


def test_the_three_objectives() -> None:
    first, second = (torch.from_numpy(points) for points in clouds())
    logs = products(first, second, 0.7)
    pq, pp, qq = (float(log.exp()) for log in logs)
    assert float(DENSITIES["kc"](logs)) == pytest.approx(-pq / qq)
    assert float(DENSITIES["l2"](logs)) == pytest.approx((pp - 2 * pq + qq) / qq)
    divergence = float(cauchy_schwarz(first[None], second[None], 0.7)[0])
    assert float(DENSITIES["cs"](logs)) == pytest.approx(divergence)
    same = products(first, first, 0.7)
    assert float(DENSITIES["l2"](same)) == pytest.approx(0, abs=1e-9)
    assert float(DENSITIES["cs"](same)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("kind", ["rigid", "affine", "tps"])
def test_zeros_leave_points_alone(kind: str) -> None:
    points = clouds()[0]
    deformation = make_deformation(kind, points)
    zeros = torch.zeros(deformation.size, dtype=torch.float64)
    np.testing.assert_allclose(deformation.moved(zeros, points).numpy(), points, atol=1e-12)
    assert float(deformation.bending(zeros)) == 0


@given(st.lists(st.floats(-3, 3), min_size=6, max_size=6))
@settings(max_examples=25, deadline=None)
def test_rigid_motions_are_rotation_vectors(values: list[float]) -> None:
    points = clouds()[0]
    moved = Rigid().moved(torch.tensor(values, dtype=torch.float64), points).numpy()
    expected = Rotation.from_rotvec(values[:3]).apply(points) + values[3:]
    np.testing.assert_allclose(moved, expected, atol=1e-9)


def test_affine_maps() -> None:
    points, matrix = clouds()[0], np.arange(9.0).reshape(3, 3) / 10
    values = torch.tensor([*matrix.reshape(-1), 1.0, 2.0, 3.0], dtype=torch.float64)
    expected = points + points @ matrix.T + np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(Affine().moved(values, points).numpy(), expected)


def test_thin_plates_bend_but_carry_no_affine_part() -> None:
    points = clouds()[0]
    plate = ThinPlate(points, controls=30)
    assert plate.size == 12 + 3 * (30 - 4)
    rng = np.random.default_rng(1)
    values = torch.from_numpy(np.concatenate([np.zeros(12), rng.standard_normal(plate.size - 12)]))
    # The energy of a spline with kernel -r is load^T (-r) load; loads come from its own values.
    controls = plate.controls
    bend = plate.moved(values, controls).numpy() - controls  # (30, 3)
    kernel = -cdist(controls, controls)
    plane = np.concatenate([np.ones((30, 1)), controls], axis=1)
    system = np.block([[kernel, plane], [plane.T, np.zeros((4, 4))]])
    solved = np.linalg.solve(system, np.concatenate([bend, np.zeros((4, 3))]))
    np.testing.assert_allclose(solved[30:], 0, atol=1e-6)
    energy = float(np.einsum("cd,ce,ed->", solved[:30], kernel, solved[:30]))
    assert float(plate.bending(values)) == pytest.approx(energy, rel=1e-6)


def found_share(
    source: Shape, target: Shape, place: np.ndarray, density: str, deformation: str
) -> float:
    method = DensityRegistration(density=density, deformation=deformation)
    return float((method(source, target).indices == place).mean())


@pytest.mark.parametrize("density", ["kc", "l2", "cs"])
def test_rigid_registration_finds_a_moved_copy(body: Shape, density: str) -> None:
    target, place = shuffled(turned(body, 30))
    assert found_share(body, target, place, density, "rigid") == 1.0


def sheared(shape: Shape) -> Shape:
    matrix = np.array([[1.1, 0.35, 0.0], [0.0, 0.8, 0.1], [0.2, 0.0, 1.3]])
    return Shape(shape.points @ matrix.T)


@pytest.mark.parametrize("density", ["l2", "cs"])
def test_affine_registration_finds_a_sheared_copy(body: Shape, density: str) -> None:
    target, place = shuffled(sheared(body))
    assert found_share(body, target, place, density, "affine") > 0.98
    assert found_share(body, target, place, density, "rigid") < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("density", ["l2", "cs"])
def test_thin_plate_registration_finds_a_warped_copy(body: Shape, density: str) -> None:
    points = body.points - body.points.mean(axis=0)
    plate = ThinPlate(points, controls=8)
    loads = np.random.default_rng(4).standard_normal(plate.size - 12)
    values = torch.from_numpy(np.concatenate([np.zeros(12), 0.12 * loads]))
    target, place = shuffled(Shape(plate.moved(values, points).numpy()))
    assert found_share(body, target, place, density, "tps") > 0.98
    assert found_share(body, target, place, density, "affine") < 0.8


@pytest.mark.parametrize("deformation", ["affine", "tps"])
def test_kernel_correlation_alone_shrinks_what_may_shrink(body: Shape, deformation: str) -> None:
    """It has no term that keeps the source spread: a point in the thick of the target is best."""
    points = torch.tensor(body.normalized(radius=1.0).points)
    heart = products(points * 0, points - points[100], 0.3).between
    assert float(heart) > float(products(points, points, 0.3).between)
    frame = points.numpy()
    method = DensityRegistration(density="kc", deformation=deformation)
    moved = method.register(frame, frame)
    assert np.ptp(moved, axis=0).max() < 0.3 * np.ptp(frame, axis=0).max()
