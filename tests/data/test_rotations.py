from __future__ import annotations

import numpy as np
import pytest

from ltenet.data.rotations import axis_rotation, compose, swing


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
