"""Known pairs in a request to the app: what is taken, and what is refused."""

from __future__ import annotations

import pytest

from ltenet.errors import UsageError
from ltenet.viewer.pairs import checked_pairs


def test_pairs_are_taken_as_they_are() -> None:
    assert checked_pairs(None, (3, 3)) == ()
    assert checked_pairs([], (3, 3)) == ()
    assert checked_pairs([[0, 9], [2, 9]], (3, 10)) == ((0, 9), (2, 9))
    assert len(checked_pairs([[n, 0] for n in range(50)], (50, 1))) == 50


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("0,1", "got no list of known pairs"),
        ({"0": 1}, "got no list of known pairs"),
        ([[n, 0] for n in range(51)], "got 51 known pairs, expected at most 50"),
        ([[0]], "not two numbers"),
        ([[0, 1, 2]], "not two numbers"),
        ([0, 1], "not two numbers"),
        ([["0", "1"]], "not two numbers"),
        ([[0.0, 1.0]], "not two numbers"),
        ([[True, 1]], "not two numbers"),
        ([[-1, 0]], "not two numbers"),
        ([[60, 0]], "not two numbers"),
        ([[0, 70]], "not two numbers"),
        ([[1, 2], [1, 3]], "two known partners"),
    ],
)
def test_everything_else_is_refused(given: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked_pairs(given, (60, 70))
