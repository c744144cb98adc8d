"""Rotation matrices, vectorised over leading axes, and the motions that best align two point sets.

A rotation R acts on column vectors, ``R @ x``; an (N, 3) array turns by ``points @ R.T``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TINY = 1e-9


class Similarity(NamedTuple):
    """The motion ``x -> scale * rotation @ x + shift``.

    Attributes
    ----------
    rotation
        (3, 3), determinant +1.
    scale
        Positive.
    shift
        (3,)
    """

    rotation: NDArray[np.float64]
    scale: float
    shift: NDArray[np.float64]

    def __call__(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Move (N, 3) points."""
        moved: NDArray[np.float64] = self.scale * points @ self.rotation.T + self.shift  # (N, 3)
        return moved


def axis_rotation(axis: ArrayLike, degrees: ArrayLike) -> NDArray[np.float64]:
    """Rotation about an axis, counter-clockwise when the axis points at the viewer.

    Rodrigues' formula, ``R = cos a I + sin a [u]x + (1 - cos a) u u^T``.

    Parameters
    ----------
    axis
        (..., 3), of any length but zero.
    degrees
        (...), broadcast against the leading axes of ``axis``.

    Returns
    -------
    (..., 3, 3)
    """
    direction = np.asarray(axis, dtype=np.float64)  # (..., 3)
    direction = direction / np.linalg.norm(direction, axis=-1, keepdims=True)  # (..., 3)
    angle = np.radians(np.asarray(degrees, dtype=np.float64))  # (...)
    return _rodrigues(direction, np.cos(angle), np.sin(angle))


def swing(from_direction: ArrayLike, to_direction: ArrayLike) -> NDArray[np.float64]:
    """Smallest rotation that takes one direction to another.

    Parameters
    ----------
    from_direction, to_direction
        (..., 3), broadcast against each other; lengths do not matter. Opposite directions have no
        unique smallest rotation: any half turn between them is returned.

    Returns
    -------
    (..., 3, 3)
    """
    start, end = np.broadcast_arrays(
        np.asarray(from_direction, dtype=np.float64), np.asarray(to_direction, dtype=np.float64)
    )
    start = start / np.linalg.norm(start, axis=-1, keepdims=True)  # (..., 3)
    end = end / np.linalg.norm(end, axis=-1, keepdims=True)  # (..., 3)
    normal = np.cross(start, end)  # (..., 3)
    sine = np.linalg.norm(normal, axis=-1, keepdims=True)  # (..., 1)
    cosine = np.sum(start * end, axis=-1)  # (...)
    # With (anti)parallel directions the cross product vanishes: turn about any perpendicular.
    helper = np.eye(3)[np.argmin(np.abs(start), axis=-1)]  # (..., 3)
    perpendicular = np.cross(start, helper)  # (..., 3)
    perpendicular /= np.linalg.norm(perpendicular, axis=-1, keepdims=True)
    axis = np.where(sine > _TINY, normal / np.maximum(sine, _TINY), perpendicular)  # (..., 3)
    return _rodrigues(axis, cosine, sine[..., 0])


def compose(*rotations: ArrayLike) -> NDArray[np.float64]:
    """Product of rotations, ``compose(A, B, C) = A B C``: the last one acts first.

    Parameters
    ----------
    rotations
        Each (..., 3, 3), broadcast over the leading axes.

    Returns
    -------
    (..., 3, 3)
    """
    product = np.eye(3)
    for rotation in rotations:
        product = product @ np.asarray(rotation, dtype=np.float64)  # (..., 3, 3)
    return product


def rotation_degrees(rotation: ArrayLike) -> float:
    """Angle of a (3, 3) rotation, from 0 to 180 degrees."""
    cosine = (np.trace(np.asarray(rotation)) - 1) / 2
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def homogeneous(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """(4, 4) homogeneous matrix of a (3, 3) rotation."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    return matrix


def nearest_rotations(matrices: ArrayLike) -> NDArray[np.float64]:
    """Rotations (..., 3, 3) nearest to (..., 3, 3) matrices in the Frobenius norm.

    By singular values; the weakest direction is flipped where the nearest orthogonal matrix is a
    reflection.
    """
    left, _, right = np.linalg.svd(np.asarray(matrices, dtype=np.float64))  # (..., 3, 3) each
    left[..., 2] *= np.where(np.linalg.det(left @ right) < 0, -1.0, 1.0)[..., None]
    rotations: NDArray[np.float64] = left @ right  # (..., 3, 3)
    return rotations


def kabsch(
    points: NDArray[np.floating],
    goals: NDArray[np.floating],
    weights: NDArray[np.floating] | None = None,
) -> Similarity:
    """Rigid motion (scale 1) that best moves points onto goals [Kabsch 1976].

    Minimises ``sum_i w_i |R x_i + t - y_i|^2`` over rotations R and shifts t.

    Parameters
    ----------
    points, goals
        (N, 3) each.
    weights
        (N,), not negative; equal if left out.
    """
    rotation, centre, goal_centre, _ = _aligned(points, goals, weights)
    return Similarity(rotation, 1.0, goal_centre - rotation @ centre)


def umeyama(
    points: NDArray[np.floating],
    goals: NDArray[np.floating],
    weights: NDArray[np.floating] | None = None,
) -> Similarity:
    """Rotation, scale and shift that best move points onto goals [Umeyama 1991].

    Minimises ``sum_i w_i |s R x_i + t - y_i|^2``; parameters as for `kabsch`. The scale is 1 where
    no positive one fits: coincident points, or goals that mirror them.
    """
    rotation, centre, goal_centre, scale = _aligned(points, goals, weights)
    return Similarity(rotation, scale, goal_centre - scale * rotation @ centre)


def _aligned(
    points: NDArray[np.floating],
    goals: NDArray[np.floating],
    weights: NDArray[np.floating] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Best rotation (3, 3), both weighted centres (3,), and the best scale."""
    shares = np.ones(len(points)) if weights is None else weights.astype(np.float64)  # (N,)
    shares = shares / max(float(shares.sum()), 1e-300)
    centre, goal_centre = shares @ points, shares @ goals  # (3,), (3,)
    centred = points - centre  # (N, 3)
    covariance = (goals - goal_centre).T @ (centred * shares[:, None])  # (3, 3)
    rotation = nearest_rotations(covariance)  # (3, 3)
    variance = float(shares @ np.square(centred).sum(axis=1))
    scale = float(np.sum(rotation * covariance)) / variance if variance > 0 else 0.0
    return rotation, centre, goal_centre, scale if scale > 0 else 1.0


def _rodrigues(
    axis: NDArray[np.float64], cosine: NDArray[np.float64], sine: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rotation matrices from unit axes (..., 3) and the cosine and sine of the angle (...)."""
    leading = np.broadcast_shapes(axis.shape[:-1], np.shape(cosine))
    x, y, z = axis[..., 0], axis[..., 1], axis[..., 2]
    versine = 1.0 - cosine
    rotation = np.empty((*leading, 3, 3))
    rotation[..., 0, 0] = cosine + versine * x * x
    rotation[..., 1, 1] = cosine + versine * y * y
    rotation[..., 2, 2] = cosine + versine * z * z
    rotation[..., 0, 1] = versine * x * y - sine * z
    rotation[..., 1, 0] = versine * x * y + sine * z
    rotation[..., 0, 2] = versine * x * z + sine * y
    rotation[..., 2, 0] = versine * x * z - sine * y
    rotation[..., 1, 2] = versine * y * z - sine * x
    rotation[..., 2, 1] = versine * y * z + sine * x
    return rotation
