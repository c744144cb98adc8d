"""Polish a map between clouds that hold the same points: what surrounds a point tells its place.

An assignment by features and by a shape that was bent (see `assignment`) is right for most points
and wrong where parts touch or features are alike. The right ones are a scaffold for the others:
of the whole shape in `follow`, of the nearest neighbours in `polish`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ltenet.assignment import Likeness, assign, constellation_misfit, inverse
from ltenet.deformation import DeformationGraph, nearest_rotations
from ltenet.neighbors import knn_graph

#: Stiffness with which a shape follows its matches, turns of rotations and positions in each fit,
#: and the distance from its match at which a point counts a third.
_STIFFNESS, _TURNS, _STRAYED = 3e-4, 3, 0.1
#: Neighbours that foretell a point in polishing, and how firmly their linear map keeps to a
#: rotation.
_SURROUNDING, _FIRMNESS = 12, 0.3
#: Misfit of its constellation, and distance from where it was foretold, at which a match counts a
#: third.
_DOUBT, _SURPRISE = 0.4, 0.5
#: Weight of the likeness of features, against position, once constellations have been seen.
_LIKENESS = 0.5


def follow(graph: DeformationGraph, target: Tensor, indices: Tensor, *, rounds: int = 6) -> Tensor:
    """Improve a one-to-one map (N,): bend the source to its matches, and assign by place alone.

    Where hands touch, features take one for the other, point by point. The arms they hang on are in
    no doubt, and a shape that is bent as a whole carries the hands along.

    Parameters
    ----------
    graph
        Control nodes of the source.
    target
        (M, 3)
    indices
        (N,) target points.
    rounds
        How often bending and assigning take turns.
    """
    source = graph.points  # (N, 3)
    neighbors = knn_graph(source, min(_SURROUNDING + 1, len(source)))  # (N, 1 + k)
    strayed = torch.zeros_like(source[:, 0])  # (N,)
    for _ in range(rounds):
        images = target[indices]  # (N, 3)
        misfit = constellation_misfit(source, images, neighbors)  # (N,)
        trust = _trust(misfit / _DOUBT) * _trust(strayed / _STRAYED)  # (N,)
        places = graph.fit(images, trust, stiffness=_STIFFNESS, rounds=_TURNS)  # (N, 3)
        indices = assign(None, places, target)
        strayed = (places - target[indices]).norm(dim=1)
    return indices


def polish(
    likeness: Likeness, source: Tensor, target: Tensor, indices: Tensor, *, rounds: int = 4
) -> Tensor:
    """Improve a one-to-one map (N,): let the matches around each point tell where it belongs.

    Each round foretells every point from its neighbours, those that fit each other before others,
    and assigns again. The point's own match has no say: a wrong one would defend itself.
    """
    neighbors = knn_graph(source, min(_SURROUNDING + 1, len(source)))  # (N, 1 + k)
    for _ in range(rounds):
        images = target[indices]  # (N, 3)
        trust = _trust(constellation_misfit(source, images, neighbors) / _DOUBT)  # (N,)
        places, misfit = foretold(source, images, trust, neighbors[:, 1:])
        places, _ = foretold(source, images, _trust(misfit / _SURPRISE), neighbors[:, 1:])
        indices = assign(likeness, places, target, share=_LIKENESS)
    return indices


def polish_in_turns(
    likeness: Likeness,
    source: Tensor,
    target: Tensor,
    indices: Tensor,
    *,
    energy: Callable[[Tensor], float],
    most: int = 6,
) -> Tensor:
    """Polish a one-to-one map (N,) between clouds of one size from either side, in turns.

    What touches on one shape and lies apart on the other is told apart by the neighbours on the
    latter alone.

    Parameters
    ----------
    likeness, source, target, indices
        See `polish`.
    energy
        How bad such a map is; a turn that does not lower it does not count, and two of them end it.
    most
        Turns at the most.
    """
    turned, cost, idle = likeness.turned(), energy(indices), 0
    for turn in range(most):
        if turn % 2:
            found = inverse(polish(turned, target, source, inverse(indices)))  # (N,)
        else:
            found = polish(likeness, source, target, indices)  # (N,)
        found_cost = energy(found)
        if found_cost < cost:
            indices, cost, idle = found, found_cost, 0
        else:
            idle += 1
        if idle == 2:
            break
    return indices


def foretold(
    source: Tensor, images: Tensor, trust: Tensor, neighbors: Tensor
) -> tuple[Tensor, Tensor]:
    """Where each point belongs by its neighbours alone, and how far off its own image is.

    Parameters
    ----------
    source, images
        (N, 3) points, and where they are mapped to.
    trust
        (N,) how much each match counts.
    neighbors
        (N, k) of each point, without itself.

    Returns
    -------
    Places (N, 3), by the linear map that takes the neighbours to their images, drawn towards a
    rotation as a few neighbours on a surface leave it loose across that; and the distances (N,) of
    the images from these, relative to the extent of the neighbourhood.
    """
    weights = trust[neighbors]  # (N, k)
    weights = (weights / weights.sum(dim=1, keepdim=True))[..., None]  # (N, k, 1)
    before, after = source[neighbors], images[neighbors]  # (N, k, 3)
    middle, image = ((weights * side).sum(dim=1) for side in (before, after))  # (N, 3) each
    before, after = before - middle[:, None], after - image[:, None]
    mixed = (weights * after).transpose(1, 2) @ before  # (N, 3, 3)
    square = (weights * before).transpose(1, 2) @ before  # (N, 3, 3)
    turns = nearest_rotations(mixed)  # (N, 3, 3)
    extent = square.diagonal(dim1=1, dim2=2).sum(dim=1)  # (N,)
    extent = extent.clamp_min(torch.finfo(extent.dtype).eps)
    firm = (_FIRMNESS * extent)[:, None, None]  # (N, 1, 1)
    ridged = square + firm * torch.eye(3).to(square)  # (N, 3, 3)
    maps = torch.linalg.solve(ridged, mixed + firm * turns, left=False)  # (N, 3, 3)
    places = image + (maps @ (source - middle)[..., None])[..., 0]  # (N, 3)
    return places, (images - places).norm(dim=1) / extent.sqrt()


def _trust(misfit: Tensor) -> Tensor:
    """Weights (N,) of matches: 1 for a perfect one, about a third at a misfit of 1."""
    return torch.exp(-misfit.square()) + 1e-3
