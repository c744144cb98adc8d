from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

import pytest

from ltenet.configuration import from_dict, to_dict
from ltenet.errors import InputError


@dataclass(frozen=True)
class Inner:
    size: tuple[int, ...] = (1, 2)
    ends: tuple[int, float] = (1, 2.0)
    mode: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    rate: float = 0.5
    radius: float | None = None
    on: bool = False


def test_round_trip_through_json() -> None:
    config = Outer(Inner((3, 4, 5), (2, 0.5), "b"), rate=2.0, radius=0.1, on=True)
    assert from_dict(Outer, json.loads(json.dumps(to_dict(config))), where="x") == config


def test_missing_settings_take_their_defaults_and_whole_numbers_become_floats() -> None:
    assert from_dict(Outer, {}, where="x") == Outer()
    made = from_dict(Outer, {"rate": 3, "radius": None}, where="x")
    assert made == Outer(rate=3.0)
    assert isinstance(made.rate, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rat": 1}, "unknown setting rat, expected some of inner, on, radius, rate"),
        ({"rate": "fast"}, "f: rate: got 'fast', expected a value of type float"),
        ({"rate": True}, "type float"),
        ({"on": 1}, "type bool"),
        ({"inner": 3}, "f: inner: got 3, expected a table of settings"),
        ({"inner": {"mode": "c"}}, "f: inner: mode: got 'c', expected one of 'a', 'b'"),
        ({"inner": {"size": 3}}, "expected a list"),
        ({"inner": {"ends": [1]}}, "a list of 2"),
    ],
)
def test_what_is_not_known_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_dict(Outer, values, where="f")
