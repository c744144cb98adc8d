"""Shapes whose correspondence is known."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from ltenet.shape import Shape


def shuffled(shape: Shape, seed: int = 0) -> tuple[Shape, np.ndarray]:
    """The same shape in another order, and the new place of each old point."""
    order = np.random.default_rng(seed).permutation(len(shape))
    place = np.argsort(order)
    faces = None if shape.faces is None else place[shape.faces]
    return Shape(shape.points[order], faces=faces, name="shuffled"), place


def turned(shape: Shape, degrees: float) -> Shape:
    """The shape turned about an oblique axis and shifted."""
    axis = np.array([1.0, 2.0, -1.5]) / np.linalg.norm([1.0, 2.0, -1.5])
    rotation = Rotation.from_rotvec(np.radians(degrees) * axis).as_matrix()
    return Shape(shape.points @ rotation.T + (3.0, -1.0, 2.0), faces=shape.faces, name="turned")
