"""What refinement takes and what it gives: one embedded pair in, one map out."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.coherence import CoherenceConfig, check_embedded
from ltenet.errors import InputError
from ltenet.map_quality import Judge, MapScores
from ltenet.neighbors import TopK, cosine_topk, knn_graph

#: Length of a round trip by which confidence falls to a third, and neighbours it is averaged over.
_CYCLE, _CONFIDENCE_NEIGHBORS = 0.2, 10


class EmbeddedPair(NamedTuple):
    """One pair in the frame of the network: normalised and oriented.

    Attributes
    ----------
    source_points, target_points
        (N, 3) and (M, 3), each of root-mean-square radius 0.5.
    source_features, target_features
        (N, D) and (M, D) embeddings.
    source_faces, target_faces
        (F, 3) triangles where the points are the vertices of a mesh, else None.
    source_graph, target_graph
        (N, N) and (M, M) which points are neighbours on the surface; by default the nearest in
        space.
    """

    source_points: Tensor
    target_points: Tensor
    source_features: Tensor
    target_features: Tensor
    source_faces: Tensor | None = None
    target_faces: Tensor | None = None
    source_graph: csr_array | None = None
    target_graph: csr_array | None = None


class RefinedMap(NamedTuple):
    """Where each source point belongs on the target.

    Attributes
    ----------
    indices
        (N,) int64 target point, -1 where there is none.
    positions
        (N, 3) place on the target, not bound to its points; unmatched points have one too.
    confidence
        (N,) from 0 to 1, not calibrated.
    neighbors
        (N, K) int64 target points of the soft partner.
    weights
        (N, K) of these, which sum to 1. Their mean is `positions`, as near as the neighbours
        allow.
    energy
        `MapScores.energy` of the map, lower is better; no label is behind it.
    mirrored
        How likely left and right are exchanged, `MapScores.mirrored`.
    accepted
        False where refinement was worse by `energy` than what it started from, which then came
        back.
    same_points
        Whether both clouds were taken to hold the same surface points.
    input_energy
        The energy of the map that refinement started from.
    """

    indices: Tensor
    positions: Tensor
    confidence: Tensor
    neighbors: Tensor
    weights: Tensor
    energy: float
    mirrored: float
    accepted: bool
    same_points: bool
    input_energy: float


class Options(NamedTuple):
    """What a method may need to know; see `refine_pair`."""

    one_to_one: bool | Literal["auto"] = "auto"
    fill: bool = True
    neighbors: int = 10
    temperature: float = 0.02
    coherence: CoherenceConfig | None = None
    reach: float | None = 0.03
    dustbin: float | None = None


class Task:
    """One pair on its way through a method, with what every method needs of it.

    Parameters
    ----------
    pair
        Checked by `check_pair`.
    start
        (N,) the map to improve, -1 where it says nothing; None for the nearest features.
    options
        See `refine_pair`.
    """

    def __init__(self, pair: EmbeddedPair, start: Tensor | None, options: Options) -> None:
        self.pair, self.options = pair, options
        k = min(options.neighbors, len(pair.target_points))
        self.nearest = cosine_topk(pair.source_features, pair.target_features, k)  # (N, K)
        self.back = cosine_topk(pair.target_features, pair.source_features, 1).indices[:, 0]  # (M,)
        self.given = start is not None
        own = self.nearest.indices[:, 0]  # (N,)
        self.start = own if start is None else torch.where(start >= 0, start, own)  # (N,)
        self._judge = Judge(
            pair.source_points,
            pair.target_points,
            features=(pair.source_features, pair.target_features),
        )
        self.start_scores = self.scores(self.start)

    def scores(self, indices: Tensor) -> MapScores:
        """Score a map (N,) without the truth."""
        return self._judge.scores(indices)

    def improves(self, indices: Tensor) -> bool:
        """Whether a map (N,) scores no worse than what was started from."""
        return self.scores(indices).energy <= self.start_scores.energy

    def confidence(self, indices: Tensor) -> Tensor:
        """(N,) from 0 to 1: there by the map and back by features, and the likeness of both ends.

        Neighbours share their fate: the mean over some of them tells more than one value.
        """
        points = self.pair.source_points  # (N, 3)
        trip = (points - points[self.back[indices]]).norm(dim=1) / _CYCLE  # (N,)
        ends = self.pair.source_features, self.pair.target_features[indices]  # (N, D), (N, D)
        likeness = torch.cosine_similarity(*ends).clamp(0, 1)  # (N,)
        confidence = likeness * torch.exp(-trip)  # (N,)
        neighbors = knn_graph(points, min(_CONFIDENCE_NEIGHBORS, len(points)))  # (N, k)
        return confidence[neighbors].mean(dim=1)


class Proposal(NamedTuple):
    """What a method found, before it is weighed against what it started from.

    Attributes
    ----------
    indices
        (N,) target points, of every source point.
    positions
        (N, 3) places, or None where the target points are meant themselves.
    confidence
        (N,), or None for that of `Task.confidence`.
    soft
        Target points with weights, (N, K) each, as `TopK` with the weights for scores; None to
        take those around `positions`.
    unmatched
        (N,) True where a point has no partner, or None.
    same_points
        Whether both clouds were taken to hold the same surface points.
    """

    indices: Tensor
    positions: Tensor | None = None
    confidence: Tensor | None = None
    soft: TopK | None = None
    unmatched: Tensor | None = None
    same_points: bool = False


def check_pair(pair: EmbeddedPair, start: Tensor | None, options: Options) -> None:
    """Raise where shapes, features, start or options do not fit."""
    check_embedded(*pair[:4])
    for name, points, faces in (
        ("source", pair.source_points, pair.source_faces),
        ("target", pair.target_points, pair.target_faces),
    ):
        if faces is not None and not _faces_fit(faces, len(points)):
            raise InputError(
                f"{name}: faces {tuple(faces.shape)} do not fit {len(points)} points; (F, 3) "
                "indices of them are needed; leave the faces out where the points are a sample"
            )
    size = len(pair.target_points)
    if start is not None and (
        start.shape != pair.source_points.shape[:1]
        or start.is_floating_point()
        or int(start.min()) < -1
        or int(start.max()) >= size
    ):
        raise InputError(
            f"a map of shape {tuple(start.shape)} came to start from; one whole number from -1 to "
            f"{size - 1} for each of {len(pair.source_points)} points is needed; "
            "check that map and shapes belong together"
        )
    _check_options(options)


def _faces_fit(faces: Tensor, count: int) -> bool:
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.is_floating_point():
        return False
    return faces.numel() == 0 or (int(faces.min()) >= 0 and int(faces.max()) < count)


def _check_options(options: Options) -> None:
    if options.one_to_one not in ("auto", True, False):
        raise InputError(
            f"one_to_one={options.one_to_one!r} came; 'auto', True or False is needed; "
            "leave it out to have it found"
        )
    positive = {
        "neighbors": options.neighbors,
        "temperature": options.temperature,
        "reach": 1.0 if options.reach is None else options.reach,
    }
    for name, value in positive.items():
        if not 0 < value < float("inf"):
            raise InputError(
                f"refinement: {name} is {value}; a positive number is needed; "
                "leave it out for the default"
            )
    if options.dustbin is not None and not -1 <= options.dustbin <= 1:
        raise InputError(
            f"refinement: dustbin is {options.dustbin}; a cosine from -1 to 1 is needed; "
            "leave it out to match every point"
        )
