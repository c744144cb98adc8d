"""How one shape lies against another if no network knows their class: a search over rotations.

Features that need no frame leave the rotation between two shapes open, and a deformation that
starts from a wrong one ends in a wrong map. So many rotations are tried: those that bring the
principal axes of one shape onto those of the other, in every order and direction, and a cover of
all others around them. Each is improved by a few steps of soft-assignment ICP [Gold et al. 1998]
on samples of both shapes, in which features and distances count alike,

    score_ij = max((cos_ij - best_ij) / temperature, -cap) - |R x_i + t - y_j|^2 / (2 sigma^2),

and the best few that differ are returned.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import kabsch, rotation_degrees
from ltenet.refinement.options import BendingConfig
from ltenet.refinement.pair import Pair
from ltenet.shape import Shape

#: Points of each shape that the search works with.
_POINTS = 192
#: Bandwidths of the steps, for shapes of root-mean-square radius 0.5.
_SIGMAS = (0.3, 0.22, 0.16, 0.12)
#: Largest penalty for dissimilar features: some points always have unlike partners.
_CAP = 4.0
#: Rotations nearer to each other than this, in degrees, count as one.
_DISTINCT = 40.0
#: What points without a score count at least.
_LEAST_WEIGHT = 1e-6


class Alignment(NamedTuple):
    """One way in which the source lies against the target.

    Attributes
    ----------
    rotation
        (3, 3) turns the source onto the target.
    cost
        Mean penalty of the best partners, both ways; lower is better.
    """

    rotation: FloatArray
    cost: float


@torch.no_grad()
def alignments(pair: Pair, count: int) -> list[Alignment]:
    """Find how the source may lie against the target: at most `count` ways, the best first."""
    rows, columns = pair.source.spread(_POINTS), pair.target.spread(_POINTS)  # (n,), (m,)
    here = _centred(pair.source.points[rows])  # (n, 3)
    there = _centred(pair.target.points[columns])  # (m, 3)
    scores = pair.relative_block(rows, columns) / BendingConfig().temperature  # (n, m)
    scores = scores.clamp_min(-_CAP).to(here)
    rotations = _start(here, there)  # (h, 3, 3)
    shifts = here.new_zeros((len(rotations), 1, 3))  # (h, 1, 3)
    for sigma in _SIGMAS:
        rotations, shifts, costs = _improved(here, there, scores, rotations, shifts, sigma)
    kept: list[Alignment] = []
    for number in costs.argsort().tolist():
        rotation = rotations[number].double().numpy()
        if all(rotation_degrees(rotation @ other.rotation.T) > _DISTINCT for other in kept):
            kept.append(Alignment(rotation, float(costs[number])))
        if len(kept) == count:
            break
    return kept


def turn_of_map(found: Correspondence, source: Shape, target: Shape) -> FloatArray:
    """(3, 3) rotation that lays the source as the target lies, as a map between them says."""
    places = found.positions(target)  # (N, 3)
    known = np.isfinite(places).all(axis=1)  # (N,)
    weights = np.ones(len(source)) if found.scores is None else found.scores + _LEAST_WEIGHT  # (N,)
    return kabsch(source.points[known], places[known], weights[known]).rotation


def _improved(
    here: Tensor, there: Tensor, scores: Tensor, rotations: Tensor, shifts: Tensor, sigma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """One step: (h, 3, 3) rotations, (h, 1, 3) shifts, and the (h,) costs of those before it."""
    moved = here @ rotations.transpose(1, 2) + shifts  # (h, n, 3)
    squares = torch.cdist(moved, there.expand(len(moved), -1, -1)).square()  # (h, n, m)
    total = scores - squares / (2 * sigma**2)  # (h, n, m)
    costs = -0.5 * (total.amax(dim=2).mean(dim=1) + total.amax(dim=1).mean(dim=1))  # (h,)
    # Each point of either shape has the same say, whatever the other's density.
    plan = total.softmax(dim=2) / len(here) + total.softmax(dim=1) / len(there)  # (h, n, m)
    rows, columns = plan.sum(dim=2), plan.sum(dim=1)  # (h, n), (h, m)
    mass = rows.sum(dim=1)[:, None, None]  # (h, 1, 1)
    middle = (rows[..., None] * here).sum(dim=1, keepdim=True) / mass  # (h, 1, 3)
    goal = (columns[..., None] * there).sum(dim=1, keepdim=True) / mass  # (h, 1, 3)
    covariance = (there - goal).transpose(1, 2) @ plan.transpose(1, 2) @ (here - middle)
    left, _, right = torch.linalg.svd(covariance)  # (h, 3, 3)
    signs = torch.ones_like(left[:, 0])  # (h, 3)
    signs[:, 2] = torch.det(left @ right)
    turned = (left * signs[:, None]) @ right  # (h, 3, 3)
    return turned, goal - middle @ turned.transpose(1, 2), costs


def _start(here: Tensor, there: Tensor) -> Tensor:
    """(h, 3, 3) rotations to begin with, spread around those that align the principal axes."""
    ours, theirs = (torch.from_numpy(_axes(points.numpy())) for points in (here, there))
    cover = torch.from_numpy(_cover())  # (h, 3, 3)
    return (theirs @ cover @ ours.T).to(here)


@lru_cache(maxsize=1)
def _cover() -> FloatArray:
    """(h, 3, 3) rotations of the cube, then of the icosahedron: none is far from all of them."""
    groups = [Rotation.create_group(name).as_matrix() for name in "OI"]
    found: FloatArray = np.concatenate(groups)
    return found


def _axes(points: FloatArray) -> FloatArray:
    """(3, 3) principal axes of (n, 3) centred points in columns, right-handed, longest first."""
    axes = np.linalg.svd(points.astype(np.float64), full_matrices=False)[2].T  # (3, 3)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return np.asarray(axes)


def _centred(points: Tensor) -> Tensor:
    return points - points.mean(dim=0)
