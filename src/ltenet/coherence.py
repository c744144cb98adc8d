"""Refine a map without labels: a real deformation is smooth, independent nearest features are not.

The source is bent onto the target step by step. Each step asks where the points should go, by
features and by how far the target is from where the source has come so far,

    score_ij = (cos(f_i, g_j) - best_ij) / temperature - |T(x_i) - y_j|^2 / (2 sigma^2),

with the largest cosine best_ij that either point has with any other. A soft plan comes from the
scores (see `transport`), and the source is bent towards its mean places (see `deformation`). Sigma
falls from step to step: features decide first, positions last. The first steps work on a
farthest-point sample of both shapes, which also evens out how densely each was sampled; the last
ones on all points, with the nearest targets of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.deformation import DeformationGraph, fit_similarity
from ltenet.errors import InputError
from ltenet.graph import NeighborGraph
from ltenet.map_quality import Judge, MapScores
from ltenet.neighbors import BLOCK_ENTRIES, TopK, cosine_topk, knn_graph
from ltenet.transport import (
    Plan,
    balanced_plan,
    nearest_points,
    project_onto,
    shortlist_plan,
    spread_sample,
    squared_distances,
    surface_shares,
)

#: Length of a round trip by which confidence falls to a third, and neighbours it is averaged over.
_CYCLE, _CONFIDENCE_NEIGHBORS = 0.2, 10


@dataclass(frozen=True, kw_only=True)
class CoherenceConfig:
    """How a map is refined; lengths are for shapes of root-mean-square radius 0.5.

    Attributes
    ----------
    temperature
        What cosine similarities are divided by; use that of training.
    start_sigma, end_sigma
        Positional bandwidth of the first and of the last step.
    coarse_steps, fine_steps
        Steps on the samples, and then on all points.
    coarse_points
        Most points of each shape in the coarse steps.
    shortlist
        Nearest target points among which the fine steps choose.
    balance
        From 0, each source point decides alone, to below 1, where every piece of the target
        surface must get its share. In between shapes may overlap in part.
    sweeps
        Times per step that the shares are corrected; the corrections carry over to the next step.
    outlier
        A point is left out where all its scores are below minus this: wherever it could go, it
        and the target point would give up too much likeness, or it would have to go too far.
    nodes
        Control nodes of the deformation.
    stiffness, rigidity
        How firmly the deformation bends, in units of sigma squared, and how firmly it keeps
        lengths; see `deformation`.
    rounds
        Times per step that rotations and positions take turns.
    """

    temperature: float = 0.05
    start_sigma: float = 0.15
    end_sigma: float = 0.02
    coarse_steps: int = 12
    fine_steps: int = 4
    coarse_points: int = 384
    shortlist: int = 16
    balance: float = 0.9
    sweeps: int = 4
    outlier: float = 4.0
    nodes: int = 100
    stiffness: float = 100.0
    rigidity: float = 0.1
    rounds: int = 3

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            may_be_zero = item.name in ("fine_steps", "balance", "rigidity", "sweeps")
            fine = math.isfinite(value) and (value > 0 or (may_be_zero and value == 0))
            if not fine or (item.name == "balance" and value >= 1):
                raise InputError(
                    f"coherent refinement: {item.name} is {value}; a positive number is needed, "
                    "and 0 <= balance < 1; leave it out for the default"
                )
        if self.end_sigma > self.start_sigma:
            raise InputError(
                f"coherent refinement: sigma goes from {self.start_sigma} to {self.end_sigma}; "
                "it must not rise; exchange the two"
            )


class CoherentMap(NamedTuple):
    """Where each source point belongs on the target.

    Attributes
    ----------
    indices
        (N,) int64 target point.
    positions
        (N, 3) place on the target, not bound to its points.
    confidence
        (N,) from 0, nothing on the target fits, to 1.
    deformed
        (N, 3) the source bent onto the target.
    scores
        Of this map.
    input_scores
        Of the map by nearest features that it started from.
    accepted
        Whether the refined map scored at least as well as that. Where it did not, `indices` and
        `positions` are those of the nearest features.
    """

    indices: Tensor
    positions: Tensor
    confidence: Tensor
    deformed: Tensor
    scores: MapScores
    input_scores: MapScores
    accepted: bool


@torch.no_grad()
def refine_coherently(
    source_points: Tensor,
    target_points: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    config: CoherenceConfig | None = None,
    *,
    graph: csr_array | None = None,
) -> CoherentMap:
    """Refine the map by nearest features into that of a smooth deformation.

    Parameters
    ----------
    source_points, target_points
        (N, 3) and (M, 3), each normalised to root-mean-square radius 0.5.
    source_features, target_features
        (N, D) and (M, D) embeddings, of any length.
    config
        See `CoherenceConfig`.
    graph
        (N, N) which source points are neighbours on the surface; by default the nearest in space.

    Returns
    -------
    CoherentMap
        Its scores tell how far to trust it. Never worse than the input by `MapScores.energy`.
    """
    config = config or CoherenceConfig()
    points, features = (source_points, target_points), (source_features, target_features)
    solver = Solver(points, features, config, graph=graph)
    nearest = solver.source_best.indices[:, 0]  # (N,)
    input_scores = solver.judge.scores(nearest)
    deformed = solver.solve(config.stiffness)  # (N, 3)
    indices, confidence = solver.assign(deformed)
    positions = project_onto(solver.target, deformed)  # (N, 3)
    scores = solver.judge.scores(indices)
    accepted = scores.energy <= input_scores.energy
    if not accepted:
        indices, positions, scores = nearest, solver.target[nearest], input_scores
    return CoherentMap(indices, positions, confidence, deformed, scores, input_scores, accepted)


class Solver:
    """One pair of shapes on its way; what does not depend on the stiffness is made once.

    Parameters
    ----------
    points, features
        (N, 3) and (M, 3), (N, D) and (M, D) of source and target.
    config, graph
        As for `refine_coherently`.
    """

    def __init__(
        self,
        points: tuple[Tensor, Tensor],
        features: tuple[Tensor, Tensor],
        config: CoherenceConfig,
        *,
        graph: csr_array | None = None,
    ) -> None:
        check_embedded(*points, *features)
        self.source, self.target = source, target = [p.detach() for p in points]  # (N, 3), (M, 3)
        self.config = config
        self.source_features, self.target_features = (  # (N, D), (M, D)
            F.normalize(feature.to(source.dtype), dim=1) for feature in features
        )
        self.cosines: Tensor | None = None  # (N, M) of small shapes
        if len(source) * len(target) <= BLOCK_ENTRIES:
            self.cosines = self.source_features @ self.target_features.T
            self.source_best, self.target_best = (  # (N, 1), (M, 1)
                TopK(best.indices, best.values)
                for best in (self.cosines.max(dim=1, keepdim=True), self.cosines.T.max(1, True))
            )
        else:
            self.source_best = cosine_topk(self.source_features, self.target_features, 1)  # (N, 1)
            self.target_best = cosine_topk(self.target_features, self.source_features, 1)  # (M, 1)
        self.source_area, self.target_area = surface_shares(source), surface_shares(target)
        self.floor = torch.full_like(source[:, 0], -config.outlier)  # (N,)
        self.graph = DeformationGraph(source, config.nodes, rigidity=config.rigidity, graph=graph)
        self.rows = spread_sample(source, config.coarse_points)  # (n,)
        self.columns = spread_sample(target, config.coarse_points)  # (m,)
        self.similarity = self._similarity(self.rows, self.columns)  # (n, m)
        self.coarse_areas = (  # (n,), (m,)
            surface_shares(source[self.rows]),
            surface_shares(target[self.columns]),
        )

    @cached_property
    def judge(self) -> Judge:
        """Scores the maps that come of it."""
        features = self.source_features, self.target_features
        return Judge(self.source, self.target, features=features)

    def solve(self, stiffness: float) -> Tensor:
        """Bend the source (N, 3) onto the target."""
        config = self.config
        steps = config.coarse_steps + config.fine_steps
        fall = (config.end_sigma / config.start_sigma) ** (1 / max(1, steps))
        sigmas = [config.start_sigma * fall**step for step in range(steps)]
        rows, areas = self.rows, self.coarse_areas  # (n,), ((n,), (m,))
        target, floor = self.target[self.columns], self.floor[rows]  # (m, 3), (n,)
        factors = torch.ones_like(areas[1])  # (m,)
        deformed = self.source  # (N, 3)
        for step, sigma in enumerate(sigmas[: config.coarse_steps]):
            scores = self.similarity.clone()  # (n, m)
            if step > 0:
                squares = squared_distances(deformed[rows], target)  # (n, m)
                scores.sub_(squares, alpha=0.5 / sigma**2)
            plan = balanced_plan(
                scores,
                floor,
                target,
                areas=areas,
                factors=factors,
                balance=config.balance,
                sweeps=config.sweeps,
            )
            if step == 0:  # limbs start from where the whole shape turned to
                weights = areas[0] * _trust(plan, sigma)  # (n,)
                self.graph.turn(fit_similarity(self.source[rows], plan.places, weights))
            deformed = self._bend(plan, areas[0], sigma, stiffness, rows)
        for sigma in sigmas[config.coarse_steps :]:
            plan, _ = self._nearest_plan(deformed, sigma)
            deformed = self._bend(plan, self.source_area, sigma, stiffness, None)
        return deformed

    def _bend(
        self, plan: Plan, area: Tensor, sigma: float, stiffness: float, rows: Tensor | None
    ) -> Tensor:
        """Fit the deformation to a plan of the points at `rows`; return all points (N, 3)."""
        return self.graph.fit(
            plan.places,
            area * _trust(plan, sigma),
            rows=rows,
            stiffness=stiffness * sigma**2,
            rounds=self.config.rounds,
        )

    def assign(self, deformed: Tensor) -> tuple[Tensor, Tensor]:
        """Target points (N,) of a source bent to (N, 3), and confidence (N,)."""
        sigma = self.config.end_sigma
        plan, indices = self._nearest_plan(deformed, sigma)
        misfit = (deformed - plan.places).norm(dim=1) / (2 * sigma)  # (N,)
        # There by the deformation, back by features.
        back = self.source[self.target_best.indices[indices, 0]]  # (N, 3)
        cycle = (self.source - back).norm(dim=1) / _CYCLE  # (N,)
        confidence = (plan.mass * torch.exp(-misfit.square())).sqrt() * torch.exp(-cycle)  # (N,)
        # Neighbours share their fate: their mean tells good from bad points better than one value.
        neighbors = knn_graph(self.source, min(_CONFIDENCE_NEIGHBORS, len(self.source)))  # (N, k)
        return indices, confidence[neighbors].mean(dim=1)

    def _similarity(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Cosines (n, m) over the temperature, less the best that either point could have."""
        cosines = self.source_features[rows] @ self.target_features[columns].T  # (n, m)
        bests = self.source_best.scores[rows], self.target_best.scores[columns, 0]  # (n, 1), (m,)
        return (cosines - torch.maximum(*bests)) / self.config.temperature

    def _nearest_plan(self, deformed: Tensor, sigma: float) -> tuple[Plan, Tensor]:
        """Plan of all points over their nearest targets, and the best of these (N,)."""
        k = min(self.config.shortlist, len(self.target))
        indices, squares = nearest_points(deformed, self.target, k)  # (N, k), (N, k)
        if self.cosines is None:
            graph = NeighborGraph(indices, len(self.target))
            scores = graph.dot(self.source_features, self.target_features)  # (N, k)
        else:
            scores = self.cosines.gather(1, indices)  # (N, k)
        bests = self.source_best.scores, self.target_best.scores[indices, 0]  # (N, 1), (N, k)
        scores = (scores - torch.maximum(*bests)) / self.config.temperature
        scores -= squares / (2 * sigma**2)
        best = indices.gather(1, scores.argmax(dim=1, keepdim=True))[:, 0]  # (N,)
        area = self.target_area  # (M,)
        return shortlist_plan(scores, self.floor, self.target, indices, area=area), best


