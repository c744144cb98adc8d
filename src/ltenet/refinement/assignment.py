"""One-to-one maps: exact assignment by features and positions.

Small shapes are assigned over all pairs [Crouse 2016], larger ones over the nearest points of each.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from torch import Tensor

from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import nearest_points, squared_distances

#: Points up to which the assignment is over all pairs.
DENSE_POINTS = 4096
#: Targets of each point, and sources of each target, beyond that.
_SHORTLIST = 24
#: Divisor of the cosines, and positional bandwidth.
TEMPERATURE, _SIGMA = 0.05, 0.02


def assign(
    pair: Pair, places: Tensor, *, features: float = 1.0, shortlist: int | None = None
) -> Tensor:
    """One-to-one map (N,) by features, and by distance from given positions.

    Parameters
    ----------
    pair
        Both shapes.
    places
        (N, 3) expected positions of the source points on the target.
    features
        Weight of the features; 0 to assign by distance alone.
    shortlist
        Nearest targets of each point, and sources of each target, to choose among. By default all
        pairs of small shapes, and 24 of larger ones.
    """
    target, weight = pair.target.points, features / TEMPERATURE  # (M, 3)
    if shortlist is None and max(len(places), len(target)) <= DENSE_POINTS:
        scores = squared_distances(places, target).mul_(-0.5 / _SIGMA**2)  # (N, M)
        if features > 0:
            scores.add_(pair.relative_matrix(), alpha=weight)
        return best_assignment(scores)
    rows, columns, squares = near_pairs(pair, places, shortlist or _SHORTLIST)  # (E,) each
    scores = squares * (-0.5 / _SIGMA**2)  # (E,)
    if features > 0:
        scores += weight * pair.relative_at(rows, columns)
    nearest = pair.target.nearest(places, 1).indices[:, 0]  # (N,)
    return shortlist_assignment(rows, columns, scores, rest=nearest)


def inverse(indices: Tensor) -> Tensor:
    """Invert a one-to-one map (N,) between clouds of equal size.

    Shortlists may give one target to two sources; the second of them then takes a free target.
    """
    own = torch.arange(len(indices), device=indices.device)  # (N,)
    back = torch.full_like(indices, -1)  # (N,)
    back[indices] = own
    back[back < 0] = own[back[indices] != own]
    return back


def best_assignment(scores: Tensor) -> Tensor:
    """Columns (N,) of the assignment with the largest sum of (N, M) scores.

    With more rows than columns, rows left over take their best column.
    """
    rows, columns = linear_sum_assignment(scores.cpu().numpy(), maximize=True)
    found = torch.from_numpy(columns).to(scores.device)  # (min(N, M),)
    if len(rows) == len(scores):
        return found
    chosen = scores.argmax(dim=1)  # (N,)
    chosen[torch.from_numpy(rows).to(chosen.device)] = found
    return chosen


def shortlist_assignment(rows: Tensor, columns: Tensor, scores: Tensor, *, rest: Tensor) -> Tensor:
    """Columns (N,) of the assignment with the largest sum over listed pairs.

    Parameters
    ----------
    rows, columns
        (E,) pairs that may be matched; a pair listed twice counts once.
    scores
        (E,) of these.
    rest
        (N,) fallback columns, taken only where the listed pairs leave no choice.
    """
    count, size = len(rest), int(max(int(columns.max()), int(rest.max()))) + 1
    pairs = torch.stack([rows, columns]).cpu().numpy()  # (2, E)
    values = scores.double().cpu().numpy()  # (E,)
    _, first = np.unique(pairs[0] * size + pairs[1], return_index=True)
    # Each row has a fallback column of its own, so an assignment always exists. Costs must not be
    # zero: in a sparse matrix that would mean that there is no pair.
    highest = float(values.max(initial=0.0))
    span = highest - float(values.min(initial=0.0)) + 1.0
    cost = np.concatenate([highest - values[first] + 1.0, np.full(count, 2.0 * span + 1.0)])
    row = np.concatenate([pairs[0, first], np.arange(count)])
    column = np.concatenate([pairs[1, first], size + np.arange(count)])
    matrix = coo_matrix((cost, (row, column)), shape=(count, size + count)).tocsr()
    chosen = torch.from_numpy(min_weight_full_bipartite_matching(matrix)[1].astype(np.int64))
    chosen = chosen.to(rest.device)  # (N,)
    return torch.where(chosen < size, chosen, rest)


def near_pairs(pair: Pair, places: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs worth assigning: rows (E,), columns (E,) and squared distances (E,).

    The k nearest targets of each of (N, 3) places, and the k nearest places of each target.
    """
    target = pair.target.points  # (M, 3)
    there = pair.target.nearest(places, k)  # (N, k)
    back = nearest_points(target, places, min(k, len(places)))  # (M, k)
    own = torch.arange(len(places), device=places.device)[:, None].expand_as(there.indices)
    other = torch.arange(len(target), device=places.device)[:, None].expand_as(back.indices)
    return (
        torch.cat([own.flatten(), back.indices.flatten()]),
        torch.cat([there.indices.flatten(), other.flatten()]),
        torch.cat([there.squares.flatten(), back.squares.flatten()]),
    )
