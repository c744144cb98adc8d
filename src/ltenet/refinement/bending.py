"""Bend one shape onto another, guided by features: a real deformation is smooth.

Independent nearest features are not smooth, so the source is bent onto the target step by step.
Each step asks where the points should go, by features and by the distance from the shape bent so
far,

    score_ij = (cos(f_i, g_j) - best_ij) / temperature - |T(x_i) - y_j|^2 / (2 sigma^2),

where best_ij is the largest cosine that either point has with any other. The scores give a soft
plan (see `transport`), and the source is bent towards its mean positions (see `deformation`). Sigma
falls from step to step: features decide first, positions last. The first steps work on
farthest-point samples of both shapes, which also evens out their sampling densities; the last ones
on all points, each with its nearest targets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.refinement.deformation import Deformation, DeformationGraph, align
from ltenet.refinement.judge import MapScores, map_scores
from ltenet.refinement.options import BendingConfig
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import relative_areas, squared_distances
from ltenet.refinement.transport import SoftPlan, balanced_plan, shortlist_plan


class Bent(NamedTuple):
    """A shape bent onto another.

    Attributes
    ----------
    points
        (N, 3) the bent shape.
    frames
        (r, 3, 3) rotations of its control nodes.
    """

    points: Tensor
    frames: Tensor


class BentMap(NamedTuple):
    """Where each source point belongs on the target.

    Attributes
    ----------
    indices
        (N,) int64 target point.
    positions
        (N, 3) position on the target, not restricted to its points.
    confidence
        (N,) from 0, nothing on the target fits, to 1.
    deformed
        (N, 3) the source bent onto the target.
    scores
        Scores of this map.
    input_scores
        Scores of the nearest features that it started from.
    accepted
        Whether the refined map scores at least as well as those. If not, `indices` and `positions`
        are those of the nearest features.
    """

    indices: Tensor
    positions: Tensor
    confidence: Tensor
    deformed: Tensor
    scores: MapScores
    input_scores: MapScores
    accepted: bool


@torch.no_grad()
def refine_by_bending(pair: Pair, config: BendingConfig | None = None) -> BentMap:
    """Refine the map by nearest features into that of one smooth deformation of the source.

    The result is never worse than the input by `MapScores.energy`.
    """
    config = config or BendingConfig()
    bender = Bender(pair, config)
    nearest = pair.best.indices  # (N,)
    input_scores = map_scores(pair, nearest)
    deformed = bender.bend(config.stiffness).points  # (N, 3)
    indices, confidence = bender.assign(deformed)
    positions, scores = pair.target.project(deformed), map_scores(pair, indices)
    accepted = scores.energy <= input_scores.energy
    if not accepted:
        indices, positions, scores = nearest, pair.target.points[nearest], input_scores
    return BentMap(indices, positions, confidence, deformed, scores, input_scores, accepted)


class Bender:
    """Bends the source of a pair onto its target; what does not depend on the stiffness stays.

    Parameters
    ----------
    pair
        Both shapes.
    config
        Everything but the stiffness.
    """

    def __init__(self, pair: Pair, config: BendingConfig) -> None:
        self.pair, self.config = pair, config
        self.graph = DeformationGraph(
            pair.source.points, config.nodes, rigidity=config.rigidity, graph=pair.source.graph
        )
        rows = pair.source.spread(config.coarse_points)  # (n,)
        columns = pair.target.spread(config.coarse_points)  # (m,)
        self._coarse_graph, self._coarse_target = self.graph.at(rows), pair.target.points[columns]
        self._coarse_areas = (  # (n,), (m,)
            relative_areas(self._coarse_graph.points),
            relative_areas(self._coarse_target),
        )
        self._coarse_scores = pair.relative_block(rows, columns) / config.temperature  # (n, m)

    def bend(self, stiffness: float) -> Bent:
        """Bend the source, coarse to fine."""
        config = self.config
        steps = config.coarse_steps + config.fine_steps
        fall = (config.end_sigma / config.start_sigma) ** (1 / max(1, steps))
        sigmas = [config.start_sigma * fall**step for step in range(steps)]
        deformation = self._bend_sample(sigmas[: config.coarse_steps], stiffness)
        points = self.graph.apply(deformation)  # (N, 3)
        for sigma in sigmas[config.coarse_steps :]:
            plan, _ = self._shortlist_plan(points, sigma)
            deformation = self.graph.fit(
                plan.places,
                self.pair.source.areas * _trust(plan, sigma),
                frames=deformation.frames,
                stiffness=stiffness * sigma**2,
                rounds=config.rounds,
            )
            points = self.graph.apply(deformation)
        return Bent(points, deformation.frames)

    def _bend_sample(self, sigmas: list[float], stiffness: float) -> Deformation:
        """Bend a sample of the source onto a sample of the target."""
        graph, target, areas = self._coarse_graph, self._coarse_target, self._coarse_areas
        floor = torch.full_like(areas[0], -self.config.outlier)  # (n,)
        factors = torch.ones_like(areas[1])  # (m,)
        deformation: Deformation | None = None
        for sigma in sigmas:
            scores = self._coarse_scores.clone()  # (n, m)
            if deformation is not None:
                squares = squared_distances(graph.apply(deformation), target)  # (n, m)
                scores.sub_(squares, alpha=0.5 / sigma**2)
            plan = balanced_plan(
                scores,
                floor,
                target,
                areas=areas,
                factors=factors,
                balance=self.config.balance,
                sweeps=self.config.sweeps,
            )
            weights = areas[0] * _trust(plan, sigma)  # (n,)
            if deformation is None:  # limbs start from the rotation of the whole shape
                whole = align(graph.points, plan.places, weights)
                frames = graph.frames(whole.rotation)  # (r, 3, 3)
            else:
                frames = deformation.frames
            deformation = graph.fit(
                plan.places,
                weights,
                frames=frames,
                stiffness=stiffness * sigma**2,
                rounds=self.config.rounds,
            )
        assert deformation is not None  # there is at least one coarse step
        return deformation

    def assign(self, deformed: Tensor) -> tuple[Tensor, Tensor]:
        """Target points (N,) of the source bent to (N, 3), and confidence (N,)."""
        sigma = self.config.end_sigma
        plan, indices = self._shortlist_plan(deformed, sigma)
        misfit = (deformed - plan.places).norm(dim=1) / (2 * sigma)  # (N,)
        belief = (plan.mass * torch.exp(-misfit.square())).sqrt()  # (N,)
        return indices, self.pair.confidence(indices, belief)

    def _shortlist_plan(self, deformed: Tensor, sigma: float) -> tuple[SoftPlan, Tensor]:
        """Plan of all points over their nearest targets, and the best of these (N,)."""
        pair = self.pair
        indices, squares = pair.target.nearest(deformed, self.config.shortlist)  # (N, k), (N, k)
        own = torch.arange(len(indices), device=indices.device)[:, None]  # (N, 1)
        scores = pair.relative_at(own, indices) / self.config.temperature  # (N, k)
        scores -= squares / (2 * sigma**2)
        best = indices.gather(1, scores.argmax(dim=1, keepdim=True))[:, 0]  # (N,)
        floor = torch.full_like(scores[:, 0], -self.config.outlier)  # (N,)
        target, areas = pair.target.points, pair.target.areas  # (M, 3), (M,)
        return shortlist_plan(scores, floor, target, indices, area=areas), best


def _trust(plan: SoftPlan, sigma: float) -> Tensor:
    """(n,) weight of each row of a plan: less if left out, less if undecided."""
    trust: Tensor = plan.mass * (sigma**2 / (sigma**2 + plan.variance))  # (n,)
    return trust
