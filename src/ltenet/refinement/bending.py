"""Bend one shape onto another, guided by features: a real deformation is smooth.

Independent nearest features are not smooth, so the source is bent onto the target step by step.
Each step asks where the points should go, by features and by the distance from the shape bent so
far,

    score_ij = (cos(f_i, g_j) - best_ij) / temperature - |T(x_i) - y_j|^2 / (2 sigma^2),

where best_ij is the largest cosine that either point has with any other. The scores give a soft
plan (see `transport`), and the source is bent towards its mean positions (see `deformation`). Sigma
falls from step to step: features decide first, positions last. The first steps work on
farthest-point samples of both shapes, which also evens out their sampling densities; the last ones
on all points, each with its nearest targets. Partners that are known beforehand are firm anchors of
the deformation; three of them that are not on a line also give its start.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.refinement.deformation import Deformation, DeformationGraph, align
from ltenet.refinement.judge import MapScores, map_scores
from ltenet.refinement.options import BendingConfig
from ltenet.refinement.pair import Pair, spans_plane
from ltenet.refinement.point_sets import relative_areas, squared_distances
from ltenet.refinement.transport import SoftPlan, balanced_plan, shortlist_plan

#: Weight of all anchors together, as a share of that of all points, and of each one at least.
_ANCHORED, _LEAST_ANCHORED = 0.1, 10.0


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
        rows = _with_anchors(pair, pair.source.spread(config.coarse_points))  # (n,)
        self._coarse_rows = rows
        columns = pair.target.spread(config.coarse_points)  # (m,)
        self._coarse_graph, self._coarse_target = self.graph.at(rows), pair.target.points[columns]
        self._coarse_areas = (  # (n,), (m,)
            relative_areas(self._coarse_graph.points),
            relative_areas(self._coarse_target),
        )
        self._areas = pair.source.areas, pair.target.areas  # (N,), (M,)
        if pair.overlap is not None:  # surface without a partner neither pulls nor is reached
            here, there = pair.overlap  # (N,), (M,)
            self._areas = self._areas[0] * here, self._areas[1] * there
            self._coarse_areas = (
                self._coarse_areas[0] * here[rows],
                self._coarse_areas[1] * there[columns],
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
            weights = self._areas[0] * _trust(plan, sigma)  # (N,)
            deformation = self.graph.fit(
                *self._anchored(plan.places, weights),
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
        deformation = self._anchored_start(sigmas[0], stiffness)
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
            places, weights = self._anchored(
                plan.places, areas[0] * _trust(plan, sigma), self._coarse_rows
            )  # (n, 3), (n,)
            if deformation is None:  # limbs start from the rotation of the whole shape
                whole = align(graph.points, places, weights)
                frames = graph.frames(whole.rotation)  # (r, 3, 3)
            else:
                frames = deformation.frames
            deformation = graph.fit(
                places,
                weights,
                frames=frames,
                stiffness=stiffness * sigma**2,
                rounds=self.config.rounds,
            )
        assert deformation is not None  # there is at least one coarse step
        return deformation

    def _anchored_start(self, sigma: float, stiffness: float) -> Deformation | None:
        """Bend the sample by the anchors alone, if they fix how the whole shape lies."""
        anchors, graph = self.pair.anchors, self._coarse_graph
        if anchors is None:
            return None
        here = self.pair.source.points[anchors.rows]  # (K, 3)
        there = self.pair.target.points[anchors.columns]  # (K, 3)
        if not (spans_plane(here.cpu().numpy()) and spans_plane(there.cpu().numpy())):
            return None
        nothing = torch.zeros_like(graph.points[:, 0])  # (n,)
        places, weights = self._anchored(graph.points, nothing, self._coarse_rows)
        return graph.fit(
            places,
            weights,
            frames=graph.frames(align(here, there, torch.ones_like(here[:, 0])).rotation),
            stiffness=stiffness * sigma**2,
            rounds=self.config.rounds,
        )

    def _anchored(
        self, places: Tensor, weights: Tensor, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Send the anchors where they belong, with firm weights.

        Parameters
        ----------
        places, weights
            (n, 3) and (n,) of the points at `rows`, or of all.
        """
        anchors = self.pair.anchors
        if anchors is None:
            return places, weights
        at = anchors.rows  # (K,)
        if rows is not None:
            at = torch.nonzero(rows[None] == anchors.rows[:, None])[
                :, 1
            ]  # (K,), each is there once
        places, weights = places.clone(), weights.clone()
        places[at] = self.pair.target.points[anchors.columns]
        weights[at] = max(_LEAST_ANCHORED, _ANCHORED * len(places) / len(at))
        return places, weights

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
        target, area = pair.target.points, self._areas[1]  # (M, 3), (M,)
        return shortlist_plan(scores, floor, target, indices, area=area), best


def _with_anchors(pair: Pair, rows: Tensor) -> Tensor:
    """Add the anchored points to (n,) rows of the source."""
    if pair.anchors is None:
        return rows
    joined: Tensor = torch.unique(torch.cat([rows, pair.anchors.rows]))  # (n,)
    return joined


def _trust(plan: SoftPlan, sigma: float) -> Tensor:
    """(n,) weight of each row of a plan: less if left out, less if undecided."""
    trust: Tensor = plan.mass * (sigma**2 / (sigma**2 + plan.variance))  # (n,)
    return trust
