"""The frame of a body: known for every generated shape."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_frame import upright_matrix, upright_rotation
from ltenet.bodies.body_pairs import own_generator
from ltenet.bodies.generated import Template
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError
from ltenet.geometry.rotations import kabsch, rotation_degrees


@pytest.mark.parametrize("what", ["human", "animal"])
def test_the_frame_turns_with_the_body(what):
    generator = own_generator(what)
    body = generator.draw(0, 4)
    template = generator.templates[body.template]
    upright = upright_rotation(body.vertices, template)
    turn = Rotation.random(random_state=1).as_matrix()
    after = upright_rotation(body.vertices @ turn.T, template)
    np.testing.assert_allclose(after @ turn, upright, atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(upright), 1.0, atol=1e-9)


def test_a_lying_body_is_stood_up():
    generator = own_generator("human")
    template = generator.templates["human"]
    bodies = (generator.draw(0, index) for index in range(400))
    lying = next(body for body in bodies if body.family == "lie")
    heights = [
        np.ptp(vertices[:, 1])
        for vertices in (
            lying.vertices,
            lying.vertices @ upright_matrix(lying.vertices, template)[:3, :3].T,
        )
    ]
    assert heights[1] > 1.5 * heights[0]


def test_pairs_come_in_the_frame_of_the_body():
    template = own_generator("human").templates["human"]
    pairs = TrainingPairs(PairConfig(frame="body", by="vertex", sampling="shared"), seed=5)
    # Feet are below the head once the trunk is upright, whatever the pose.
    for index in range(4):
        source = pairs.draw(index).source
        assert np.isclose(np.sqrt(np.square(source).sum(1).mean()), 0.5, atol=1e-4)
    assert template.rest is not None
    assert template.rest[:, 1].argmax() != template.rest[:, 1].argmin()


def test_templates_without_a_rest_pose_are_refused():
    some = np.zeros(3, np.int32)
    bare = Template("bare", np.zeros((0, 3), np.int32), some, some, some, some)
    with pytest.raises(InputError, match="rest pose"):
        upright_rotation(np.zeros((3, 3)), bare)
    with pytest.raises(InputError, match="got frame = 'moon'"):
        PairConfig(frame="moon")


def test_bodies_in_a_common_frame_lie_alike_and_anyhow():
    pairs = TrainingPairs(PairConfig(what="thing", frame="common"), seed=4)
    turned = TrainingPairs(PairConfig(what="thing"), seed=4)
    against = []
    for index in range(4):
        pair, drawn = pairs.draw(index), turned.draw(index)
        between = kabsch(pair.source, pair.source_truth).rotation
        assert rotation_degrees(between) < 12  # the rest is how one deforms into the other
        against.append(kabsch(drawn.target, pair.target).rotation)  # the same points, turned
    angles = [rotation_degrees(one @ other.T) for one, other in pairwise(against)]
    assert min(angles) > 10
