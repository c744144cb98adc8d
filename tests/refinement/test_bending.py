"""Bending one shape onto another: known deformations, partial shapes, degenerate input."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.refinement.bending import BentMap, refine_by_bending
from ltenet.refinement.deformation import DeformationGraph, align
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.options import BendingConfig
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import nearest_points, relative_areas, spread_sample
from ltenet.refinement.transport import balanced_plan, shortlist_plan
from tests.creature import bent, body, embedded, pair_of


class Known(NamedTuple):
    source: Tensor  # (N, 3)
    target: Tensor  # (M, 3)
    truth: Tensor  # (N, 3) places on the target
    source_features: Tensor  # (N, D)
    target_features: Tensor  # (M, D)

    def pair(self) -> Pair:
        return pair_of(self.source, self.target, self.source_features, self.target_features)

    def refined(self, config: BendingConfig | None = None) -> BentMap:
        return refine_by_bending(self.pair(), config)

    def nearest_error(self) -> float:
        first = torch.nn.functional.normalize(self.source_features, dim=1)
        second = torch.nn.functional.normalize(self.target_features, dim=1)
        chosen = self.target[(first @ second.T).argmax(dim=1)]
        return float((chosen - self.truth).norm(dim=1).mean())

    def error(self, positions: Tensor) -> float:
        return float((positions - self.truth).norm(dim=1).mean())


def known(count: int = 500, target_count: int = 500, *, noise: float = 0.5) -> Known:
    """Two independent samples of the creature, the second one bent."""
    source, rest = body(count, 0), body(target_count, 1)
    return Known(
        source,
        bent(rest),
        bent(source),
        embedded(source, noise=noise, seed=2),
        embedded(rest, noise=noise, seed=3),
    )


# --- What refinement promises ------------------------------------------------------------------


def test_a_smooth_deformation_is_recovered_from_noisy_features() -> None:
    shapes = known()
    result = shapes.refined()
    assert shapes.nearest_error() > 0.08
    assert shapes.error(result.positions) < 0.03
    assert shapes.error(result.deformed) < 0.03
    # The best that any map onto the target's points can do is about 0.028.
    assert shapes.error(shapes.target[result.indices]) < 0.045
    assert result.accepted
    assert result.scores.energy < result.input_scores.energy
    assert result.confidence.mean() > 0.5


def test_identity_stays_identity() -> None:
    points = body(300, 0)
    features = embedded(points, noise=0.0, seed=0)
    result = refine_by_bending(pair_of(points, points, features, features))
    assert torch.equal(result.indices, torch.arange(300))
    assert (result.deformed - points).norm(dim=1).max() < 0.02
    assert (result.positions - points).norm(dim=1).max() < 0.04


def test_a_perfect_map_is_not_made_worse() -> None:
    source = body(400, 0)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(4))
    features = torch.randn(400, 64, generator=torch.Generator().manual_seed(5))
    result = refine_by_bending(pair_of(source, bent(source)[order], features, features[order]))
    assert torch.equal(order[result.indices], torch.arange(400))
    assert result.scores.energy <= result.input_scores.energy


def test_a_map_that_refinement_spoils_is_handed_back() -> None:
    """One rigid blob cannot follow, so the input scores better and is returned."""
    source = body(300, 0)
    features = torch.randn(300, 64, generator=torch.Generator().manual_seed(5))
    config = BendingConfig(stiffness=1e6, rigidity=10.0, shortlist=1)
    result = refine_by_bending(pair_of(source, bent(source), features, features), config)
    assert not result.accepted
    assert torch.equal(result.indices, torch.arange(300))
    assert torch.equal(result.positions, bent(source))
    assert result.scores == result.input_scores


@pytest.mark.parametrize(("count", "target_count"), [(300, 700), (700, 300)])
def test_unequal_sizes(count: int, target_count: int) -> None:
    shapes = known(count, target_count)
    result = shapes.refined()
    assert result.indices.shape == (count,)
    assert result.indices.max() < target_count
    assert shapes.error(result.positions) < 0.04


def test_points_without_a_partner_get_low_confidence() -> None:
    shapes = known(600, 900)
    kept = bent(body(900, 1))[:, 1] < bent(body(900, 1))[:, 1].quantile(0.67)
    cut = shapes.target[kept][:, 1].max()
    partial = shapes._replace(
        target=shapes.target[kept], target_features=shapes.target_features[kept]
    )
    result = partial.refined()
    there = shapes.truth[:, 1] < cut - 0.05
    gone = shapes.truth[:, 1] > cut + 0.1
    assert gone.sum() > 50
    assert result.confidence[gone].median() < 0.4 * result.confidence[there].median()
    assert (result.positions - shapes.truth)[there].norm(dim=1).mean() < 0.04


def test_large_shapes_are_refined_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = known(300, 350)
    whole = shapes.refined()
    monkeypatch.setattr("ltenet.refinement.cosines.KEPT_ENTRIES", 1000)
    blocked = shapes.refined()
    torch.testing.assert_close(blocked.deformed, whole.deformed, atol=1e-3, rtol=0)
    assert (blocked.indices == whole.indices).float().mean() > 0.99


def test_the_order_of_the_points_does_not_matter() -> None:
    shapes = known(400, 450)
    result = shapes.refined()
    generator = torch.Generator().manual_seed(6)
    rows, columns = (torch.randperm(n, generator=generator) for n in (400, 450))
    mixed = Known(
        shapes.source[rows],
        shapes.target[columns],
        shapes.truth[rows],
        shapes.source_features[rows],
        shapes.target_features[columns],
    ).refined()
    torch.testing.assert_close(mixed.deformed, result.deformed[rows], atol=2e-3, rtol=0)
    same = (columns[mixed.indices] == result.indices[rows]).float().mean()
    assert same > 0.98


def test_the_same_input_gives_the_same_bytes() -> None:
    shapes = known(300, 300)
    first, second = shapes.refined(), shapes.refined()
    assert torch.equal(first.deformed, second.deformed)
    assert torch.equal(first.indices, second.indices)
    assert first.scores == second.scores


def test_double_precision_agrees_with_single() -> None:
    shapes = known(300, 300)
    double = Known(*(value.double() for value in shapes)).refined()
    assert double.deformed.dtype == double.positions.dtype == torch.float64
    torch.testing.assert_close(
        double.deformed.float(), shapes.refined().deformed, atol=2e-3, rtol=0
    )


def test_a_turned_target_is_followed() -> None:
    """Large turns are taken by the whole shape, not by the bending."""
    shapes = known()
    turn = torch.tensor([[-1.0, 0, 0], [0, 1, 0], [0, 0, -1]])  # half a turn about y
    turned = shapes._replace(target=shapes.target @ turn.T, truth=shapes.truth @ turn.T)
    assert turned.error(turned.refined().positions) < 0.03


def test_gradients_are_not_needed() -> None:
    shapes = known(100, 100)
    result = Known(*(value.requires_grad_() for value in shapes)).refined()
    assert not result.positions.requires_grad


# --- Degenerate input ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 5, 12])
def test_tiny_shapes(count: int) -> None:
    points = body(count, 0)
    features = embedded(points, noise=0.0, seed=0)
    result = refine_by_bending(pair_of(points, points, features, features))
    assert torch.equal(result.indices, torch.arange(count))
    assert all(value.isfinite().all() for value in result[:4])


def test_duplicated_points() -> None:
    shapes = known(200, 200)
    doubled = Known(*(torch.cat([value, value]) for value in shapes)).refined()
    assert all(value.isfinite().all() for value in doubled[:4])
    assert shapes.error(doubled.positions[:200]) < 0.5 * shapes.nearest_error()


@pytest.mark.parametrize("shape", ["point", "line", "plane", "two parts"])
def test_degenerate_shapes(shape: str) -> None:
    points = body(150, 0)
    features = embedded(points, noise=0.1, seed=0)
    if shape == "point":
        points = torch.zeros_like(points)
    elif shape == "line":
        points = points * torch.tensor([1.0, 0, 0])
    elif shape == "plane":
        points = points * torch.tensor([1.0, 1, 0])
    else:
        points = points + 5.0 * (torch.arange(150) % 2)[:, None]
    result = refine_by_bending(pair_of(points, points, features, features))
    assert all(value.isfinite().all() for value in result[:4])
    assert all(math.isfinite(value) for value in result.scores)


# --- Scores --------------------------------------------------------------------------------------


def symmetric_body(count: int) -> Tensor:
    half = body(count // 2, 0)
    return torch.cat([half, half * torch.tensor([-1.0, 1, 1])])


def test_flipped_maps_score_worse_than_the_true_one() -> None:
    source = symmetric_body(600)
    target = source + 0.05 * source.roll(1, dims=1).square()
    half = torch.arange(300)
    mirror = torch.cat([half + 300, half])
    pair = pair_of(source, target, torch.ones(600, 2), torch.ones(600, 2))
    true, flipped = map_scores(pair, torch.arange(600)), map_scores(pair, mirror)
    # To neighbours' distances a flip looks as good as the truth; handedness tells.
    assert flipped.stretch < true.stretch + 0.1
    assert true.mirrored < 0.1
    assert flipped.mirrored > 0.9
    assert flipped.energy > true.energy + 0.5


def test_scores_of_known_maps() -> None:
    points = body(500, 0)
    features = embedded(points, noise=0.0, seed=0)
    pair = pair_of(points, points, features, features)
    true = map_scores(pair, torch.arange(500))
    assert true == pytest.approx((0.0, 0.0, 0.0, 1.0, 0.0), abs=1e-5)
    assert map_scores(pair, points) == pytest.approx(true, abs=1e-5)
    assert map_scores(pair, torch.zeros(500, dtype=torch.int64)).missed > 0.8
    torn = torch.randperm(500, generator=torch.Generator().manual_seed(0))
    assert map_scores(pair, torn).stretch > 1.0


# --- Parts ---------------------------------------------------------------------------------------


def test_a_rigid_motion_costs_no_bending() -> None:
    """However stiff the graph is, it follows a rotation of the whole shape."""
    points = body(300, 0).double()
    turn = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]).double()
    graph = DeformationGraph(points, 40, rigidity=1.0)
    places, weights = points @ turn.T, torch.ones(300).double()
    frames = graph.frames(align(points, places, weights).rotation)
    fitted = graph.fit(places, weights, frames=frames, stiffness=100.0, rounds=2)
    torch.testing.assert_close(graph.apply(fitted), places, atol=1e-4, rtol=0)


def test_a_fit_depends_on_its_arguments_alone() -> None:
    points = body(200, 0)
    graph = DeformationGraph(points, 30, rigidity=1.0)
    places, weights = bent(points), torch.ones(200)
    options = {"frames": graph.frames(), "stiffness": 0.1, "rounds": 2}
    first = graph.fit(places, weights, **options)  # type: ignore[arg-type]
    graph.fit(-places, weights, **options)  # type: ignore[arg-type]
    again = graph.fit(places, weights, **options)  # type: ignore[arg-type]
    assert torch.equal(first.transforms, again.transforms)
    assert torch.equal(first.frames, again.frames)
    # Starting from its own result continues: two rounds and two more are four.
    options["frames"] = first.frames
    further = graph.fit(places, weights, **options)  # type: ignore[arg-type]
    options.update(frames=graph.frames(), rounds=4)
    four = graph.fit(places, weights, **options)  # type: ignore[arg-type]
    assert torch.equal(further.transforms, four.transforms)


def test_a_part_of_a_graph_moves_like_the_whole() -> None:
    points = body(200, 0)
    graph = DeformationGraph(points, 30, rigidity=1.0)
    rows = torch.arange(0, 200, 3)
    part = graph.at(rows)
    weights = torch.ones(len(rows))
    fitted = part.fit(bent(points)[rows], weights, frames=part.frames(), stiffness=0.01, rounds=3)
    torch.testing.assert_close(part.apply(fitted), graph.apply(fitted)[rows])
    assert (graph.apply(fitted) - bent(points)).norm(dim=1).mean() < 0.05


def test_parts_that_touch_move_apart() -> None:
    """A point follows nodes along the surface: two sheets a hair apart are independent."""
    grid = torch.stack(torch.meshgrid(*[torch.linspace(0, 1, 20)] * 2, indexing="ij"), dim=-1)
    sheet = torch.cat([grid.reshape(-1, 2), torch.zeros(400, 1)], dim=1)
    points = torch.cat([sheet, sheet + torch.tensor([0.0, 0, 0.2])])
    places = points.clone()
    places[400:, 0] += 0.5
    graph = DeformationGraph(points, 80, rigidity=1.0)
    weights, frames = torch.ones(800), graph.frames()
    fitted = graph.apply(graph.fit(places, weights, frames=frames, stiffness=1.0, rounds=3))
    torch.testing.assert_close(fitted, places, atol=0.02, rtol=0)


def test_balance_gives_every_column_its_share() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.rand(40, 30, generator=generator)
    scores[:, 0] += 4.0  # everybody's favourite
    areas, target = (torch.ones(40), torch.ones(30)), torch.eye(30, 3)
    target[0] = torch.tensor([9.0, 9, 9])
    floor, factors = torch.full((40,), -50.0), torch.ones(30)
    shared = {"areas": areas, "factors": factors, "sweeps": 200}
    free = balanced_plan(scores.clone(), floor, target, balance=0.0, **shared)  # type: ignore[arg-type]
    even = balanced_plan(scores.clone(), floor, target, balance=0.99, **shared)  # type: ignore[arg-type]
    # The load of the favourite is what pulls the mean places towards it.
    assert free.places[:, 2].mean() > 4.0
    assert even.places[:, 2].mean() < 0.6
    torch.testing.assert_close(even.mass, torch.ones(40))


def test_the_floor_leaves_points_out() -> None:
    scores, target = torch.tensor([[0.0, -1.0], [0.0, -1.0]]), torch.eye(2, 3)
    indices, floor = torch.tensor([[0, 1], [1, 0]]), torch.tensor([-50.0, 50.0])
    plan = shortlist_plan(scores, floor, target, indices, area=torch.ones(2))
    torch.testing.assert_close(plan.mass, torch.tensor([1.0, 0.0]))
    share = 1 / (1 + math.exp(-1.0))
    torch.testing.assert_close(plan.places[0], torch.tensor([share, 1 - share, 0.0]))
    variance = 1 - share**2 - (1 - share) ** 2
    assert float(plan.variance[0]) == pytest.approx(variance, abs=1e-5)


def test_dense_places_stand_for_less_surface() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = torch.rand(1000, 3, generator=generator) * torch.tensor([1.0, 1, 0])
    crowd = torch.rand(1000, 3, generator=generator) * torch.tensor([0.5, 0.5, 0])
    shares = relative_areas(torch.cat([flat, crowd + torch.tensor([2.0, 0, 0])]))
    ratio = float(shares[:1000].mean() / shares[1000:].mean())
    assert ratio == pytest.approx(4.0, rel=0.15)


def test_projection_onto_a_plane() -> None:
    generator = torch.Generator().manual_seed(0)
    surface = torch.rand(200, 3, generator=generator) * torch.tensor([1.0, 1, 0])
    queries = torch.tensor([[0.5, 0.5, 0.1], [0.2, 0.7, -0.2]])
    expected = queries * torch.tensor([1.0, 1, 0])
    shape = EmbeddedShape(surface, surface)
    torch.testing.assert_close(shape.project(queries), expected, atol=1e-5, rtol=0)


def test_nearest_points_and_samples() -> None:
    points = body(100, 0)
    near = nearest_points(points, points, 1)
    assert torch.equal(near.indices[:, 0], torch.arange(100))
    assert near.squares.max() == 0
    assert len(spread_sample(points, 500).unique()) == 100


# --- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.0},
        {"balance": 1.0},
        {"balance": -0.1},
        {"nodes": 0},
        {"coarse_steps": 0},
        {"stiffness": math.inf},
        {"start_sigma": 0.01},
    ],
)
def test_impossible_settings_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InputError, match="coherent refinement"):
        BendingConfig(**change)  # type: ignore[arg-type]


def test_wrong_input_is_refused() -> None:
    points, features = body(20, 0), torch.ones(20, 4)
    with pytest.raises(InputError, match=r"source: got points \(1, 20, 3\)"):
        pair_of(points[None], points, features, features)
    with pytest.raises(InputError, match=r"target: .* features \(19, 4\)"):
        pair_of(points, points, features, features[1:])
    with pytest.raises(InputError, match="4 and 5 channels"):
        pair_of(points, points, features, torch.ones(20, 5))
    with pytest.raises(InputError, match="one type and one device"):
        pair_of(points, points.double(), features, features)
    with pytest.raises(InputError, match="got NaN"):
        pair_of(points * math.nan, points, features, features)
    with pytest.raises(InputError, match="one target index"):
        map_scores(pair_of(points, points, features, features), torch.arange(19))
