"""The frame of a body itself: its trunk upright and facing +z, whatever the pose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.data.generated import Template
from ltenet.errors import InputError
from ltenet.shape import FloatArray


def upright_rotation(vertices: NDArray[np.floating], template: Template) -> FloatArray:
    """(3, 3) rotation that brings (V, 3) vertices as near as it can to the template at rest.

    Thick parts count most, by their cross-section: the trunk decides, not the limbs.
    """
    if template.rest is None or template.size is None:
        raise InputError(
            f"the template {template.name} does not know its rest pose; `rest` and `size` are "
            "needed for the frame of a body; set them, or use the world's frame"
        )
    return best_rotation(vertices, template.rest, np.square(template.size, dtype=np.float64))


def upright_matrix(vertices: NDArray[np.floating], template: Template) -> FloatArray:
    """(4, 4) homogeneous matrix of `upright_rotation`."""
    matrix = np.eye(4)
    matrix[:3, :3] = upright_rotation(vertices, template)
    return matrix


def best_rotation(
    points: NDArray[np.floating], goals: NDArray[np.floating], weights: FloatArray
) -> FloatArray:
    """(3, 3) rotation R with the least sum of ``w |R x - y - t|^2`` over any shift t (Kabsch)."""
    shares = weights / weights.sum()  # (V,)
    centred = points - shares @ points  # (V, 3)
    covariance = (centred * shares[:, None]).T @ (goals - shares @ goals)  # (3, 3)
    left, _, right = np.linalg.svd(covariance.astype(np.float64))
    proper = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])  # no mirroring
    rotation: FloatArray = right.T @ proper @ left.T
    return rotation
