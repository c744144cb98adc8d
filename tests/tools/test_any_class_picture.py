"""Which maps of a class are drawn, what stands below them, and how the shapes lie."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ltenet.data.mesh_set import LandmarkSet
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.bench.mesh_scoring import LandmarkScores
from ltenet.geometry.arrays import IntArray
from ltenet.geometry.rotations import axis_rotation
from ltenet.shape import Shape
from tools.any_class_picture import (
    VIEWS,
    Scored,
    captions_of,
    extremes,
    fewer_colors,
    first_pairs,
    rotation_onto,
    tiles_of,
)

TURN = axis_rotation((1.0, 2.0, 3.0), 130.0)
BOX = np.array([[x, y, z] for x in (0.0, 1) for y in (0.0, 2) for z in (0.0, 4)])
FACES = np.array([[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 5, 1], [0, 4, 5], [2, 3, 7]])


class Boxes(LandmarkSet):
    """A box, and a larger one that is turned and lacks a landmark."""

    name = "boxes"
    names = ("small", "large")
    categories = ("box", "box")
    pairs = np.array([[1, 0]])

    def shape(self, index: int) -> Shape:
        points = BOX if index == 0 else 3 * BOX @ TURN.T + 5.0
        return Shape(points, faces=FACES, name=self.names[index])

    def landmarks(self, index: int) -> IntArray:
        return np.array([0, 1, 2, 4, 7 if index == 0 else -1])

    def swapped(self, index: int) -> IntArray:
        return np.arange(5)


def scored(pair: int, plain: float, symmetric: float) -> Scored:
    return Scored(pair, LandmarkScores(plain, symmetric), np.arange(len(BOX)))


def test_the_first_pairs_of_each_class() -> None:
    pairs = np.array([[0, 1], [1, 0], [0, 1], [2, 3], [3, 2], [1, 0]])
    found = first_pairs(("bird", "bird", "fish", "fish"), pairs, 3)
    assert found == {"bird": [0, 1, 2], "fish": [3, 4]}


def test_best_and_worst_are_up_to_symmetry() -> None:
    maps = [scored(0, 5.0, 5.0), scored(1, 30.0, 2.0), scored(2, 9.0, 9.0), scored(3, 9.0, 9.0)]
    best, worst = extremes(maps)
    assert (best.pair, worst.pair) == (1, 2)


def test_captions_name_class_error_and_swapped_sides() -> None:
    captions = captions_of("bird", scored(0, 3.14, 3.14), scored(1, 30.0, 12.0), 5)
    assert captions == ["best of 5", "bird 3.1 %", "worst of 5", "bird 12.0 % swapped"]
    # A bad map fits one of the two sides a little better by chance.
    assert captions_of("hand", scored(0, 4.0, 4.0), scored(1, 25.4, 21.1), 2)[-1] == "hand 21.1 %"


def test_shapes_lie_alike_whatever_their_position_and_size() -> None:
    shapes = Boxes()
    np.testing.assert_allclose(rotation_onto(shapes, 1, 0), TURN.T, atol=1e-12)
    target, source = tiles_of(shapes, scored(0, 0.0, 0.0), VIEWS["bust"]._replace(shape="small"))
    # The identity is the right map of the two boxes, so their pictures are the same.
    assert np.abs(target.astype(int) - source).max() <= 2
    assert (target < 250).any()


def test_fewer_colors_keep_black_and_white() -> None:
    image = np.arange(256, dtype=np.uint8).reshape(16, 16)
    rounded = fewer_colors(image, 32)
    assert len(np.unique(rounded)) == 32
    assert (rounded.min(), rounded.max()) == (0, 255)
    assert np.abs(rounded.astype(int) - image).max() <= 5


def test_every_class_of_the_set_has_a_view() -> None:
    default = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("LTENET_DATA", default))
    if not (folder / "shrec07.npz").is_file():
        pytest.skip(f"shrec07.npz is not in {folder}; set LTENET_DATA to the folder that holds it")
    shapes = open_benchmark("shrec07", folder)
    assert set(shapes.categories) == set(VIEWS)
    for category, view in VIEWS.items():
        assert shapes.categories[shapes.names.index(view.shape)] == category
