"""Do both clouds hold the same points? And if so, which is which: exact assignment.

Points that were drawn once and moved with the surface keep their constellations: a few neighbours
can be laid over their partners by turning them. Points that were drawn apart cannot, however good
the map, because the partner of each is only near to where it belongs.
"""

from __future__ import annotations

from copy import copy

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from torch import Tensor

from ltenet.deformation import nearest_rotations
from ltenet.neighbors import cosine_topk, knn_graph
from ltenet.transport import nearest_points, squared_distances

#: Points up to which the assignment is exact over all pairs; beyond, over the nearest of each.
DENSE_POINTS = 4096
#: Targets of each point, and sources of each target, beyond that.
_SHORTLIST = 24
#: Pairs whose features are gathered at a time.
_BLOCK = 1 << 14
#: Points of a constellation, and the misfit of the best quarter up to which clouds are the same.
#: On generated pairs it is 0.04 to 0.18 for the same points, up to 0.48 if they were moved by 0.4 %
#: of the diameter, and 0.50 to 0.77 for other points.
_CONSTELLATION, _SAME = 7, 0.47
#: Positional bandwidth.
_SIGMA = 0.02


def constellation_misfit(source: Tensor, images: Tensor, neighbors: Tensor | None = None) -> Tensor:
    """How badly each point and its neighbours, turned, lie over their images: (N,).

    Root-mean-square residual of the best rotation of a point's neighbourhood in the (N, 3) source
    onto the (N, 3) images, relative to the extent of the neighbourhood. A crouching body and a
    stretched one of the same size differ in scale: that of most neighbourhoods is taken out. The
    (N, k) nearest `neighbors` in the source, each point first, can be given where they are known.
    """
    if neighbors is None:
        neighbors = knn_graph(source, min(_CONSTELLATION, len(source)))  # (N, k)
    neighbors = neighbors[:, :_CONSTELLATION]
    before, after = source[neighbors], images[neighbors]  # (N, k, 3)
    before = before - before.mean(dim=1, keepdim=True)
    after = after - after.mean(dim=1, keepdim=True)
    tiny = torch.finfo(before.dtype).tiny
    extent = before.square().sum(dim=(1, 2)).clamp_min(tiny)  # (N,)
    enlarged = (after.square().sum(dim=(1, 2)) / extent).median().sqrt().clamp_min(tiny)  # ()
    turns = nearest_rotations(after.transpose(1, 2) @ before)  # (N, 3, 3)
    residual = after / enlarged - before @ turns.transpose(1, 2)  # (N, k, 3)
    return (residual.square().sum(dim=(1, 2)) / extent).sqrt()


def hold_same_points(source: Tensor, images: Tensor) -> bool:
    """Tell whether a one-to-one map (N, 3) -> (N, 3) joins the same points, without labels.

    The best quarter decides: a map that is wrong somewhere still shows it where it is right.
    """
    return float(constellation_misfit(source, images).quantile(0.25)) <= _SAME


def matched_same_points(
    likeness: Likeness, source: Tensor, target: Tensor, deformed: Tensor
) -> Tensor | None:
    """Which point is which (N,), if two clouds of one size hold the same points; else None.

    Parameters
    ----------
    likeness
        Of the features.
    source, target
        (N, 3) each.
    deformed
        (N, 3) the source bent onto the target.
    """
    indices = assign(likeness, deformed, target)  # (N,)
    return indices if hold_same_points(source, target[indices]) else None