def _trust(plan: Plan, sigma: float) -> Tensor:
    """How far to follow each row of a plan (n,): less if left out, less if undecided."""
    trust: Tensor = plan.mass * (sigma**2 / (sigma**2 + plan.variance))  # (n,)
    return trust


def check_embedded(
    source: Tensor, target: Tensor, source_features: Tensor, target_features: Tensor
) -> None:
    """Raise where points and features of a pair do not fit each other."""
    for name, points, features in (
        ("source", source, source_features),
        ("target", target, target_features),
    ):
        fits = points.ndim == 2 and points.shape[1] == 3 and len(points) > 0
        if not fits or features.ndim != 2 or len(features) != len(points):
            raise InputError(
                f"{name}: points {tuple(points.shape)} and features {tuple(features.shape)} came; "
                "(N, 3) and (N, D) with at least one point are needed; "
                "refine the pairs of a batch one after another"
            )
        if features.shape[1] != source_features.shape[1]:
            raise InputError(
                f"features with {source_features.shape[1]} and {features.shape[1]} channels came; "
                "the same dimension is needed; embed both shapes with one model"
            )
        if not (points.isfinite().all() and features.isfinite().all()):
            raise InputError(
                f"{name}: points or features that are not finite came; finite numbers are needed; "
                "remove the damaged points before embedding"
            )
