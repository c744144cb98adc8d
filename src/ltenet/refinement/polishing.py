"""Polish a map between clouds that hold the same points: its surroundings tell where a point goes.

An assignment by features and by a bent shape (see `assignment`) is right for most points and wrong
where parts touch or features look alike. The correct matches support the others: those of the whole
shape in `follow`, those of the nearest neighbours in `polish`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ltenet.refinement.assignment import assign, inverse
from ltenet.refinement.constellations import constellation_misfit
from ltenet.refinement.deformation import DeformationGraph
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import rotations_near

#: Stiffness with which a shape follows its matches, alternations in each fit, and the distance from
#: its match at which the weight of a point drops to 1/e.
_STIFFNESS, _ALTERNATIONS, _STRAYED = 3e-4, 3, 0.1
#: Neighbours that predict a point, and how firmly their linear map is tied to a rotation.
_SURROUNDING, _FIRMNESS = 12, 0.3
#: Misfit of the constellation, and distance from the prediction, at which the weight of a match
#: drops to 1/e.
_MISFIT, _SURPRISE = 0.4, 0.5
#: Weight of the features once constellations are known, and nearest points to choose among:
#: predictions are close enough, and an assignment over all pairs is slower and no better.
_FEATURES, _SHORTLIST = 0.5, 12


def follow(
    pair: Pair, graph: DeformationGraph, frames: Tensor, indices: Tensor, *, rounds: int = 6
) -> Tensor:
    """Improve a one-to-one map (N,): bend the source to its matches, then assign by position alone.

    Where hands touch, features confuse them point by point. The arms are in no doubt, and a shape
    bent as a whole carries the hands along.

    Parameters
    ----------
    pair
        Both shapes.
    graph
        Control nodes of the source.
    frames
        (r, 3, 3) their rotations to start from.
    indices
        (N,) target points.
    rounds
        Alternations between bending and assigning.
    """
    target = pair.target.points  # (M, 3)
    strayed = torch.zeros_like(pair.source.points[:, 0])  # (N,)
    for _ in range(rounds):
        images = target[indices]  # (N, 3)
        misfit = constellation_misfit(pair.source, images)  # (N,)
        trust = _trust(misfit / _MISFIT) * _trust(strayed / _STRAYED)  # (N,)
        deformation = graph.fit(
            images, trust, frames=frames, stiffness=_STIFFNESS, rounds=_ALTERNATIONS
        )
        places, frames = graph.apply(deformation), deformation.frames  # (N, 3), (r, 3, 3)
        indices = assign(pair, places, features=0.0)
        strayed = (places - target[indices]).norm(dim=1)
    return indices


def polish(pair: Pair, indices: Tensor, *, rounds: int = 4) -> Tensor:
    """Improve a one-to-one map (N,): predict each point from the matches around it, and reassign.

    Neighbours that fit each other count more. The point's own match is left out: a wrong one would
    defend itself.
    """
    source, target = pair.source.points, pair.target.points  # (N, 3), (M, 3)
    neighbors = pair.source.neighbors(_SURROUNDING + 1)[:, 1:]  # (N, k)
    for _ in range(rounds):
        images = target[indices]  # (N, 3)
        trust = _trust(constellation_misfit(pair.source, images) / _MISFIT)  # (N,)
        places, misfit = predict(source, images, trust, neighbors)
        places, _ = predict(source, images, _trust(misfit / _SURPRISE), neighbors)
        found = assign(pair, places, features=_FEATURES, shortlist=_SHORTLIST)  # (N,)
        if torch.equal(found, indices):
            break  # further rounds would repeat this one
        indices = found
    return indices


def polish_both_ways(
    pair: Pair, indices: Tensor, *, energy: Callable[[Tensor], float], most: int = 6
) -> Tensor:
    """Polish a one-to-one map (N,) of clouds of equal size, alternately from either side.

    Parts that touch on one shape and lie apart on the other are told apart only by neighbours on
    the latter.

    Parameters
    ----------
    pair, indices
        See `polish`.
    energy
        Cost of such a map; a pass that does not lower it is discarded, and two in a row end the
        search.
    most
        Limit on the number of passes.
    """
    back, cost, idle = pair.reversed(), energy(indices), 0
    for number in range(most):
        odd = number % 2
        found = inverse(polish(back, inverse(indices))) if odd else polish(pair, indices)  # (N,)
        found_cost = energy(found)
        if found_cost < cost:
            indices, cost, idle = found, found_cost, 0
        else:
            idle += 1
        if idle == 2:
            break
    return indices


def predict(
    source: Tensor, images: Tensor, trust: Tensor, neighbors: Tensor
) -> tuple[Tensor, Tensor]:
    """Where each point belongs by its neighbours alone, and how far off its own image is.

    Parameters
    ----------
    source, images
        (N, 3) points, and where they are mapped to.
    trust
        (N,) weight of each match.
    neighbors
        (N, k) of each point, without itself.

    Returns
    -------
    Positions (N, 3), by the linear map of the neighbours onto their images, regularised towards a
    rotation because a few neighbours on a surface do not determine it across the surface; and the
    distances (N,) of the images from these, relative to the extent of the neighbourhood.
    """
    weights = trust[neighbors]  # (N, k)
    weights = (weights / weights.sum(dim=1, keepdim=True))[..., None]  # (N, k, 1)
    before, after = source[neighbors], images[neighbors]  # (N, k, 3)
    middle, image = ((weights * side).sum(dim=1) for side in (before, after))  # (N, 3) each
    before, after = before - middle[:, None], after - image[:, None]
    mixed = (weights * after).transpose(1, 2) @ before  # (N, 3, 3)
    square = (weights * before).transpose(1, 2) @ before  # (N, 3, 3)
    rotations = rotations_near(mixed)  # (N, 3, 3)
    extent = square.diagonal(dim1=1, dim2=2).sum(dim=1)  # (N,)
    extent = extent.clamp_min(torch.finfo(extent.dtype).eps)
    firm = (_FIRMNESS * extent)[:, None, None]  # (N, 1, 1)
    ridged = square + firm * torch.eye(3).to(square)  # (N, 3, 3)
    maps = torch.linalg.solve(ridged, mixed + firm * rotations, left=False)  # (N, 3, 3)
    places = image + (maps @ (source - middle)[..., None])[..., 0]  # (N, 3)
    return places, (images - places).norm(dim=1) / extent.sqrt()


def _trust(misfit: Tensor) -> Tensor:
    """Weights (N,) of matches: 1 for a perfect one, 1/e at a misfit of 1."""
    return torch.exp(-misfit.square()) + 1e-3
