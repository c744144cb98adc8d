"""Properties computed once, and in two threads side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from ltenet.lazy import lazy


class Square:
    def __init__(self, side: int, meeting: Barrier | None = None) -> None:
        self.side, self.meeting, self.computed = side, meeting, 0

    @lazy
    def area(self) -> int:
        """Side times side."""
        self.computed += 1
        if self.meeting is not None:
            self.meeting.wait(timeout=20)
        return self.side * self.side


def test_computed_when_first_asked_for_and_kept() -> None:
    square = Square(3)
    assert "area" not in vars(square)
    assert (square.area, square.area, square.computed) == (9, 9, 1)
    assert Square.area.__doc__ == "Side times side."


def test_two_instances_compute_at_the_same_time() -> None:
    meeting = Barrier(2)  # breaks if one waits for the other
    squares = [Square(2, meeting), Square(5, meeting)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda square: square.area, squares)) == [4, 25]


def test_an_instance_that_two_threads_ask_has_one_value() -> None:
    square = Square(4, Barrier(2))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: square.area, range(2))
    assert first is second or first == second
    assert vars(square)["area"] == 16
