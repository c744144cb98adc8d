"""Coverage of one set of shapes by another, on sets with known distances."""

from __future__ import annotations

import numpy as np
import pytest

from ltenet.errors import InputError
from tools.set_coverage import coverage


def test_coverage_of_known_sets() -> None:
    first = [np.full(64, value) for value in (0.0, 1.0, 3.0)]
    second = [np.full(64, value) for value in (0.5, 2.0)]
    found = coverage(first, second)
    assert (found.nearest, found.farthest, found.own) == pytest.approx((0.5, 1.0, 1.0))
    assert coverage(first[:1], second).own is None
    with pytest.raises(InputError, match="at least one"):
        coverage(first, [])
