"""Embedded deformation [Sumner et al. 2007]: control nodes with affine frames bend a shape.

Node k at z_k carries a matrix A_k and a new position p_k. Point x_i follows the few nodes that are
nearest along the surface, with weights b_ik that sum to one:

    T(x_i) = sum_k b_ik (A_k (x_i - z_k) + p_k).

Distances run along the surface where its edges are known, so that a hand does not move with the
hip it touches, else over neighbouring points. Fitting T to positions y_i with weights w_i minimises

    sum_i w_i |T(x_i) - y_i|^2 / N + stiffness / r * (
        sum_kl |p_l - p_k - A_k (z_l - z_k)|^2 + rigidity h^2 d sum_k |A_k - s R_k|^2 )

over r nodes, with d neighbours l of each node k, their mean squared distance h^2, the rotation R_k
nearest to A_k, and one scale s for the whole shape. For fixed R_k this is one (4r, 4r) linear
system shared by all three coordinates, so fitting alternates between solving it and updating R_k.
A point adds to few entries of the system, those of its own nodes: the products that it adds there
are computed once, and a fit only weighs them.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import Similarity, kabsch, umeyama
from ltenet.geometry.surface_graph import cloud_graph, distances_along
from ltenet.lazy import lazy
from ltenet.refinement.point_sets import rotations_near, spread_sample

#: Nodes that move a point, and neighbours of a node.
_BLENDED_NODES, _NODE_NEIGHBORS = 5, 6
#: Distances along the surface are followed up to this multiple of the node spacing.
_REACH = 5.0
#: How firmly nodes without data follow the shape as a whole, relative to the stiffness.
_ANCHORING = 1e-3
#: Smaller scales come from maps that collapse the shape.
_LEAST_SCALE = 1e-3


class Deformation(NamedTuple):
    """One fit of a deformation graph.

    Attributes
    ----------
    transforms
        (4 r, 3) matrices A_k, transposed, each followed by the position p_k.
    frames
        (r, 3, 3) rotations R_k: the start of a further fit.
    """

    transforms: Tensor
    frames: Tensor


class DeformationGraph:
    """Control nodes of one shape; a fit leaves them unchanged.

    Parameters
    ----------
    points
        (N, 3) the shape at rest.
    nodes
        Number of control nodes, capped at N.
    rigidity
        How firmly each A_k is tied to a rotation; 0 lets the shape shear and stretch smoothly.
    graph
        (N, N) adjacency along the surface, see `surface_graph`; by default the nearest points in
        space.
    """

    def __init__(
        self, points: Tensor, nodes: int, *, rigidity: float, graph: csr_array | None = None
    ) -> None:
        self.points, self.rigidity = points, rigidity
        chosen = spread_sample(points, nodes)  # (r,)
        self.nodes = points[chosen]  # (r, 3)
        distance = _surface_distances(points, chosen, graph)  # (N, r)
        self._followed, self._entries = self._blend(distance)  # (N, q + 1), (N, q + 1, 4)
        neighbors = distance[chosen]  # (r, r)
        neighbors.fill_diagonal_(torch.inf)
        k = min(_NODE_NEIGHBORS, len(chosen) - 1)
        neighbor = neighbors.topk(k, dim=1, largest=False).indices  # (r, d)
        self._bending, self._square = self._bending_of(neighbor)  # (4 r, 4 r), ()

    def at(self, rows: Tensor) -> DeformationGraph:
        """Restrict the graph to the points at `rows` (n,); the nodes stay the same."""
        part = copy(self)
        for computed in ("_basis", "_products"):
            vars(part).pop(computed, None)  # those of all points
        part.points = self.points[rows]  # (n, 3)
        part._followed, part._entries = self._followed[rows], self._entries[rows]
        return part

    def frames(self, rotation: FloatArray | None = None) -> Tensor:
        """(r, 3, 3) frames of the shape rotated as a whole by (3, 3); the identity by default."""
        matrix = torch.eye(3) if rotation is None else torch.from_numpy(rotation)  # (3, 3)
        return matrix.to(self.points).expand(len(self.nodes), 3, 3)

    def apply(self, deformation: Deformation) -> Tensor:
        """(N, 3) points of the bent shape."""
        moved = self._basis @ deformation.transforms.cpu().numpy()  # (N, 3)
        return torch.from_numpy(moved).to(deformation.transforms)

    def fit(
        self,
        places: Tensor,
        weights: Tensor,
        *,
        frames: Tensor,
        stiffness: float,
        rounds: int,
        sized: bool = False,
    ) -> Deformation:
        """Bend the shape towards given positions.

        Parameters
        ----------
        places
            (N, 3) where the points should go.
        weights
            (N,) of the points, from 0 to about 1.
        frames
            (r, 3, 3) rotations to start from: those of `frames`, or of an earlier fit.
        stiffness
            Weight of the bending energy, see the module.
        rounds
            Alternations between positions and rotations, at least one.
        sized
            The shape has the right size, so s = 1. By default s is that of the best similarity,
            which is too small where poses differ: what has no data would shrink.
        """
        count = len(self.nodes)
        whole = align(self.points, places, weights, sized=sized)
        weights = weights * (count / len(self.points))  # (N,)
        system = self._weighed(weights)  # (4 r, 4 r)
        system += stiffness * self._bending
        pull = self._basis.T @ (weights[:, None] * places).cpu().numpy()  # (4 r, 3)
        wanted = torch.from_numpy(pull).to(places).view(count, 4, 3)
        keep = stiffness * self.rigidity * float(self._square) * _NODE_NEIGHBORS
        diagonal = system.diagonal().view(count, 4)
        diagonal[:, :3] += keep
        diagonal[:, 3] += _ANCHORING * stiffness
        # Where neither data nor rigidity fix a frame the system would be singular.
        diagonal += 1e-6 * diagonal.mean()
        factor = torch.linalg.cholesky_ex(system).L  # (4 r, 4 r)
        anchors = torch.from_numpy(whole(self.nodes.cpu().numpy())).to(places)  # (r, 3)
        wanted[:, 3] += _ANCHORING * stiffness * anchors
        for _ in range(rounds):
            right = wanted.clone()  # (r, 4, 3)
            right[:, :3] += keep * whole.scale * frames.transpose(1, 2)
            transforms = torch.cholesky_solve(right.view(-1, 3), factor)  # (4 r, 3)
            matrices = transforms.view(count, 4, 3)[:, :3].transpose(1, 2)  # (r, 3, 3)
            frames = rotations_near(matrices)
        return Deformation(transforms, frames)

    def _blend(self, distance: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes (N, q + 1) that move each point, and what it has to do with their transforms.

        The latter are (N, q + 1, 4) entries of its row in `_basis`.
        """
        count = distance.shape[1]
        near = distance.topk(min(_BLENDED_NODES + 1, count), dim=1, largest=False)  # (N, q + 1)
        reach = near.values[:, -1:] * (1 + 1e-3) + torch.finfo(distance.dtype).tiny  # (N, 1)
        share = (1 - near.values / reach).clamp_min(0).square()  # (N, q + 1)
        share += torch.finfo(distance.dtype).tiny
        share = share / share.sum(dim=1, keepdim=True)
        offsets = self.points[:, None] - self.nodes[near.indices]  # (N, q + 1, 3)
        entries = torch.cat([offsets, torch.ones_like(offsets[..., :1])], dim=2)  # (N, q + 1, 4)
        return near.indices, entries * share[..., None]

    @property
    def _columns(self) -> Tensor:
        """(N, c) where the entries of each point stand in the rows of the system, c = 4 (q + 1)."""
        parts = torch.arange(4, device=self._followed.device)
        return (4 * self._followed[..., None] + parts).flatten(1)

    @lazy
    def _basis(self) -> csr_array:
        """Rows (N, 4 r) that turn the transforms of the nodes into positions of the points."""
        return _sparse_rows(self._columns, self._entries.flatten(1), 4 * len(self.nodes))

    @lazy
    def _products(self) -> csr_array:
        """Rows (N, (4 r)^2): what each point adds to the system if its weight is 1."""
        columns, size = self._columns, 4 * len(self.nodes)  # (N, c)
        entries = self._entries.flatten(1)  # (N, c)
        places = columns[:, :, None] * size + columns[:, None]  # (N, c, c)
        products = entries[:, :, None] * entries[:, None]  # (N, c, c)
        return _sparse_rows(places.flatten(1), products.flatten(1), size**2)

    def _weighed(self, weights: Tensor) -> Tensor:
        """Sum over the points of their outer products, (4 r, 4 r), with (N,) weights."""
        size = 4 * len(self.nodes)
        total = self._products.T @ weights.cpu().numpy()  # ((4 r)^2,)
        return torch.from_numpy(total).to(weights).view(size, size)

    def _bending_of(self, neighbor: Tensor) -> tuple[Tensor, Tensor]:
        """Quadratic form (4 r, 4 r) of the edges to `neighbor` (r, d), and their mean square."""
        count, k = neighbor.shape
        first = torch.arange(count, device=neighbor.device).repeat_interleave(k)[:, None]  # (e, 1)
        second = neighbor.reshape(-1, 1)  # (e, 1)
        offsets = (self.nodes[second] - self.nodes[first])[:, 0]  # (e, 3)
        axes = torch.arange(3, device=neighbor.device)  # (3,)
        columns = torch.cat([4 * second + 3, 4 * first + 3, 4 * first + axes], dim=1)  # (e, 5)
        one = torch.ones_like(offsets[:, :1])  # (e, 1)
        edges = _sparse_rows(columns, torch.cat([one, -one, -offsets], dim=1), 4 * count)
        form = torch.from_numpy((edges.T @ edges).toarray()).to(self.nodes)  # (4 r, 4 r)
        return form, offsets.square().sum() / max(1, count * k)