class Likeness:
    """Scores of pairs by features: cosines over a temperature, less the best that either has.

    Parameters
    ----------
    source_features, target_features
        (N, D) and (M, D).
    temperature
        What cosines are divided by.
    """

    def __init__(
        self, source_features: Tensor, target_features: Tensor, *, temperature: float = 0.05
    ) -> None:
        self.source = F.normalize(source_features, dim=1)  # (N, D)
        self.target = F.normalize(target_features, dim=1)  # (M, D)
        self.temperature = temperature
        self.source_best = cosine_topk(source_features, target_features, 1).scores[:, 0]  # (N,)
        self.target_best = cosine_topk(target_features, source_features, 1).scores[:, 0]  # (M,)
        self._pairs: Tensor | None = None  # (N, M) once they were asked for

    def turned(self) -> Likeness:
        """Exchange source and target."""
        turned = copy(self)
        turned.source, turned.target = self.target, self.source
        turned.source_best, turned.target_best = self.target_best, self.source_best
        turned._pairs = None if self._pairs is None else self._pairs.T
        return turned

    def all_pairs(self) -> Tensor:
        """Score all pairs: (N, M)."""
        if self._pairs is None:
            best = torch.maximum(self.source_best[:, None], self.target_best)  # (N, M)
            self._pairs = (self.source @ self.target.T - best) / self.temperature
        return self._pairs

    def of_pairs(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Score listed pairs: (E,) for (E,) rows and columns."""
        cosines = torch.cat(
            [
                (self.source[r] * self.target[c]).sum(dim=1)
                for r, c in zip(rows.split(_BLOCK), columns.split(_BLOCK), strict=True)
            ]
        )  # (E,)
        best = torch.maximum(self.source_best[rows], self.target_best[columns])  # (E,)
        return (cosines - best) / self.temperature


def assign(
    likeness: Likeness | None,
    places: Tensor,
    target: Tensor,
    *,
    sigma: float = _SIGMA,
    share: float = 1.0,
) -> Tensor:
    """One-to-one map (N,) by likeness and by distance from where the source was bent to.

    Parameters
    ----------
    likeness
        Of the features; None to go by distance alone.
    places
        (N, 3) the source on the target.
    target
        (M, 3)
    sigma
        Positional bandwidth.
    share
        Factor of the likeness.
    """
    if max(len(places), len(target)) <= DENSE_POINTS:
        scores = squared_distances(places, target).mul_(-0.5 / sigma**2)  # (N, M)
        if likeness is not None:
            scores.add_(likeness.all_pairs(), alpha=share)
        return best_assignment(scores)
    rows, columns, squares = near_pairs(places, target)  # (E,) each
    scores = squares * (-0.5 / sigma**2)  # (E,)
    if likeness is not None:
        scores += share * likeness.of_pairs(rows, columns)
    nearest = nearest_points(places, target, 1).indices[:, 0]  # (N,)
    return shortlist_assignment(rows, columns, scores, rest=nearest)


def inverse(indices: Tensor) -> Tensor:
    """Turn a one-to-one map (N,) between clouds of one size round.

    Shortlists may leave a target to two sources; the one that is left over then takes a target that
    nobody has.
    """
    own = torch.arange(len(indices), device=indices.device)  # (N,)
    back = torch.full_like(indices, -1)  # (N,)
    back[indices] = own
    back[back < 0] = own[back[indices] != own]
    return back


def best_assignment(scores: Tensor) -> Tensor:
    """Columns (N,) of the assignment with the largest sum of (N, M) scores.

    With more rows than columns the rows that get none take their best column.
    """
    rows, columns = linear_sum_assignment(scores.cpu().numpy(), maximize=True)
    chosen = scores.argmax(dim=1)  # (N,)
    chosen[torch.from_numpy(rows).to(chosen.device)] = torch.from_numpy(columns).to(chosen)
    return chosen


def shortlist_assignment(rows: Tensor, columns: Tensor, scores: Tensor, *, rest: Tensor) -> Tensor:
    """Columns (N,) of the assignment with the largest sum over the pairs that are listed.

    Parameters
    ----------
    rows, columns
        (E,) pairs that may be matched; a pair that is listed twice counts once.
    scores
        (E,) of these.
    rest
        (N,) column of a row that gets none; taken only where the listed pairs leave no choice.
    """
    count, size = len(rest), int(max(int(columns.max()), int(rest.max()))) + 1
    pairs = torch.stack([rows, columns]).cpu().numpy()  # (2, E)
    values = scores.double().cpu().numpy()  # (E,)
    _, first = np.unique(pairs[0] * size + pairs[1], return_index=True)
    # Each row has a column of its own to fall back on, so that there always is an assignment.
    # Costs must not be zero: for a sparse matrix that would mean that there is no pair.
    highest = float(values.max(initial=0.0))
    span = highest - float(values.min(initial=0.0)) + 1.0
    cost = np.concatenate([highest - values[first] + 1.0, np.full(count, 2.0 * span + 1.0)])
    row = np.concatenate([pairs[0, first], np.arange(count)])
    column = np.concatenate([pairs[1, first], size + np.arange(count)])
    matrix = coo_matrix((cost, (row, column)), shape=(count, size + count)).tocsr()
    chosen = torch.from_numpy(min_weight_full_bipartite_matching(matrix)[1].astype(np.int64))
    chosen = chosen.to(rest.device)  # (N,)
    return torch.where(chosen < size, chosen, rest)


def near_pairs(places: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs worth assigning: rows (E,), columns (E,) and squared distances (E,).

    The nearest targets of each of (N, 3) places, and the nearest places of each of (M, 3) targets.
    """
    there = nearest_points(places, target, min(_SHORTLIST, len(target)))  # (N, k)
    back = nearest_points(target, places, min(_SHORTLIST, len(places)))  # (M, k)
    own = torch.arange(len(places), device=places.device)[:, None].expand_as(there.indices)
    other = torch.arange(len(target), device=places.device)[:, None].expand_as(back.indices)
    return (
        torch.cat([own.flatten(), back.indices.flatten()]),
        torch.cat([there.indices.flatten(), other.flatten()]),
        torch.cat([there.squares.flatten(), back.squares.flatten()]),
    )
