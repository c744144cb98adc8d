"""Frames of bodies: the trunk upright and facing +z, whatever the pose; or as another one lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.generated import Template
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import homogeneous, kabsch


def upright_rotation(vertices: NDArray[np.floating], template: Template) -> FloatArray:
    """(3, 3) rotation that brings (V, 3) vertices as near as it can to the template at rest.

    Thick parts count most, by their cross-section: the trunk decides, not the limbs.
    """
    if template.rest is None or template.size is None:
        raise InputError(
            f"got the template {template.name} without its rest pose, expected `rest` and `size` "
            "for the frame of a body; try setting them, or the world's frame"
        )
    return kabsch(vertices, template.rest, np.square(template.size, dtype=np.float64)).rotation


def upright_matrix(vertices: NDArray[np.floating], template: Template) -> FloatArray:
    """(4, 4) homogeneous matrix of `upright_rotation`."""
    return homogeneous(upright_rotation(vertices, template))


def common_matrices(
    vertices: NDArray[np.floating], others: NDArray[np.floating], turn: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(4, 4) matrices for (V, 3) vertices of two bodies, after which they lie alike.

    The first is rotated onto the second as well as it can be, then both by the (3, 3) `turn`.
    """
    onto = kabsch(vertices, others).rotation  # (3, 3)
    return homogeneous(turn @ onto), homogeneous(turn)