def align(points: Tensor, places: Tensor, weights: Tensor, *, sized: bool = False) -> Similarity:
    """Rotation, scale and shift that best move (n, 3) points onto (n, 3) places [Umeyama 1991].

    A map that collapses the shape gives a rigid motion, and so does a shape that is `sized`.
    """
    arrays = [part.cpu().numpy() for part in (points, places, weights)]
    if sized:
        return kabsch(*arrays)
    found = umeyama(*arrays)
    return found if found.scale > _LEAST_SCALE else kabsch(*arrays)


def _sparse_rows(columns: Tensor, entries: Tensor, size: int) -> csr_array:
    """(N, size) rows with (N, c) entries at (N, c) columns."""
    count, each = columns.shape
    starts = np.arange(0, count * each + 1, each)  # (N + 1,)
    indices, values = columns.flatten().cpu().numpy(), entries.flatten().cpu().numpy()
    narrow = np.int32 if max(size, starts[-1]) < 2**31 else np.int64
    return csr_array((values, indices.astype(narrow), starts.astype(narrow)), shape=(count, size))


def _surface_distances(points: Tensor, nodes: Tensor, graph: csr_array | None) -> Tensor:
    """Distances (N, r) from the points to the points at `nodes` along the surface.

    Nodes out of reach, or on a part that no edge connects, count as ten times their distance in
    space, so that every point has nodes to follow.
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
