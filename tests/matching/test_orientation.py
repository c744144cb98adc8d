"""The orientation networks: what they see, how frames are ranked, and files old and new."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_frame import upright_rotation
from ltenet.bodies.body_pairs import own_generator
from ltenet.errors import InputError
from ltenet.matching.frame_networks import KINDS, POINTS, Finder, Verdict, rotation_from
from ltenet.matching.orientation import FILE, Orienter, evened
from ltenet.method.invariants import invariants
from ltenet.method.model import find_weights


@pytest.fixture(scope="module")
def person():
    return own_generator("human").draw(11, 3).vertices.astype(np.float64)[::4]


def random_turn(seed):
    return Rotation.random(random_state=seed).as_matrix()


def degrees(rotation):
    return np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1)))


def test_invariants_do_not_change_under_rotation(person):
    points = torch.from_numpy(evened(person, 200)).double()
    turned = points @ torch.from_numpy(random_turn(2)).T
    torch.testing.assert_close(invariants(turned), invariants(points), atol=1e-9, rtol=1e-6)


def test_proposed_directions_turn_with_the_shape(person):
    torch.manual_seed(0)
    finder = Finder().double().eval()
    points = torch.from_numpy(evened(person, 300)).double()
    turn = torch.from_numpy(random_turn(3))
    with torch.no_grad():
        before, after = finder(torch.stack([points, points @ turn.T])).directions
    torch.testing.assert_close(after, before @ turn.T, atol=1e-9, rtol=1e-6)


def test_known_measures_give_the_same_proposal(person):
    torch.manual_seed(0)
    finder = Finder().eval()
    points = torch.from_numpy(evened(person, 300))[None]
    with torch.no_grad():
        plain = finder(points)
        known = finder(points, invariants(points[0])[None])
    torch.testing.assert_close(known.directions, plain.directions)


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


def knowing_critic(truth):
    """A critic that knows the true rotation: it favours frames near it and corrects the others."""

    def judge(seen, proposal, rotations):
        errors = rotations @ torch.from_numpy(truth).T  # from the true frame to the proposed ones
        traces = errors.diagonal(dim1=1, dim2=2).sum(dim=1)
        goal = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).double()
        return Verdict(
            3 * traces,
            goal @ errors.transpose(1, 2),
            torch.tensor([[4.0, 0.0, 0.0]] * len(rotations)),
        )

    return judge


def test_the_critic_corrects_and_ranks_frames(person, monkeypatch):
    torch.manual_seed(0)
    network, truth = Orienter().eval(), random_turn(5)
    monkeypatch.setattr(network, "_judge", knowing_critic(truth))
    frames = network.frames(person)
    np.testing.assert_allclose(frames[0].rotation, truth, atol=1e-6)
    assert frames[0].certainty > 0.98
    assert frames[0].kinds[KINDS.index("human")] > 0.95
    certainties = [frame.certainty for frame in frames]
    assert certainties == sorted(certainties, reverse=True)
    assert sum(certainties) <= 1 + 1e-9
    for number, frame in enumerate(frames):
        for other in frames[:number]:
            assert degrees(frame.rotation @ other.rotation.T) > 59
    assert network.frame(person).rotation is not None


@pytest.mark.parametrize("name", ["human", "animal"])
def test_shipped_networks_stand_shapes_up(name):
    network = Orienter.from_pretrained(find_weights(name))
    generator = own_generator(name)
    wrong = 0
    for index in range(12):
        body = generator.draw(9001, index)
        truth = upright_rotation(body.vertices, generator.templates[body.template])
        turn = random_turn(index)
        found = network.frame(body.vertices @ turn.T).rotation @ turn
        wrong += degrees(found @ truth.T) > 45
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


def test_the_networks_are_written_and_read(tmp_path):
    torch.manual_seed(1)
    network = Orienter().eval()
    network.save_pretrained(tmp_path)
    points = torch.randn(1, 200, 3)
    again = Orienter.from_pretrained(tmp_path)
    with torch.no_grad():
        proposal = network.finder(points)
        torch.testing.assert_close(again.finder(points).directions, proposal.directions)
        verdict = network.critic(points, proposal.details, proposal.graphs)
        torch.testing.assert_close(again.critic(points, *proposal[1:]).right, verdict.right)
    assert Orienter.from_pretrained(tmp_path / "nowhere") is None
    (tmp_path / FILE).write_bytes(b"damaged")
    with pytest.raises(InputError, match="got an unreadable orientation network"):
        Orienter.from_pretrained(tmp_path)


def test_files_without_a_critic_still_load(tmp_path, person):
    """Before there was a critic, a file held the finder's tensors under their bare names."""
    torch.manual_seed(2)
    old = Orienter(kinds=0)
    state = {name.removeprefix("finder."): value for name, value in old.state_dict().items()}
    save_file(state, tmp_path / FILE)
    network = Orienter.from_pretrained(tmp_path)
    assert network.critic is None
    first, second = network.frames(person)
    assert degrees(first.rotation @ second.rotation.T) == pytest.approx(180, abs=0.1)
    assert first.kinds == second.kinds
    assert set(load_file(tmp_path / FILE)) == set(state)


def test_critics_of_two_kinds_leave_room_for_others(tmp_path, person):
    torch.manual_seed(3)
    Orienter(kinds=2).save_pretrained(tmp_path)
    network = Orienter.from_pretrained(tmp_path)
    assert network.critic.kinds == 2
    kinds = network.frame(person).kinds
    assert len(kinds) == len(KINDS)
    assert kinds[KINDS.index("any")] == pytest.approx(0.1)
    assert sum(kinds) == pytest.approx(1.0)
