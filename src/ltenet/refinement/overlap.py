"""What two shapes have in common.

Some networks have learned to tell which points have a partner (see `matchability`). Otherwise the
features alone have to: a point whose partner is missing still has a nearest feature, but the way
back ends elsewhere, as the best partner of that partner is another point, often far away. Where
both shapes hold a surface, the round trip is short. So the share of short round trips around a
point tells whether it has a partner. Networks tell more surely whether a shape is a part at all;
where the part ends, both have to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ltenet.refinement.pair import Pair

#: Length of a round trip, for a root-mean-square radius of 0.5, at which a point hardly counts.
_TRIP = 0.15
#: Points around a point whose round trips are averaged.
_AVERAGED = 12
#: Mean of a shape from which it is taken to be whole: features err on whole shapes, too.
WHOLE = 0.85
#: Averages at which a point has no partner for sure, and one for sure.
_NONE, _SURE = 0.2, 0.6
#: The same of learned probabilities, which know whole shapes better.
LEARNED_WHOLE = 0.9
#: Weight of points without a partner: they are not forgotten, should the features be wrong.
_LEAST = 0.02


class Overlap(NamedTuple):
    """How sure it is that points have a partner on the other shape.

    Attributes
    ----------
    source, target
        (N,) and (M,) from nearly 0 to 1.
    """

    source: Tensor
    target: Tensor

    def reversed(self) -> Overlap:
        """Exchange source and target."""
        return Overlap(self.target, self.source)


@torch.no_grad()
def find_overlap(pair: Pair) -> Overlap | None:
    """Tell which points have a partner; None if all of both shapes seem to have one."""
    both = pair, pair.reversed()
    trips = [_short_trips(one) for one in both]  # (N,), (M,)
    weights = [((side - _NONE) / (_SURE - _NONE)).clamp(_LEAST, 1) for side in trips]
    if pair.odds is None:
        return None if _lower(trips) >= WHOLE else Overlap(*weights)
    learned = [_probable(one) for one in both]  # (N,), (M,)
    if _lower(learned) >= LEARNED_WHOLE:
        return None
    agreed = [(w * p).clamp_min(_LEAST) for w, p in zip(weights, learned, strict=True)]
    return Overlap(*agreed)


def _lower(sides: Sequence[Tensor]) -> float:
    """Return the lower mean of both shapes."""
    return min(float(side.mean()) for side in sides)


def _probable(pair: Pair) -> Tensor:
    """(N,) learned probability around each source point: neighbours mostly agree."""
    assert pair.odds is not None
    return pair.odds[0].sigmoid()[pair.source.neighbors(_AVERAGED)].mean(dim=1)


def _short_trips(pair: Pair) -> Tensor:
    """(N,) share of short round trips around each source point."""
    trips = pair.round_trip(pair.best.indices) / _TRIP  # (N,)
    return torch.exp(-trips.square())[pair.source.neighbors(_AVERAGED)].mean(dim=1)
