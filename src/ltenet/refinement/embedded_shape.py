"""One shape with its features, and everything that refinement derives from it alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.errors import InputError
from ltenet.lazy import lazy
from ltenet.method.neighbors import knn_graph
from ltenet.refinement.point_sets import (
    AREA_NEIGHBORS,
    NearestPoints,
    nearest_points,
    project_onto_planes,
    relative_areas,
    spread_sample,
    squared_edges,
)

#: Largest neighbourhood that anything asks for, the point itself included; smaller ones are
#: prefixes of it.
_NEIGHBORHOOD = 13
#: Largest sample that several stages share; smaller ones are prefixes of it.
_SAMPLE = 384
#: Neighbours of a point, itself excluded, between which lengths are compared.
EDGES = 8
#: Regions whose handedness is tested, and the share of all points in each.
_REGIONS, _REGION_SHARE = 64, 0.12
#: Surface points that span the plane onto which a query is projected.
_PLANE_NEIGHBORS = 5


class EmbeddedShape:
    """Points and features of one shape in the frame of the network: normalised and oriented.

    What follows from the shape alone is computed once, when first asked for, and serves every pair
    that the shape is part of.

    Parameters
    ----------
    points
        (N, 3), root-mean-square radius 0.5.
    features
        (N, D) embeddings of any length.
    faces
        (F, 3) triangles if the points are the vertices of a mesh.
    graph
        (N, N) adjacency along the surface; by default the nearest points in space.
    name
        For error messages.
    """

    def __init__(
        self,
        points: Tensor,
        features: Tensor,
        *,
        faces: Tensor | None = None,
        graph: csr_array | None = None,
        name: str = "shape",
    ) -> None:
        _check(points, features, faces, name)
        self.points = points.detach()  # (N, 3)
        self.features = F.normalize(features.detach().to(points.dtype), dim=1)  # (N, D)
        self.faces, self.graph, self.name = faces, graph, name

    def __len__(self) -> int:
        return len(self.points)

    def subset(self, rows: Tensor) -> EmbeddedShape:
        """Keep the points at `rows` (n,), without faces."""
        return EmbeddedShape(self.points[rows], self.features[rows], name=self.name)

    def nearest(self, queries: Tensor, k: int) -> NearestPoints:
        """Find the nearest points (n, k) to (n, 3) queries, fewer if the shape has fewer."""
        return nearest_points(queries, self.points, min(k, len(self)), tree=self._tree)

    def neighbors(self, k: int) -> Tensor:
        """(N, k) nearest points of each point in space, itself first; fewer on tiny shapes."""
        if k > _NEIGHBORHOOD:
            return knn_graph(self.points, min(k, len(self)))
        return self._neighborhood[:, :k]

    def spread(self, count: int) -> Tensor:
        """Farthest-point sample (count,), fewer on tiny shapes."""
        return self._sample[:count] if count <= _SAMPLE else spread_sample(self.points, count)

    def project(self, queries: Tensor) -> Tensor:
        """Move (n, 3) queries onto the surface: the plane through the nearest points of each."""
        return project_onto_planes(
            queries, self.points[self.nearest(queries, _PLANE_NEIGHBORS).indices]
        )

    @lazy
    def areas(self) -> Tensor:
        """(N,) surface area around each point, relative to the mean."""
        return relative_areas(self.points, self.neighbors(AREA_NEIGHBORS))

    @lazy
    def squared_edges(self) -> Tensor:
        """(N, `EDGES`) squared distances to the nearest other points."""
        return squared_edges(self.points, self.neighbors(EDGES + 1)[:, 1:])

    @lazy
    def spacing(self) -> Tensor:
        """() root mean square distance between neighbouring points."""
        # Each point counts as its own neighbour, at distance zero.
        return (self.squared_edges.sum(dim=1) / (self.squared_edges.shape[1] + 1)).mean().sqrt()

    @lazy
    def regions(self) -> Tensor:
        """(c, k) points of overlapping regions that cover the shape."""
        count = min(max(8, round(_REGION_SHARE * len(self))), len(self))
        centres = self.points[self.spread(_REGIONS)]  # (c, 3)
        return torch.cdist(centres, self.points).topk(count, dim=1, largest=False).indices

    @lazy
    def _tree(self) -> KDTree | None:
        return KDTree(self.points.numpy()) if self.points.device.type == "cpu" else None

    @lazy
    def _neighborhood(self) -> Tensor:
        return knn_graph(self.points, min(_NEIGHBORHOOD, len(self)))  # (N, 13)

    @lazy
    def _sample(self) -> Tensor:
        return spread_sample(self.points, _SAMPLE)  # (384,)


def _check(points: Tensor, features: Tensor, faces: Tensor | None, name: str) -> None:
    fits = points.ndim == 2 and points.shape[1] == 3 and len(points) > 0
    if not fits or features.ndim != 2 or len(features) != len(points):
        raise InputError(
            f"{name}: got points {tuple(points.shape)} and features {tuple(features.shape)}, "
            "expected (N, 3) and (N, D) with N > 0; try the pairs of a batch one at a time"
        )
    if not (points.isfinite().all() and features.isfinite().all()):
        raise InputError(
            f"{name}: got NaN or infinite values, expected finite points and features; "
            "try removing the damaged points before embedding"
        )
    if faces is not None and not _faces_fit(faces, len(points)):
        raise InputError(
            f"{name}: got faces {tuple(faces.shape)} that do not fit {len(points)} points, "
            "expected (F, 3) indices of them; try leaving the faces out of a sample"
        )


def _faces_fit(faces: Tensor, count: int) -> bool:
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.is_floating_point():
        return False
    return faces.numel() == 0 or (int(faces.min()) >= 0 and int(faces.max()) < count)
