"""Our whole pipeline as a method among others."""

from __future__ import annotations

from typing import Any

from ltenet.correspondence import Correspondence
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.shape import Shape


class Pipeline:
    """`ltenet.match` with fixed options; weights are loaded once.

    Parameters
    ----------
    options
        Fields of `MatchConfig`. The threshold is 0 by default: a benchmark scores every point,
        including those that matching would rather leave unmatched.
    """

    def __init__(self, **options: Any) -> None:
        self._matcher = Matcher(MatchConfig(**{"threshold": 0.0, **options}))

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return self._matcher.match(source, target)
