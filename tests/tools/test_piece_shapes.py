from __future__ import annotations

import numpy as np
import pytest

from ltenet.matching.frame_networks import KINDS
from tools.piece_shapes import THING, Pieces


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return Pieces("train", "head")


def test_a_piece_depends_on_its_number_alone(pieces: Pieces) -> None:
    first = pieces.draw(3)
    pieces.draw(4)
    for one, again in zip(first.points, pieces.draw(3).points, strict=True):
        np.testing.assert_array_equal(one, again)
    other = Pieces("validation", "head").draw(3)
    assert not np.array_equal(first.points[0][:10], other.points[0][:10])


def test_heads_stand_upright_and_have_one_size(pieces: Pieces) -> None:
    drawn = [points for number in range(4) for points in pieces.draw(number).points]
    for points in drawn:
        centred = points - points.mean(axis=0)
        assert np.sqrt(np.square(centred).sum(axis=1).mean()) == pytest.approx(0.5, abs=0.02)
    # A head is taller than it is deep, whatever it wears and stands on.
    extents = np.array([np.ptp(points, axis=0) for points in drawn])  # (n, 3)
    assert np.mean(extents[:, 1] > extents[:, 2]) > 0.7


def test_hands_of_both_sides_point_alike() -> None:
    means = {}
    for side in "LR":
        hands = Pieces("train", f"hand.{side}")
        drawn = [hands.draw(number).points[0] for number in range(6)]
        # The wrist is the thick end: points crowd there, on the side of the body.
        means[side] = np.mean([np.median(p[:, 0]) - p[:, 0].mean() for p in drawn])
    assert np.sign(means["L"]) == np.sign(means["R"])


def test_things_among_the_pieces_have_no_frame() -> None:
    things, mixed = Pieces("train", THING), Pieces("train")
    assert KINDS[things.draw(0).kind] == "any"
    assert {KINDS[mixed.draw(number).kind] for number in range(12)} == {"human", "any"}
