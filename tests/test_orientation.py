"""The orientation network: what it sees, and that its answer turns with the shape."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from ltenet.data.body_pairs import own_generator
from ltenet.errors import InputError
from ltenet.model import find_weights
from ltenet.orientation import FILE, POINTS, Orienter, evened, invariants, rotation_from


@pytest.fixture(scope="module")
def person():
    return own_generator("human").draw(11, 3).vertices.astype(np.float64)[::4]


def random_turn(seed):
    return Rotation.random(random_state=seed).as_matrix()


def test_invariants_do_not_change_under_rotation(person):
    points = torch.from_numpy(evened(person)).double()
    turned = points @ torch.from_numpy(random_turn(2)).T
    torch.testing.assert_close(invariants(turned), invariants(points), atol=1e-9, rtol=1e-6)


def test_directions_turn_with_the_shape(person):
    torch.manual_seed(0)
    network = Orienter().double().eval()
    points = torch.from_numpy(evened(person)).double()
    turn = torch.from_numpy(random_turn(3))
    with torch.no_grad():
        before, after = network(torch.stack([points, points @ turn.T]))
    torch.testing.assert_close(after, before @ turn.T, atol=1e-9, rtol=1e-6)


def test_rotation_brings_up_to_y_and_front_to_z():
    directions = torch.tensor([[0.3, 2.0, 0.1], [1.0, 0.4, -0.2]], dtype=torch.float64)
    rotation = rotation_from(directions)
    up = rotation @ directions[0]
    front = rotation @ directions[1]
    np.testing.assert_allclose(up / up.norm(), [0, 1, 0], atol=1e-12)
    assert front[2] > 0
    assert abs(front[0]) < 1e-12
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(3).double())
    assert torch.det(rotation) > 0


@pytest.mark.parametrize("name", ["human", "animal"])
def test_shipped_networks_stand_shapes_up(name):
    network = Orienter.from_pretrained(find_weights(name))
    generator = own_generator(name)
    from ltenet.data.body_frame import upright_rotation

    wrong = 0
    for index in range(12):
        body = generator.draw(9001, index)
        truth = upright_rotation(body.vertices, generator.templates[body.template])
        turn = random_turn(index)
        found = network.frame(body.vertices @ turn.T).rotation @ turn
        angle = np.degrees(np.arccos(np.clip((np.trace(found @ truth.T) - 1) / 2, -1, 1)))
        wrong += angle > 45
    assert wrong <= 1


def test_the_frame_does_not_depend_on_unit_place_or_order(person):
    network = Orienter.from_pretrained(find_weights("human"))
    rng = np.random.default_rng(0)
    moved = 1000 * person[rng.permutation(len(person))] + [5000.0, -20.0, 3.0]
    np.testing.assert_allclose(
        network.frame(moved).rotation, network.frame(person).rotation, atol=0.02
    )


def test_small_shapes_are_repeated():
    assert evened(np.random.default_rng(0).normal(size=(60, 3))).shape == (POINTS, 3)


def test_the_network_is_written_and_read(tmp_path):
    torch.manual_seed(1)
    network = Orienter().eval()
    network.save_pretrained(tmp_path)
    points = torch.randn(1, POINTS, 3)
    with torch.no_grad():
        torch.testing.assert_close(Orienter.from_pretrained(tmp_path)(points), network(points))
    assert Orienter.from_pretrained(tmp_path / "nowhere") is None
    (tmp_path / FILE).write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot be read"):
        Orienter.from_pretrained(tmp_path)
