"""Which ways to match a pair are tried."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_frame import upright_rotation
from ltenet.bodies.body_pairs import own_generator
from ltenet.data.sampling import positions_of, sample_surface
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import kabsch, rotation_degrees
from ltenet.matching.networks import read_aligner, read_networks
from ltenet.matching.preparation import prepare
from ltenet.matching.ways import (
    LEAST_PRIOR,
    Way,
    aligned_ways,
    framed_ways,
    given_ways,
    opinion,
    turned,
)
from ltenet.shape import Shape

HUMAN, ANY = "human", "any"


def person(index: int) -> Shape:
    """400 vertices of a generated person; the same ones of each."""
    vertices = own_generator("human").draw(4321, index).vertices.astype(np.float64)
    chosen = np.random.default_rng(5).choice(len(vertices), 400, replace=False)
    return Shape(vertices[chosen])


@pytest.fixture(scope="module")
def networks():
    return [read_networks(HUMAN), read_networks(ANY), read_aligner()]


def prepared(networks, *shapes, orient="any"):
    return [prepare(shape, networks, points=None, orient=orient) for shape in shapes]


def test_a_half_turn_of_either_shape_is_always_tried(networks):
    source, target = prepared(networks, person(2), person(3))
    ways = framed_ways(networks, source, target, orient="any", steering=None)
    assert all(way.networks.name == HUMAN for way in ways)
    assert (ways[0].source, ways[0].target) == (source[0][0], target[0][0])
    assert ways[0].prior == max(way.prior for way in ways)
    for side in ("source", "target"):
        rotations = [getattr(way, side).rotation for way in ways]
        assert max(rotation_degrees(one @ rotations[0].T) for one in rotations) > 60
    # But not of both at once.
    assert not any(way.source is source[0][1] and way.target is target[0][1] for way in ways)


def test_weights_that_were_asked_for_are_used_on_any_kind_of_shape(networks):
    """A gorilla may look like a person: with weights of animals it has a frame all the same."""
    animal = [read_networks("animal"), networks[2]]
    source, target = prepared(animal, person(2), person(3))
    for index in (0, 1):
        assert source[0][index].frame.kinds[1] < 0.05  # no animal
    ways = framed_ways(animal, source, target, orient="any", steering=None)
    assert ways[0].source is source[0][0]
    assert ways[0].target is target[0][0]
    several = [*animal, networks[0]], [*source, source[0]], [*target, target[0]]
    kinds = framed_ways(*several, orient="any", steering=None)
    assert {way.networks.name for way in kinds} == {HUMAN}


def test_opinions_have_a_floor(networks):
    one = prepared(networks, person(2))[0][0][0]
    sure = one.frame._replace(certainty=1.0, kinds=(1.0, 0.0))
    assert opinion(networks[0], type(one)(one.sample, one.matrix, sure)) == 0.0
    never = sure._replace(certainty=0.0)
    floor = opinion(networks[0], type(one)(one.sample, one.matrix, never))
    assert floor == pytest.approx(math.log(0.03))
    other_kind = sure._replace(kinds=(0.0, 1.0))
    assert opinion(networks[0], type(one)(one.sample, one.matrix, other_kind)) == LEAST_PRIOR
    assert opinion(networks[1], type(one)(one.sample, one.matrix, None)) == 0.0


def test_a_turn_gives_either_shape_the_frame_of_the_other(networks):
    source, target = prepared(networks, person(2), person(3))
    turn = Rotation.from_euler("y", 70, degrees=True).as_matrix()
    way = Way(networks[0], source[0][0], target[0][0], -1.0)
    first, second = turned(way, turn, "any")
    np.testing.assert_allclose(first.source.rotation, turn @ way.source.rotation, atol=1e-9)
    assert first.target is way.target
    np.testing.assert_allclose(second.target.rotation, turn.T @ way.target.rotation, atol=1e-9)
    assert second.source is way.source
    assert first.prior == opinion(networks[0], way.target)
    tilted = Rotation.from_euler("zy", [20, 70], degrees=True).as_matrix()
    level = turned(way, tilted, "yaw")[0].source.rotation @ way.source.rotation.T
    np.testing.assert_allclose(level[1], [0, 1, 0], atol=1e-9)


def test_frameless_weights_find_how_a_turned_copy_lies(networks):
    shape = person(2)
    rotation = Rotation.random(random_state=8).as_matrix()
    copy = Shape(shape.points @ rotation.T)
    source, target = prepared(networks, shape, copy)
    ways = aligned_ways(networks, source, target, orient="any", steering=None)
    own = [way for way in ways if way.networks.name == ANY]
    assert len(own) == 1
    between = kabsch(own[0].source.points.numpy(), own[0].target.points.numpy()).rotation
    assert rotation_degrees(between) < 10
    # The features are those of any orientation, and computed once.
    features = source[2][0].rotated(rotation).first_part.features
    np.testing.assert_array_equal(features, source[2][0].first_part.features)
    alone = [networks[0], networks[2]], [source[0], source[2]], [target[0], target[2]]
    ways = aligned_ways(*alone, orient="any", steering=None)
    assert all(way.networks.name == HUMAN for way in ways)  # the aligner matches nothing


def test_things_of_no_class_are_tried_in_several_positions(networks):
    shape = person(2)
    rotation = Rotation.random(random_state=8).as_matrix()
    alone = networks[1:]  # nobody says what kind of shape it is
    source, target = prepared(alone, shape, Shape(shape.points @ rotation.T))
    ways = aligned_ways(alone, source, target, orient="any", steering=None)
    angles = [
        rotation_degrees(kabsch(way.source.points.numpy(), way.target.points.numpy()).rotation)
        for way in ways
    ]
    assert min(angles) < 10  # the right one
    assert sum(angle > 30 for angle in angles) > 3  # and others to compare it with


def test_shapes_are_also_tried_as_they_are_given(networks):
    source, target = prepared(networks, person(2), person(3), orient="auto")
    ways = given_ways(networks, source, target, orient="auto", steering=None)
    assert [way.networks.name for way in ways] == [HUMAN]  # the others have no frame to leave out
    for shape in (ways[0].source, ways[0].target):
        np.testing.assert_allclose(shape.rotation, np.eye(3), atol=1e-9)
    assert ways[0].prior == pytest.approx(math.log(0.3), abs=0.2)
    assert not given_ways(networks, source, target, orient="any", steering=None)


def head(index: int) -> tuple[FloatArray, FloatArray]:
    """4,000 points on the head of a generated person, and the rotation to its frame."""
    generator = own_generator("thing")
    template = generator.templates["human-head"]
    vertices = generator.draw(77, index, template=template.name).vertices
    drawn = sample_surface(vertices, template.faces, 4000, np.random.default_rng(index))
    points = positions_of(drawn, vertices, template.faces)
    return points, upright_rotation(vertices, template)


def test_heads_lie_as_their_frames_say(networks):
    alone = networks[1:]  # nobody says what kind of shape it is
    right = []
    for index in range(6):
        (points, up), (others, other_up) = head(2 * index), head(2 * index + 1)
        rotation = Rotation.random(random_state=index).as_matrix()
        source, target = (
            prepare(Shape(cloud), alone, points=1024, orient="any")
            for cloud in (points @ rotation.T, others)
        )
        turn = other_up.T @ up @ rotation.T  # brings the one onto the other
        first, second = (one[0][0].sample.piece_frames[:2] for one in (source, target))
        apart = [
            rotation_degrees(theirs.rotation.T @ ours.rotation @ turn.T)
            for ours in first
            for theirs in second
        ]
        right.append(min(apart) < 45)
        ways = aligned_ways(alone, source, target, orient="any", steering=None)
        assert len({round(way.prior, 6) for way in ways}) > 1  # the frames speak for some of them
    assert sum(right) >= 4


def test_a_thing_is_no_piece_of_a_body(networks):
    generator = own_generator("thing", held_back=True)
    template = next(iter(generator.templates))
    thing = Shape(generator.draw(3, 0, template=template).vertices.astype(np.float64))
    (alone,) = prepared(networks[1:2], thing)
    assert alone[0][0].sample.piece_frames == ()


def test_frames_that_disagree_with_the_alignment_are_corrected(networks):
    shape = person(2)
    source, target = prepared(networks, shape, shape)
    wrong = Rotation.from_euler("y", 100, degrees=True).as_matrix()
    source = ((source[0][0].rotated(wrong),), *source[1:])
    ways = aligned_ways(networks, source, target, orient="any", steering=None)
    angles = [
        rotation_degrees(kabsch(way.source.points.numpy(), way.target.points.numpy()).rotation)
        for way in ways
        if way.networks.name == HUMAN
    ]
    assert min(angles) < 10


def test_without_orientation_nothing_is_turned(networks):
    source, target = prepared(networks, person(2), person(3), orient="none")
    ways = aligned_ways(networks, source, target, orient="none", steering=None)
    own = next(way for way in ways if way.networks.name == ANY)
    np.testing.assert_allclose(own.source.rotation, np.eye(3), atol=1e-9)
