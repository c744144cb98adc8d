"""A shape that bends: points moved by a graph of control nodes, each with its own affine frame.

Node k at z_k carries a matrix A_k and a new place p_k, and point x_i follows the few nodes that
are nearest along the surface, with weights b_ik that sum to one:

    T(x_i) = sum_k b_ik (A_k (x_i - z_k) + p_k).

Distances run along the surface where its edges are known, so that a hand does not move with the
hip it touches, else over neighbouring points. Fitting T to wanted places y_i with weights w_i
minimises

    sum_i w_i |T(x_i) - y_i|^2 / N + stiffness / r * (
        sum_kl |p_l - p_k - A_k (z_l - z_k)|^2 + rigidity h^2 d sum_k |A_k - s R_k|^2 )

with r nodes, d neighbours l of each node k, their mean squared distance h^2, the rotation R_k that
is nearest to A_k and one scale s for the whole shape. For fixed R_k this is one (4r, 4r) linear
system for all three coordinates, so fitting alternates: solve, then R_k again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.surface_graph import cloud_graph, distances_along
from ltenet.transport import spread_sample

#: Nodes that move a point, neighbours of a node.
_BLENDED_NODES, _NODE_NEIGHBORS = 5, 6
#: Surface distances are followed this many times as far as nodes lie apart.
_REACH = 5.0
#: How firmly nodes without any data follow the whole shape, relative to the stiffness.
_ANCHORING = 1e-3


class Similarity(NamedTuple):
    """Rotation, scale and shift of a whole shape: ``x -> scale * rotation @ x + shift``.

    Attributes
    ----------
    rotation
        (3, 3), determinant 1.
    scale
        () positive.
    shift
        (3,)
    """

    rotation: Tensor
    scale: Tensor
    shift: Tensor

    def apply(self, points: Tensor) -> Tensor:
        """Move (N, 3) points."""
        return self.scale * points @ self.rotation.T + self.shift  # (N, 3)


class DeformationGraph:
    """Control nodes of one shape, and the current fit.

    Parameters
    ----------
    points
        (N, 3) the shape at rest.
    nodes
        Number of control nodes, at most N of them are used.
    rigidity
        How firmly each A_k keeps to a rotation; 0 lets the shape shear and stretch smoothly.
    graph
        (N, N) which points are neighbours on the surface, see `surface_graph`; by default those
        that are nearest in space.
    """

    def __init__(
        self, points: Tensor, nodes: int, *, rigidity: float, graph: csr_array | None = None
    ) -> None:
        self.points, self.rigidity = points, rigidity
        chosen = spread_sample(points, nodes)  # (r,)
        self.nodes = points[chosen]  # (r, 3)
        distance = _surface_distances(points, chosen, graph)  # (N, r)
        self._basis = self._blend(distance)  # (N, 4 r)
        neighbors = distance[chosen]  # (r, r)
        neighbors.fill_diagonal_(torch.inf)
        k = min(_NODE_NEIGHBORS, len(chosen) - 1)
        neighbor = neighbors.topk(k, dim=1, largest=False).indices  # (r, d)
        self._bending, self._square = self._bending_of(neighbor)  # (4 r, 4 r), ()
        self._frames = torch.eye(3).to(points).expand(len(chosen), 3, 3)  # (r, 3, 3)

    def turn(self, whole: Similarity) -> None:
        """Start over with the shape as a whole turned, scaled and shifted."""
        self._frames = whole.rotation.expand(len(self.nodes), 3, 3)  # (r, 3, 3)

    def fit(
        self,
        places: Tensor,
        weights: Tensor,
        *,
        rows: Tensor | None = None,
        stiffness: float,
        rounds: int,
    ) -> Tensor:
        """Bend the shape towards wanted places; return all of it, (N, 3).

        Parameters
        ----------
        places
            (n, 3) where the points at `rows` should go.
        weights
            (n,) how much each counts, from 0 to about 1.
        rows
            (n,) indices of these points; all points by default.
        stiffness
            Weight of the bending energy, see the module.
        rounds
            How often rotations and positions take turns.
        """
        count = len(self.nodes)
        basis = self._basis if rows is None else self._basis[rows]  # (n, 4 r)
        points = self.points if rows is None else self.points[rows]  # (n, 3)
        whole = fit_similarity(points, places, weights)
        weighted = basis * (weights * (count / len(points)))[:, None]  # (n, 4 r)
        system = basis.T @ weighted  # (4 r, 4 r)
        system += stiffness * self._bending
        wanted = (weighted.T @ places).view(count, 4, 3)
        keep = stiffness * self.rigidity * float(self._square) * _NODE_NEIGHBORS
        diagonal = system.diagonal().view(count, 4)
        diagonal[:, :3] += keep
        diagonal[:, 3] += _ANCHORING * stiffness
        # Where neither data nor rigidity fix a frame the system would be singular.
        diagonal += 1e-6 * diagonal.mean()
        factor = torch.linalg.cholesky_ex(system).L  # (4 r, 4 r)
        wanted[:, 3] += _ANCHORING * stiffness * whole.apply(self.nodes)
        for _ in range(rounds):
            right = wanted.clone()  # (r, 4, 3)
            right[:, :3] += keep * whole.scale * self._frames.transpose(1, 2)
            solution = torch.cholesky_solve(right.view(-1, 3), factor)  # (4 r, 3)
            matrices = solution.view(count, 4, 3)[:, :3].transpose(1, 2)  # (r, 3, 3)
            self._frames = nearest_rotations(matrices)
        return self._basis @ solution  # (N, 3)

    def _blend(self, distance: Tensor) -> Tensor:
        """Rows (N, 4 r) that turn the nodes' [A_k, p_k] into the points' places."""
        count = distance.shape[1]
        near = distance.topk(min(_BLENDED_NODES + 1, count), dim=1, largest=False)  # (N, q + 1)
        reach = near.values[:, -1:] * (1 + 1e-3) + torch.finfo(distance.dtype).tiny  # (N, 1)
        share = (1 - near.values / reach).clamp_min(0).square()  # (N, q + 1)
        share += torch.finfo(distance.dtype).tiny
        share = share / share.sum(dim=1, keepdim=True)
        offsets = self.points[:, None] - self.nodes[near.indices]  # (N, q + 1, 3)
        entries = torch.cat([offsets, torch.ones_like(offsets[..., :1])], dim=2)  # (N, q + 1, 4)
        basis = distance.new_zeros((len(distance), count, 4))
        place = near.indices[..., None].expand(-1, -1, 4)  # (N, q + 1, 4)
        return basis.scatter_(1, place, entries * share[..., None]).flatten(1)

    def _bending_of(self, neighbor: Tensor) -> tuple[Tensor, Tensor]:
        """Quadratic form (4 r, 4 r) of the edges to `neighbor` (r, d), and their mean square."""
        count, k = neighbor.shape
        first = torch.arange(count, device=neighbor.device).repeat_interleave(k)  # (e,)
        second, edge = neighbor.flatten(), torch.arange(count * k, device=neighbor.device)  # (e,)
        offsets = self.nodes[second] - self.nodes[first]  # (e, 3)
        rows = self.nodes.new_zeros((count * k, count, 4))
        rows[edge, second, 3] = 1
        rows[edge, first, 3] = -1
        rows[edge, first, :3] = -offsets
        rows = rows.flatten(1)  # (e, 4 r)
        square = offsets.square().sum() / max(1, count * k)
        return rows.T @ rows, square


def fit_similarity(points: Tensor, places: Tensor, weights: Tensor) -> Similarity:
    """Rotation, scale and shift that bring (n, 3) points closest to (n, 3) places.

    Minimises ``sum_i w_i |s R x_i + t - y_i|^2`` by the singular values of the weighted
    covariance (Umeyama). Points that coincide give the identity and a shift.
    """
    share = weights / weights.sum().clamp_min(torch.finfo(weights.dtype).tiny)  # (n,)
    centre, new_centre = share @ points, share @ places  # (3,), (3,)
    centred = points - centre  # (n, 3)
    covariance = (places - new_centre).T @ (centred * share[:, None])  # (3, 3)
    left, values, right = torch.linalg.svd(covariance)
    sign = torch.ones_like(values)  # (3,)
    sign[2] = torch.where(torch.det(left @ right) < 0, -1.0, 1.0)
    rotation = (left * sign) @ right  # (3, 3)
    spread = share @ centred.square().sum(dim=1)  # ()
    scale = (values * sign).sum() / spread.clamp_min(torch.finfo(spread.dtype).tiny)  # ()
    scale = torch.where(scale > 1e-3, scale, torch.ones_like(scale))
    return Similarity(rotation, scale, new_centre - scale * rotation @ centre)


def nearest_rotations(matrices: Tensor) -> Tensor:
    """Rotations (r, 3, 3) nearest to (r, 3, 3) matrices."""
    left, _, right = torch.linalg.svd(matrices)
    flipped = torch.det(left @ right) < 0  # (r,)
    left[:, :, 2] = torch.where(flipped[:, None], -left[:, :, 2], left[:, :, 2])
    return left @ right  # type: ignore[no-any-return]


def _surface_distances(points: Tensor, nodes: Tensor, graph: csr_array | None) -> Tensor:
    """Distances (N, r) from the points to the points at `nodes` along the surface.

    Nodes that are out of reach, or on a part that no edge joins, count as ten times as far as they
    are in space, so that every point has nodes to follow.
    """
    straight = torch.cdist(points, points[nodes])  # (N, r)
    if len(nodes) < 2:
        return straight
    apart = float(straight[nodes].fill_diagonal_(torch.inf).amin(dim=1).mean())
    coordinates = points.cpu().numpy().astype(np.float64)  # (N, 3)
    graph = cloud_graph(coordinates) if graph is None else graph
    along = distances_along(graph, coordinates, nodes.cpu().numpy(), reach=_REACH * apart)  # (N, r)
    distance = torch.from_numpy(along).to(straight)  # (N, r)
    return torch.where(distance.isfinite(), distance, 10 * straight + _REACH * apart)
