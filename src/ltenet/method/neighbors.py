"""Nearest neighbours: Euclidean in 3-D, by cosine in feature space (Eq. 13).

Nothing here holds an (N, M) matrix: 3-D queries go to a KD-tree, feature queries run over blocks
of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.errors import InputError
from ltenet.geometry.surface_graph import nearest_on_surface

#: Similarities computed at a time: 4 M floats are 16 MB, large enough for full matrix products.
BLOCK_ENTRIES = 1 << 22
#: Strips of rows in which a symmetric product is computed up to its diagonal.
_STRIPS = 4
#: A point that is so many times as far along the surface as in space, and this many spacings more,
#: belongs to another part of the shape that is merely close.
_DETOUR, _DETOUR_SPACINGS = 2.0, 4.0
#: Most points between all of which paths are compared, which is fastest for few.
_ALL_PAIRS = 4096


class TopK(NamedTuple):
    """The best `k` targets of every source point, best first.

    Attributes
    ----------
    indices
        (..., N, K) int64, into the target.
    scores
        (..., N, K) cosine similarities.
    """

    indices: Tensor
    scores: Tensor


def knn_graph(points: Tensor, k: int, along: Tensor | None = None) -> Tensor:
    """Euclidean neighbours of every point among the points themselves, itself first.

    Parameters
    ----------
    points
        (N, C) coordinates, any C; a KD-tree answers on the CPU, blocked products elsewhere.
    k
        Number of neighbours, the point itself included.
    along
        (N, L) coordinates along the surface, in the unit of the points, if it is known; see
        `surface_coordinates`. Points that are close in space but far along the surface, such as a
        foot and the knee that it touches, are neighbours only where there are too few others.

    Returns
    -------
    Tensor
        (N, k) int64, nearest first. With duplicated points the point itself still comes first.
    """
    count = len(points)
    _check_k(k, count, what="neighbours of each point")
    if along is not None:
        return _itself_first(_close_along(points.detach(), k, along))
    if points.device.type == "cpu" and points.shape[1] <= 3:
        coordinates = points.detach().numpy()
        indices = torch.from_numpy(KDTree(coordinates).query(coordinates, k=k)[1])
        indices = indices.reshape(count, k)  # (N, k), also for k = 1
    else:
        indices = _blocked_knn(points.detach(), k)
    return _itself_first(indices)


def cosine_topk(source: Tensor, target: Tensor, k: int, *, exclude_itself: bool = False) -> TopK:
    """Targets with the largest cosine similarity, in blocks of rows.

    Parameters
    ----------
    source
        (N, D) or (B, N, D) features.
    target
        (M, D) or (B, M, D) features.
    k
        Number of neighbours.
    exclude_itself
        Source and target are the same points; point i is not its own neighbour. The diagonal is
        masked rather than the first hit dropped, which would drop a duplicate instead.

    Notes
    -----
    No gradient: the choice of neighbours is not differentiable.
    """
    _check_features(source, target)
    count, candidates = source.shape[-2], target.shape[-2]
    if exclude_itself and count != candidates:
        raise InputError(
            f"features: got {count} points to exclude from {candidates}, expected the same points "
            "on both sides; try passing the same features twice"
        )
    _check_k(k, candidates - exclude_itself, what="target neighbours")
    with torch.no_grad():
        if exclude_itself and source is target and _fits(source, target):
            return _stacked([_best(_with_itself(unit), k) for unit in _units(source)], source)
        source = torch.nn.functional.normalize(source, dim=-1)  # (..., N, D)
        target = torch.nn.functional.normalize(target, dim=-1).transpose(-1, -2)  # (..., D, M)
        rows = max(1, BLOCK_ENTRIES // (target.shape[:-2].numel() * candidates))
        indices, scores = [], []
        for start in range(0, count, rows):
            similarity = source[..., start : start + rows, :] @ target  # (..., rows, M)
            if exclude_itself:
                similarity.diagonal(offset=start, dim1=-2, dim2=-1).fill_(-torch.inf)
            best = similarity.topk(k, dim=-1)
            indices.append(best.indices)
            scores.append(best.values)
        return TopK(torch.cat(indices, dim=-2), torch.cat(scores, dim=-2))


def mutual_topk(source: Tensor, target: Tensor, k: int) -> tuple[TopK, TopK]:
    """`cosine_topk` from source to target and back, from one product where it fits into cache.

    Parameters
    ----------
    source, target
        (N, D) and (M, D), or (B, N, D) and (B, M, D) features.
    k
        Number of neighbours.
    """
    _check_features(source, target)
    if not _fits(source, target):
        return cosine_topk(source, target, k), cosine_topk(target, source, k)
    _check_k(k, min(source.shape[-2], target.shape[-2]), what="target neighbours")
    forth, back = [], []
    with torch.no_grad():
        for one, other in zip(_units(source), _units(target), strict=True):
            similarity = one @ other.T  # (N, M)
            forth.append(_best(similarity, k))
            back.append(_best(similarity.T.contiguous(), k))
        return _stacked(forth, source), _stacked(back, target)


def surface_neighbors(points: Tensor, k: int) -> Tensor:
    """Find the nearest of (B, M, 3) points along the surface, itself first: (B, M, k) indices.

    Paths run from neighbour to neighbour in the cloud. No gradient.
    """
    _check_k(k, points.shape[1], what="neighbours along the surface")
    found = [nearest_on_surface(shape.numpy(), k) for shape in points.detach().double().cpu()]
    return torch.from_numpy(np.stack(found)).to(points.device)


def geodesic_neighbors(
    source: Tensor,
    target: Tensor,
    surface: Tensor | None,
    k: int,
    *,
    exclude_itself: bool = False,
) -> Tensor:
    """Most similar target feature, and what is nearest to it along the target's surface.

    Parameters
    ----------
    source, target
        (B, N, D) and (B, M, D) features.
    surface
        (B, M, > k) from `surface_neighbors` of the target.
    k
        Number of neighbours, the most similar one included.
    exclude_itself
        As in `cosine_topk`.

    Returns
    -------
    Tensor
        (B, N, k) int64.
    """
    if surface is None or surface.shape[:2] != target.shape[:2] or surface.shape[2] <= k:
        got = "none" if surface is None else str(tuple(surface.shape))
        raise InputError(
            f"got surface neighbours {got} for {k} of features {tuple(target.shape)}, expected "
            "(B, M, more than k); try surface_neighbors of the target's points"
        )
    best = cosine_topk(source, target, 1, exclude_itself=exclude_itself).indices  # (B, N, 1)
    around = surface.gather(1, best.expand(-1, -1, surface.shape[2]))  # (B, N, > k)
    if exclude_itself:
        itself = torch.arange(source.shape[1], device=source.device)[:, None]  # (N, 1)
        order = (around == itself).to(torch.int8).argsort(dim=-1, stable=True)  # itself goes last
        around = around.gather(-1, order)
    return around[..., :k]


def _fits(source: Tensor, target: Tensor) -> bool:
    """Whether the similarities of one pair of shapes make one block, on a CPU."""
    return source.device.type == "cpu" and source.shape[-2] * target.shape[-2] <= BLOCK_ENTRIES


def _units(features: Tensor) -> Tensor:
    """Features (B, N, D) of unit length."""
    return torch.nn.functional.normalize(features.reshape(-1, *features.shape[-2:]), dim=-1)


def _with_itself(unit: Tensor) -> Tensor:
    """Similarities (N, N) of unit features, -inf on the diagonal; mirrored, not computed twice."""
    count = len(unit)
    step = -(-count // _STRIPS)
    similarity = unit.new_empty((count, count))
    for start in range(0, count, step):
        strip = slice(start, start + step)
        torch.mm(unit[strip], unit[start:].T, out=similarity[strip, start:])
        similarity[start + step :, strip] = similarity[strip, start + step :].T
    similarity.diagonal().fill_(-torch.inf)
    return similarity


def _best(similarity: Tensor, k: int) -> TopK:
    """Columns (N, k) of the largest entries of (N, M), and these."""
    scores, indices = similarity.topk(k, dim=-1)
    return TopK(indices, scores)


def _stacked(parts: list[TopK], like: Tensor) -> TopK:
    """Neighbours of single shapes, batched like the features (..., N, D) they belong to."""
    indices, scores = (
        torch.stack(part).view(*like.shape[:-1], -1) for part in zip(*parts, strict=True)
    )
    return TopK(indices, scores)


def _close_along(points: Tensor, k: int, along: Tensor) -> Tensor:
    """(N, k) nearest points in space, those that are far along the surface last."""
    spacing = (points - points[knn_graph(points, min(2, len(points)))[:, -1]]).norm(dim=1).median()
    slack = _DETOUR_SPACINGS * spacing  # ()
    if len(points) > _ALL_PAIRS:
        return _nearest_close_along(points, k, along, slack)
    beyond = 2 * (points.amax(dim=0) - points.amin(dim=0)).norm()  # ()
    # Exact, unlike the products that `cdist` prefers: duplicates must not get lost.
    apart = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")  # (N, N)
    path, step = torch.zeros_like(apart), torch.empty_like(apart)  # (N, N) each
    for column in along.T.contiguous():  # (N,)
        torch.sub(column[:, None], column, out=step)
        torch.maximum(path, step.abs_(), out=path)
    # Off the surface there is no path, and NaN is not far.
    apart += beyond * (path > _DETOUR * apart + slack)
    return apart.topk(k, dim=1, largest=False).indices


def _nearest_close_along(points: Tensor, k: int, along: Tensor, slack: Tensor) -> Tensor:
    """Find the same among the 2 k nearest points in space, in blocks: linear in the points."""
    near = knn_graph(points, min(2 * k, len(points)))  # (N, <= 2 k)
    rows = max(1, BLOCK_ENTRIES // (near.shape[1] * along.shape[1]))
    found = []
    for start in range(0, len(points), rows):
        own, block = slice(start, start + rows), near[start : start + rows]  # (b, <= 2 k)
        apart = (points[block] - points[own, None]).norm(dim=2)  # (b, <= 2 k)
        path = (along[block] - along[own, None]).abs().amax(dim=2)  # (b, <= 2 k)
        far = path > _DETOUR * apart + slack  # (b, <= 2 k)
        order = torch.sort(far.to(torch.uint8), dim=1, stable=True).indices[:, :k]  # (b, k)
        found.append(block.gather(1, order))
    return torch.cat(found)


def _blocked_knn(points: Tensor, k: int) -> Tensor:
    """Return Euclidean neighbours (N, k) from blocks of squared distances |a|^2 + |b|^2 - 2ab."""
    points = points - points.mean(dim=0)  # small norms, small cancellation
    squares = points.square().sum(dim=1)  # (N,)
    rows = max(1, BLOCK_ENTRIES // len(points))
    indices = []
    for start in range(0, len(points), rows):
        block = torch.addmm(squares, points[start : start + rows], points.T, alpha=-2)  # (rows, N)
        # Rounding must not put a near twin before the point itself.
        block.diagonal(offset=start).fill_(-torch.inf)
        indices.append(block.topk(k, dim=1, largest=False).indices)
    return torch.cat(indices)


def _itself_first(indices: Tensor) -> Tensor:
    """Put point i first in row i; where duplicates pushed it out, it replaces the first of them."""
    itself = torch.arange(len(indices), device=indices.device)  # (N,)
    misplaced = indices[:, 0] != itself  # (N,)
    if misplaced.any():
        indices = indices.clone()
        rows = indices[misplaced]  # (m, k)
        first = rows[:, :1].clone()  # (m, 1)
        # Swap where the point is further down the row; elsewhere just take the first place.
        own = itself[misplaced, None]  # (m, 1)
        rows = torch.where(rows == own, first, rows)
        rows[:, 0] = own[:, 0]
        indices[misplaced] = rows
    return indices


def _check_features(source: Tensor, target: Tensor) -> None:
    if source.shape[-1] != target.shape[-1] or source.shape[:-2] != target.shape[:-2]:
        raise InputError(
            f"features: got tensors of shape {tuple(source.shape)} and {tuple(target.shape)}, "
            "expected the same batch and the same dimension; try embedding both with one model"
        )


def _check_k(k: int, available: int, *, what: str) -> None:
    if not 1 <= k <= available:
        raise InputError(
            f"got {k} {what} for {available} points, expected 1 to {available}; "
            "try a smaller number, or a shape with more points"
        )
