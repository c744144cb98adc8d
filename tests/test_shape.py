from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ltenet import Shape
from ltenet.errors import InputError

POINTS = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]])
FACES = np.array([[0, 1, 2], [0, 3, 1]])


def test_normalisation_centres_scales_and_leads_back() -> None:
    shape = Shape(POINTS + 100, FACES).normalized()
    np.testing.assert_allclose(shape.points.mean(axis=0), 0, atol=1e-12)
    assert np.sqrt(np.square(shape.points).sum(axis=1).mean()) == pytest.approx(0.5)
    np.testing.assert_allclose(shape.restored(), POINTS + 100)
    np.testing.assert_allclose(shape.restored(shape.points[:2]), POINTS[:2] + 100)
    assert shape.faces is not None
    unit = Shape(POINTS).normalized(radius=None)
    np.testing.assert_allclose(unit.points, POINTS - 0.5)


@settings(max_examples=30, deadline=None)
@given(arrays(np.float64, (5, 3), elements=st.floats(-1e6, 1e6)), st.integers(0, 99))
def test_a_chain_of_transforms_leads_back(points: np.ndarray, seed: int) -> None:
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    shape = Shape(points).rotated(rotation).normalized(radius=None).rotated(rotation.T)
    np.testing.assert_allclose(shape.restored(), points, atol=1e-6)


def test_a_shape_cannot_be_changed_and_does_not_hold_the_callers_array() -> None:
    mine = POINTS.copy()
    shape = Shape(mine)
    mine[0] = 9
    assert shape.points[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        shape.points[0] = 1


def test_a_subset_keeps_what_belongs_to_its_points() -> None:
    shape = Shape(POINTS, FACES, np.eye(4, dtype=np.uint8), np.arange(4), name="box")
    part = shape.subset([2, 0])
    np.testing.assert_array_equal(part.points, POINTS[[2, 0]])
    assert part.labels is not None
    assert part.labels.tolist() == [2, 0]
    assert part.colors is not None
    assert part.colors.shape == (2, 4)
    assert part.faces is None
    assert repr(part) == "Shape('box', 2 points, a cloud)"
    assert len(shape) == 4


def test_the_diameter_is_the_largest_distance() -> None:
    shape = Shape(POINTS)
    assert shape.diameter == pytest.approx(np.sqrt(8))
    assert shape.transformed(np.diag([3.0, 3, 3, 1])).diameter == pytest.approx(3 * np.sqrt(8))
    assert Shape(np.ones((2, 3))).diameter == 0
    with pytest.raises(AttributeError):
        shape.diameter = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": np.zeros((3, 2))}, r"got points of shape \(3, 2\), expected \(N, 3\)"),
        ({"points": np.zeros((0, 3))}, "N >= 1"),
        ({"points": [["a", "b", "c"]]}, "that are not numbers"),
        ({"points": [[0, 0, np.nan], [0, 0, 0]]}, "1 of 2 points that are not finite.*index 0"),
        ({"points": POINTS, "faces": [[0, 1, 4]]}, "vertices 0 to 4.*0 to 3.*counts from 1"),
        ({"points": POINTS, "faces": [[0, 1, -1]]}, "vertices -1"),
        ({"points": POINTS, "faces": [[0, 1, 2, 3]]}, "triangulating"),
        ({"points": POINTS, "colors": np.zeros((4, 3))}, "uint8"),
        ({"points": POINTS, "colors": np.zeros((3, 3), np.uint8)}, "got 3 colours for 4"),
        ({"points": POINTS, "labels": np.zeros(4)}, "one integer per point"),
        ({"points": POINTS, "labels": np.zeros(5, int)}, "got 5 labels for 4"),
        ({"points": POINTS, "transform": np.eye(3)}, r"finite \(4, 4\)"),
    ],
)
def test_what_is_not_a_shape_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Shape(**arguments)  # type: ignore[arg-type]


def test_transforms_and_normalisation_refuse_what_they_cannot_do() -> None:
    with pytest.raises(InputError, match="upper left of the identity"):
        Shape(POINTS).transformed(np.eye(3))
    with pytest.raises(InputError, match="got 3 points that coincide"):
        Shape(np.ones((3, 3))).normalized()
