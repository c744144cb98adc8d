"""Shapes of one class are laid alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_pairs import own_generator
from ltenet.correspondence import Correspondence
from ltenet.geometry.rotations import kabsch, rotation_degrees
from ltenet.matching.alignment import turn_of_map
from ltenet.matching.common_frame import laid_alike
from ltenet.matching.refine import refine
from ltenet.shape import Shape


def animals(count: int) -> list[Shape]:
    """The same 400 vertices of generated dogs, each turned at random."""
    generator = own_generator("animal")
    template = next(iter(generator.templates))
    chosen = np.random.default_rng(5).choice(
        len(generator.draw(4321, 0, template=template).vertices), 400, replace=False
    )
    return [
        Shape(
            generator.draw(4321, index, template=template).vertices[chosen].astype(np.float64)
            @ Rotation.random(random_state=index).as_matrix().T
        )
        for index in range(count)
    ]


@pytest.mark.slow
def test_shapes_turned_at_random_come_to_lie_alike() -> None:
    shapes = animals(5)
    steps = []

    def track(todo: list[tuple[int, int]]) -> list[tuple[int, int]]:
        steps.extend(todo)
        return todo

    laid = laid_alike(shapes, "any", track=track)
    assert len(steps) == 5 * 4
    apart = [rotation_degrees(kabsch(one.points, laid[0].points).rotation) for one in laid[1:]]
    assert np.median(apart) < 30
    assert max(apart) < 90
    # Rotated, and nothing else.
    for given, one in zip(shapes, laid, strict=True):
        motion = kabsch(given.points, one.points)
        np.testing.assert_allclose(
            given.points @ motion.rotation.T + motion.shift, one.points, atol=1e-9
        )


def test_a_map_tells_how_one_shape_lies_against_the_other() -> None:
    points = np.random.default_rng(0).normal(size=(80, 3))
    turn = Rotation.random(random_state=2).as_matrix()
    source, target = Shape(points), Shape(points @ turn.T + 3.0)
    indices = np.arange(80)
    indices[:5] = -1
    np.testing.assert_allclose(
        turn_of_map(Correspondence(indices, 80), source, target), turn, atol=1e-9
    )
    scores = np.ones(80)
    wrong = np.arange(80)
    wrong[:30], scores[:30] = wrong[:30][::-1], 0.0  # what is not trusted does not count
    found = turn_of_map(Correspondence(wrong, 80, scores=scores), source, target)
    np.testing.assert_allclose(found, turn, atol=1e-4)


def test_a_map_is_refined_in_the_common_frame_that_it_suggests() -> None:
    (shape,) = animals(1)
    target = Shape(shape.points @ Rotation.random(random_state=9).as_matrix().T)
    rough = np.arange(len(shape))
    rough[::3] = np.random.default_rng(1).permutation(rough[::3])
    refined = refine(rough, shape, target, model="any", trust=0.5)
    assert (refined.indices == np.arange(len(shape))).mean() > 0.95
