"""Missing values come from the nearest point along the surface, not through the air."""

from __future__ import annotations

import numpy as np

from ltenet.shape import Shape
from ltenet.transferring.filling import fill_from_neighbors


def strip(heights: list[float]) -> Shape:
    """Two rows of points and triangles between them; the second row lies at z = 1."""
    x = np.arange(len(heights), dtype=float)
    points = np.concatenate([np.stack([x, heights, np.full(len(x), z)], 1) for z in (0.0, 1.0)])
    n = len(heights)
    faces = [(i, i + 1, n + i) for i in range(n - 1)]
    faces += [(i + 1, n + i + 1, n + i) for i in range(n - 1)]
    return Shape(points, np.array(faces))


def test_the_nearest_along_the_surface() -> None:
    # A hairpin: the ends are neighbours in space only.
    shape = strip([0, 10, 20, 30, 40])
    points = shape.points.copy()
    points[:, 0] = np.tile([0.0, 0.0, 0.0, 0.1, 0.1], 2)
    points[:, 1] = np.tile([0.0, 10.0, 20.0, 10.0, 0.0], 2)
    shape = Shape(points, shape.faces)
    values = np.arange(10.0)
    values[[0, 5]] = np.nan
    filled = fill_from_neighbors(values, shape)
    assert filled.taken.nonzero()[0].tolist() == [0, 5]
    assert filled.values[[0, 5]].tolist() == [1.0, 6.0]


def test_parts_without_values_and_nothing_at_all() -> None:
    one = strip([0, 0, 0])
    assert one.faces is not None
    two = Shape(
        np.concatenate([one.points, one.points + np.array([0, 5, 0])]),
        np.concatenate([one.faces, one.faces + 6]),
    )
    values = np.stack([np.arange(12.0), -np.arange(12.0)], axis=1)
    values[6:, 1] = np.nan
    filled = fill_from_neighbors(values, two)
    np.testing.assert_array_equal(filled.values[6:], values[:6])
    empty = fill_from_neighbors(np.full(6, np.nan), one)
    assert np.isnan(empty.values).all()
    assert not empty.taken.any()
