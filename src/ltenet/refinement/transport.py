"""Soft assignments between two point sets: scores in, mean positions and their spread out.

Both kinds leave room for points without a partner, and neither enforces a bijection, which shapes
sampled independently do not have. `balanced_plan` considers all pairs and gives every piece of the
target about its share of mass; `shortlist_plan` considers a few targets of each point and is linear
in the number of points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.method.graph import NeighborGraph

#: Exponents this far below the largest contribute nothing; left as they are, they become subnormal
#: numbers, which are thirty times slower than the exponential itself.
_NEGLIGIBLE = -60.0


class SoftPlan(NamedTuple):
    """Where each of n points should go.

    Attributes
    ----------
    places
        (n, 3) mean position.
    mass
        (n,) from 0, no partner, to 1.
    variance
        (n,) mean squared distance of the plan from the mean position.
    """

    places: Tensor
    mass: Tensor
    variance: Tensor


def balanced_plan(
    scores: Tensor,
    floor: Tensor,
    target: Tensor,
    *,
    areas: tuple[Tensor, Tensor],
    factors: Tensor,
    balance: float,
    sweeps: int,
) -> SoftPlan:
    """Solve relaxed transport over all pairs.

    Rows of ``a_i q_j exp(score_ij) b_j`` and ``a_i exp(floor_i)`` sum to one, where q_j is the
    area at column j. The factor b_j is the column's share of the area over the mass it would
    receive with b_j = 1, to the power of `balance`: the fixed point of entropic transport with a
    Kullback-Leibler penalty on the column sums, balance = penalty / (penalty + 1).

    Parameters
    ----------
    scores
        (n, m), overwritten.
    floor
        (n,) score of having no partner.
    target
        (m, 3) positions.
    areas
        (n,) and (m,) surface area around each point.
    factors
        (m,) initial b_j, overwritten; carried over from step to step they need few sweeps.
    balance
        From 0, columns are free, to below 1.
    sweeps
        Corrections of b_j.
    """
    source_area, target_area = areas
    scores += target_area.log()
    kernel, outside = _exponential(scores, floor)  # (n, m), (n,)
    share = target_area / target_area.sum() * source_area.sum()  # (m,)
    tiny = math.exp(_NEGLIGIBLE)
    for _ in range(sweeps):
        reaching = (source_area / (kernel @ factors + outside)) @ kernel  # (m,)
        factors.copy_((share / (reaching + tiny)).pow(balance).clamp(1e-6, 1e6))
    kernel *= factors
    moments = kernel @ _moments(target)  # (n, 4)
    return _plan_of(moments, kernel.sum(dim=1), outside)


def shortlist_plan(
    scores: Tensor, floor: Tensor, target: Tensor, indices: Tensor, *, area: Tensor
) -> SoftPlan:
    """Let each point decide alone, among the targets at `indices` (n, k).

    Parameters
    ----------
    scores
        (n, k), overwritten.
    floor
        (n,) score of having no partner.
    target
        (m, 3) positions.
    area
        (m,) surface area around each target point.
    """
    scores += area.log()[indices]
    kernel, outside = _exponential(scores, floor)  # (n, k), (n,)
    moments = NeighborGraph(indices, len(target)).sum(_moments(target), kernel)  # (n, 4)
    return _plan_of(moments, kernel.sum(dim=1), outside)


def _exponential(scores: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """Exponentials of (n, m) scores, in place, and of the (n,) floor, both over the largest."""
    peak = torch.maximum(scores.amax(dim=1), floor)  # (n,)
    kernel = scores.sub_(peak[:, None]).clamp_min_(_NEGLIGIBLE).exp_()  # (n, m)
    return kernel, (floor - peak).clamp_min(_NEGLIGIBLE).exp()


def _moments(target: Tensor) -> Tensor:
    """(m, 4) positions and their squared norms."""
    return torch.cat([target, target.square().sum(dim=1, keepdim=True)], dim=1)


def _plan_of(moments: Tensor, total: Tensor, outside: Tensor) -> SoftPlan:
    """Plan from (n, 4) weighted sums of moments, their (n,) weights and the (n,) weight of none."""
    moments = moments / total[:, None]  # (n, 4)
    places = moments[:, :3]  # (n, 3)
    variance = (moments[:, 3] - places.square().sum(dim=1)).clamp_min(0)  # (n,)
    return SoftPlan(places, total / (total + outside), variance)
