from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from ltenet.geometry.rotations import (
    axis_rotation,
    compose,
    kabsch,
    nearest_rotations,
    swing,
    umeyama,
)


def is_rotation(matrices: np.ndarray) -> bool:
    orthogonal = np.allclose(matrices @ np.swapaxes(matrices, -1, -2), np.eye(3), atol=1e-12)
    return orthogonal and np.allclose(np.linalg.det(matrices), 1.0)


def test_quarter_turns_take_axes_to_axes() -> None:
    x, y, z = np.eye(3)
    np.testing.assert_allclose(axis_rotation(z, 90) @ x, y, atol=1e-12)
    np.testing.assert_allclose(axis_rotation(x, 90) @ y, z, atol=1e-12)
    np.testing.assert_allclose(axis_rotation(y, 90) @ z, x, atol=1e-12)


def test_axis_rotation_broadcasts_and_ignores_the_length_of_the_axis() -> None:
    axes = np.random.default_rng(0).normal(size=(4, 1, 3))
    rotations = axis_rotation(axes, np.array([10.0, 200.0, -35.0]))
    assert rotations.shape == (4, 3, 3, 3)
    assert is_rotation(rotations)
    np.testing.assert_allclose(rotations, axis_rotation(7 * axes, [10.0, 200.0, -35.0]))
    np.testing.assert_allclose(
        np.trace(rotations, axis1=-2, axis2=-1)[0],
        1 + 2 * np.cos(np.radians([10.0, 200.0, -35.0])),
    )


def test_swing_is_the_smallest_rotation() -> None:
    rng = np.random.default_rng(1)
    start, end = rng.normal(size=(2, 50, 3))
    rotation = swing(start, end)
    assert is_rotation(rotation)
    turned = (rotation @ start[..., None])[..., 0]
    np.testing.assert_allclose(
        turned / np.linalg.norm(turned, axis=1, keepdims=True),
        end / np.linalg.norm(end, axis=1, keepdims=True),
        atol=1e-12,
    )
    # The axis of the smallest rotation is perpendicular to both, so it stays where it is.
    axis = np.cross(start, end)
    np.testing.assert_allclose((rotation @ axis[..., None])[..., 0], axis, atol=1e-9)


@pytest.mark.parametrize("direction", [*np.eye(3), [1.0, -2.0, 0.5]])
def test_swing_between_parallel_directions(direction: list[float]) -> None:
    vector = np.asarray(direction)
    np.testing.assert_allclose(swing(vector, 2 * vector), np.eye(3), atol=1e-9)
    half_turn = swing(vector, -vector)
    assert is_rotation(half_turn)
    np.testing.assert_allclose(half_turn @ vector, -vector, atol=1e-9)


def test_compose_applies_the_last_first() -> None:
    first, last = axis_rotation([1, 0, 0], 30), axis_rotation([[0, 1, 0], [0, 0, 1]], 50)
    np.testing.assert_allclose(compose(first, last), first @ last)
    np.testing.assert_allclose(compose(), np.eye(3))


def test_nearest_rotations_beat_all_others() -> None:
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(2, 5, 3, 3))
    found = nearest_rotations(matrices)
    assert found.shape == (2, 5, 3, 3)
    assert is_rotation(found)
    others = Rotation.random(5000, random_state=1).as_matrix()
    distances = np.linalg.norm(matrices[..., None, :, :] - others, axis=(-2, -1))  # (2, 5, 5000)
    assert (np.linalg.norm(matrices - found, axis=(-2, -1)) <= distances.min(axis=-1)).all()
    np.testing.assert_allclose(nearest_rotations(found), found, atol=1e-12)


def test_the_rotation_nearest_to_a_reflection_is_a_rotation() -> None:
    assert is_rotation(nearest_rotations(np.diag([3.0, 2.0, -1.0])))
    np.testing.assert_allclose(nearest_rotations(np.diag([3.0, 2.0, -1.0])), np.eye(3), atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_kabsch_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, goals = rng.normal(size=(2, 30, 3))
    weights = rng.uniform(0.1, 1.0, 30)
    shares = weights / weights.sum()
    oracle, _ = Rotation.align_vectors(goals - shares @ goals, points - shares @ points, weights)
    motion = kabsch(points, goals, weights)
    np.testing.assert_allclose(motion.rotation, oracle.as_matrix(), atol=1e-8)
    assert motion.scale == 1.0
    np.testing.assert_allclose(shares @ motion(points), shares @ goals, atol=1e-9)


def test_known_motions_are_found() -> None:
    points = np.random.default_rng(0).normal(size=(30, 3))
    rotation = Rotation.from_euler("xyz", [30, -50, 70], degrees=True).as_matrix()
    rigid = kabsch(points, points @ rotation.T + (1.0, 2.0, 3.0))
    np.testing.assert_allclose(rigid.rotation, rotation, atol=1e-12)
    np.testing.assert_allclose(rigid.shift, (1.0, 2.0, 3.0), atol=1e-12)
    goals = 2.5 * points @ rotation.T + (1.0, 2.0, 3.0)
    similar = umeyama(points, goals)
    np.testing.assert_allclose(similar.rotation, rotation, atol=1e-12)
    assert similar.scale == pytest.approx(2.5)
    np.testing.assert_allclose(similar(points), goals, atol=1e-12)
    assert is_rotation(kabsch(points, points * (-1, 1, 1)).rotation)  # though the goals mirror


def test_umeyama_is_a_minimum() -> None:
    rng = np.random.default_rng(3)
    points, goals = rng.normal(size=(2, 40, 3))
    goals += points
    weights = rng.uniform(0, 1, 40)

    def cost(moved: np.ndarray) -> float:
        return float(weights @ np.square(moved - goals).sum(axis=1))

    best = umeyama(points, goals, weights)
    for _ in range(100):
        turn = axis_rotation(rng.normal(size=3), 2.0 * rng.normal())
        other = best._replace(
            rotation=turn @ best.rotation,
            scale=best.scale * (1 + 0.05 * rng.normal()),
            shift=best.shift + 0.05 * rng.normal(size=3),
        )
        assert cost(best(points)) < cost(other(points))


def test_umeyama_of_coincident_points_is_a_shift() -> None:
    motion = umeyama(np.ones((4, 3)), np.full((4, 3), 5.0))
    assert motion.scale == 1.0
    np.testing.assert_allclose(motion(np.ones((1, 3))), [[5.0, 5.0, 5.0]])
    nothing = umeyama(np.eye(3), np.ones((3, 3)), np.zeros(3))
    np.testing.assert_allclose(nothing(np.eye(3)), np.eye(3))
