"""The options of a match, with their help; importable without torch.

The only list of them: `ltenet match` makes its flags from `MatchConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ltenet.errors import UsageError
from ltenet.refinement.options import Method

Orient = Literal["auto", "yaw", "any", "none"]


@dataclass(frozen=True, kw_only=True)
class MatchConfig:
    """How two shapes are matched.

    Attributes
    ----------
    model
        Weights: a name that the package ships (human, animal, ...) or a folder; auto
        chooses among human, animal and any for each pair.
    points
        Points of each shape that are embedded; the map is carried from them to all others. "all"
        (in Python: None) embeds every point in one pass.
    orient
        How shapes are turned first: any turns each one upright from any orientation, yaw turns it
        about the y axis only, none leaves it as it is; auto does what any does and also tries the
        shapes as they are.
    refine
        How the nearest neighbours are refined.
    threshold
        Points that are right with a lower probability stay unmatched; 0 matches all.
    mirror
        Match the mirror image of the source: for files with an axis negated, as between left- and
        right-handed systems.
    seed
        Which points are embedded where not all are.
    same_scale
        Both shapes are given in one unit: a part of a shape keeps its size. By default the scale of
        a part is found.
    """

    model: str = "auto"
    points: int | None = 4096
    orient: Orient = "auto"
    refine: Method = "coherent"
    threshold: float = 0.05
    mirror: bool = False
    seed: int = 0
    same_scale: bool = False

    def __post_init__(self) -> None:
        if self.points is not None and self.points < 50:
            raise UsageError(
                f"got {self.points} points to embed, expected at least 50, or all; "
                "try the default of 4096"
            )
        for name, kind in (("orient", Orient), ("refine", Method)):
            if getattr(self, name) not in get_args(kind):
                raise UsageError(
                    f"got {name} {getattr(self, name)!r}, expected one of "
                    f"{', '.join(get_args(kind))}; try the default"
                )
        if not 0.0 <= self.threshold <= 1.0:
            raise UsageError(
                f"got a threshold of {self.threshold}, expected a probability from 0 to 1; "
                "try 0 to match every point"
            )
