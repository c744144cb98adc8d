"""Methods of refinement: known deformations, independent oracles, and what all of them promise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import ot
import pytest
import torch
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, minimize
from torch import Tensor

from ltenet.errors import InputError, UsageError
from ltenet.method.neighbors import knn_graph
from ltenet.refinement.assignment import (
    assign,
    best_assignment,
    inverse,
    shortlist_assignment,
)
from ltenet.refinement.constellations import constellation_misfit, match_same_points
from ltenet.refinement.deformation import DeformationGraph
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.linear import fit_linear
from ltenet.refinement.methods import REFINEMENTS, refine_pair
from ltenet.refinement.optimal_transport import _dense_plan, _sparse_plan
from ltenet.refinement.options import (
    BendingConfig,
    Coherent,
    Method,
    Mutual,
    Nearest,
    Transport,
)
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import nearest_points
from ltenet.refinement.polishing import follow, polish, polish_both_ways, predict
from ltenet.refinement.proposal import RefinedMap
from ltenet.refinement.sinkhorn import DenseKernel, SparseKernel, sinkhorn_potentials
from ltenet.refinement.soft_partners import around, weighted_mean
from ltenet.refinement.zoomout import euclidean_topk
from tests.creature import bent, body, embedded, pair_of

PLAIN: list[Method] = ["coherent", "ot", "linear", "mutual", "none"]


class Known(NamedTuple):
    pair: Pair
    truth: Tensor  # (N, 3) places on the target

    def error(self, result: RefinedMap) -> float:
        return float((result.positions - self.truth).norm(dim=1).mean())


def apart(count: int = 400, target_count: int = 400, *, noise: float = 0.5) -> Known:
    """Two independent samples of the creature, the second one bent."""
    source, rest = body(count, 0), body(target_count, 1)
    features = embedded(source, noise=noise, seed=2), embedded(rest, noise=noise, seed=3)
    return Known(pair_of(source, bent(rest), *features), bent(source))


def shared(count: int = 400, *, noise: float = 0.5) -> tuple[Known, Tensor]:
    """The same points on both, the second shuffled, with the partner (N,) of each."""
    source = body(count, 0)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(4))
    features = embedded(source, noise=noise, seed=2), embedded(source[order], noise=noise, seed=3)
    known = Known(pair_of(source, bent(source)[order], *features), bent(source))
    return known, order.argsort()


# --- What every method promises ----------------------------------------------------------------


@pytest.mark.parametrize("method", [*PLAIN, "spectral"])
@pytest.mark.parametrize("sizes", [(250, 180), (180, 250)])
def test_every_method_keeps_its_promises(method: Method, sizes: tuple[int, int]) -> None:
    known = apart(*sizes)
    result = refine_pair(known.pair, method)
    again = refine_pair(known.pair, method)
    assert all(
        torch.equal(torch.as_tensor(a), torch.as_tensor(b))
        for a, b in zip(result, again, strict=True)
    )
    start = refine_pair(known.pair, "none")
    assert result.input_energy == start.energy
    assert result.energy <= start.energy
    if method in ("coherent", "ot", "mutual"):
        # Energy is all that is promised: a linear map learns nothing from noise that is not
        # linear, and the functions of clouds as coarse and bent as these hardly agree.
        assert known.error(result) < 1.02 * known.error(start)
    assert result.indices.dtype == torch.int64
    assert (result.indices >= 0).all()
    assert (result.indices < sizes[1]).all()
    assert ((result.confidence >= 0) & (result.confidence <= 1)).all()
    assert result.neighbors.shape == result.weights.shape == (sizes[0], 10)
    assert torch.allclose(result.weights.sum(dim=1), torch.ones(sizes[0]), atol=1e-5)
    mean = torch.einsum("nk,nkd->nd", result.weights, known.pair.target.points[result.neighbors])
    # Places on the rim of a sparse target lie outside all its points.
    assert (mean - result.positions).norm(dim=1).mean() < 0.01


def test_the_table_is_the_documented_choice() -> None:
    assert set(REFINEMENTS) == {*PLAIN, "spectral"}


@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(1, 30),
    target_count=st.integers(1, 30),
    method=st.sampled_from(PLAIN),
    seed=st.integers(0, 1000),
)
def test_small_and_meaningless_shapes_give_a_map(
    count: int, target_count: int, method: Method, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = (
        torch.randn(count, 3, generator=generator),
        torch.randn(target_count, 3, generator=generator),
    )
    features = (
        torch.randn(count, 5, generator=generator),
        torch.randn(target_count, 5, generator=generator),
    )
    result = refine_pair(pair_of(*points, *features), method)
    assert ((result.indices >= 0) & (result.indices < target_count)).all()
    assert result.positions.isfinite().all()
    assert result.energy <= result.input_energy
    assert torch.allclose(result.weights.sum(dim=1), torch.ones(count), atol=1e-5)


def test_points_that_coincide_do_no_harm() -> None:
    points = torch.zeros(20, 3)
    for method in PLAIN:
        result = refine_pair(pair_of(points, points, points + 1, points + 1), method)
        assert result.positions.isfinite().all()
        assert result.weights.isfinite().all()


def test_a_worse_map_is_not_accepted_and_the_start_comes_back() -> None:
    known, partner = shared(noise=3.0)  # features that say little
    result = refine_pair(known.pair, Transport(one_to_one=False), start=partner)
    assert not result.accepted
    assert torch.equal(result.indices, partner)
    assert known.error(result) < 1e-6


# --- none --------------------------------------------------------------------------------------


def test_none_is_the_largest_cosine() -> None:
    pair = apart().pair
    first, second = pair.source.features.numpy(), pair.target.features.numpy()
    cosines = first @ second.T / np.linalg.norm(first, axis=1)[:, None]
    cosines /= np.linalg.norm(second, axis=1)
    result = refine_pair(pair, "none")
    assert np.array_equal(result.indices.numpy(), cosines.argmax(axis=1))
    assert torch.equal(result.indices, result.neighbors[:, 0])
    best = np.sort(cosines, axis=1)[:, ::-1][:, :10] / 0.02
    expected = np.exp(best - best[:, :1])
    expected /= expected.sum(axis=1, keepdims=True)
    assert result.weights.numpy() == pytest.approx(expected, abs=1e-4)


def test_none_keeps_a_map_that_is_given() -> None:
    known, partner = shared()
    start = partner.clone()
    start[:5] = -1
    result = refine_pair(known.pair, "none", start=start)
    assert torch.equal(result.indices[5:], partner[5:])
    assert torch.equal(result.indices[:5], refine_pair(known.pair, "none").indices[:5])


# --- coherent, and the question of same points -------------------------------------------------


def test_coherent_recovers_a_smooth_deformation() -> None:
    known = apart()
    result = refine_pair(known.pair, "coherent")
    assert known.error(refine_pair(known.pair, "none")) > 0.06
    assert known.error(result) < 0.035
    assert result.accepted
    assert not result.same_points


def test_coherent_finds_that_both_hold_the_same_points() -> None:
    known, partner = shared()
    start = refine_pair(known.pair, "none")
    result = refine_pair(known.pair, "coherent")
    assert (start.indices == partner).float().mean() < 0.5
    assert result.same_points
    assert len(result.indices.unique()) == len(partner)
    assert (result.indices == partner).float().mean() > 0.8
    assert torch.equal(result.positions, known.pair.target.points[result.indices])
    relaxed = refine_pair(known.pair, Coherent(one_to_one=False))
    assert not relaxed.same_points
    assert known.error(result) < known.error(relaxed)


def test_one_to_one_can_be_demanded() -> None:
    known = apart(200, 200)
    result = refine_pair(known.pair, Transport(one_to_one=True))
    # Samples that were drawn apart have no bijection: it is used only where it is no worse.
    assert result.energy <= result.input_energy
    known, _ = shared(200)
    result = refine_pair(known.pair, Transport(one_to_one=True))
    assert len(result.indices.unique()) == 200


def test_options_of_bending_are_used() -> None:
    pair = apart(200, 200).pair
    firm, soft = (
        refine_pair(pair, Coherent(bending=BendingConfig(stiffness=s), one_to_one=False))
        for s in (1e6, 10.0)
    )
    assert soft.energy < firm.energy


def test_a_rotated_constellation_fits_and_a_shuffled_one_does_not() -> None:
    points = body(200, 0)
    shape = EmbeddedShape(points, points)
    rotation = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))[0]
    rotation *= torch.det(rotation)
    assert constellation_misfit(shape, points @ rotation.T + 1.0).max() < 1e-4
    shuffled = points[torch.randperm(200, generator=torch.Generator().manual_seed(1))]
    assert constellation_misfit(shape, shuffled).median() > 1.0
    assert constellation_misfit(shape, 3.0 * points @ rotation.T).max() < 1e-4  # of any size


@pytest.mark.parametrize("swapped", [False, True])
def test_the_same_points_are_recognised(swapped: bool) -> None:
    points, other = body(200, 0), body(200, 1)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(2))
    features = torch.ones(200, 2)  # no help
    places = bent(points)
    same = pair_of(points, bent(points)[order], features, features)
    found = match_same_points(same, places, swapped=swapped)
    assert found is not None
    assert torch.equal(order[found], torch.arange(200))
    apart = pair_of(points, bent(other), features, features)
    assert match_same_points(apart, places, swapped=swapped) is None


def test_neighbours_predict_a_point_regardless_of_its_own_match() -> None:
    points = body(300, 4)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))[0]
    turn *= torch.det(turn)
    images = points @ turn.T + 2.0  # (N, 3)
    neighbors = knn_graph(points, 13)[:, 1:]  # (N, 12)
    trust = torch.ones(300)
    places, misfit = predict(points, images, trust, neighbors)
    assert torch.allclose(places, images, atol=1e-5)
    assert misfit.max() < 1e-3
    astray = images.clone()
    astray[7] += 5.0
    trust[7] = 0.0
    places, misfit = predict(points, astray, trust, neighbors)
    assert torch.allclose(places, images, atol=1e-5)
    assert misfit.argmax() == 7


def test_polishing_mends_what_a_rough_assignment_exchanged() -> None:
    source = body(400, 4)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(1))
    truth = order.argsort()  # (N,)
    target = bent(source)[order]
    # Features that say nothing, and an assignment that is wrong for every fifth point.
    pair = pair_of(source, target, torch.ones(400, 4), torch.ones(400, 4))
    wrong = truth.clone()
    exchanged = torch.arange(0, 400, 5)
    wrong[exchanged] = truth[exchanged.roll(1)]
    polished = polish(pair, wrong)
    assert (wrong == truth).float().mean() == pytest.approx(0.8)
    assert (polished == truth).float().mean() > 0.95


def test_a_bent_shape_tells_touching_hands_apart() -> None:
    # Two arms that meet in an arch, and the same ones stretched out side by side.
    generator = torch.Generator().manual_seed(0)
    along = torch.rand(400, generator=generator)  # (N,) from the shoulder to the finger tips
    across = 0.02 * torch.randn(400, 2, generator=generator)  # (N, 2)
    side = torch.ones(400)
    side[200:] = -1.0
    angle = 1.55 * along  # the hands end a hair's breadth from each other
    radius = 0.5 + across[:, 0]
    arch = torch.stack([side * radius * angle.cos(), radius * angle.sin(), across[:, 1]], dim=1)
    apart = torch.stack([side * (0.5 + across[:, 0]), 0.775 * along, across[:, 1]], dim=1)
    truth = torch.arange(400)
    wrong = truth.clone()
    hands = torch.nonzero(along > 0.8)[:, 0]  # (h,) of either arm
    wrong[hands] = hands[torch.randperm(len(hands), generator=generator)]
    graph = DeformationGraph(apart, 40, rigidity=0.1)
    pair = pair_of(apart, arch, torch.ones(400, 2), torch.ones(400, 2))
    found = follow(pair, graph, graph.frames(), wrong)
    exchanged = side[found] != side
    assert (side[wrong] != side).sum() > 30
    assert exchanged.sum() < 8
    assert (arch[found] - arch).norm(dim=1).mean() < 0.5 * (arch[wrong] - arch).norm(dim=1).mean()


def test_polishing_both_ways_never_raises_the_energy() -> None:
    source = body(300, 0)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    truth = order.argsort()
    target = bent(source)[order]
    pair = pair_of(source, target, torch.ones(300, 4), torch.ones(300, 4))
    wrong = truth.clone()
    exchanged = torch.arange(0, 300, 4)
    wrong[exchanged] = truth[exchanged.roll(1)]

    def energy(found: Tensor) -> float:
        seen.append(float((found != truth).float().mean()))
        return seen[-1]

    seen: list[float] = []
    polished = polish_both_ways(pair, wrong, energy=energy)
    assert (polished != truth).float().mean() == min(seen) < 0.05
    # An energy that nothing lowers leaves the map as it was, after one turn from either side.
    seen.clear()
    kept = polish_both_ways(pair, truth, energy=energy)
    assert torch.equal(kept, truth)
    assert len(seen) == 3


# --- Assignment --------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 12), extra=st.integers(0, 5), seed=st.integers(0, 1000))
def test_listed_pairs_give_the_assignment_of_scipy(count: int, extra: int, seed: int) -> None:
    scores = torch.randn(count, count + extra, generator=torch.Generator().manual_seed(seed))
    rows, columns = torch.meshgrid(torch.arange(count), torch.arange(count + extra), indexing="ij")
    listed = shortlist_assignment(
        rows.flatten(), columns.flatten(), scores.flatten(), rest=torch.zeros(count).long()
    )
    exact = linear_sum_assignment(scores.numpy(), maximize=True)[1]
    assert np.array_equal(listed.numpy(), exact)
    assert np.array_equal(best_assignment(scores).numpy(), exact)


def test_rows_that_get_no_partner_take_the_rest() -> None:
    rows, columns = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 0])  # one pair twice
    scores = torch.tensor([2.0, 1.0, 1.0])
    chosen = shortlist_assignment(rows, columns, scores, rest=torch.tensor([5, 3]))
    assert chosen.tolist() == [0, 3]
    assert best_assignment(torch.tensor([[2.0], [1.0]])).tolist() == [0, 0]


def test_large_shapes_are_assigned_by_shortlists() -> None:
    """With the deformation known, near pairs suffice: every point finds its own."""
    source = body(4500, 0)
    order = torch.randperm(4500, generator=torch.Generator().manual_seed(4))
    features = torch.ones(4500, 2)
    moved = source + 1e-4 * torch.randn(source.shape, generator=torch.Generator().manual_seed(5))
    chosen = assign(pair_of(source, source[order], features, features), moved)
    assert (chosen == order.argsort()).float().mean() > 0.99
    assert len(chosen.unique()) == 4500


@given(st.permutations(range(8)), st.integers(0, 7), st.integers(0, 7))
def test_the_inverse_of_an_assignment_is_one(order: list[int], first: int, second: int) -> None:
    indices = torch.tensor(order)
    assert torch.equal(inverse(indices), indices.argsort())
    indices[first] = indices[second]  # a target for two sources
    back = inverse(indices)
    assert sorted(back.tolist()) == list(range(8))
    assert int((indices[back] != torch.arange(8)).sum()) == int(first != second)


# --- Optimal transport -------------------------------------------------------------------------


def plan_of(scores: Tensor, temperature: float, reach: float | None) -> Tensor:
    a = torch.full((scores.shape[0],), 1 / scores.shape[0], dtype=scores.dtype)
    b = torch.full((scores.shape[1],), 1 / scores.shape[1], dtype=scores.dtype)
    logarithms = scores / temperature
    rows, columns = sinkhorn_potentials(
        DenseKernel(logarithms), a, b, temperature=temperature, reach=reach
    )
    return torch.exp(logarithms + rows[:, None] + columns)


@pytest.mark.filterwarnings("ignore:If reg_type = entropy")
@pytest.mark.parametrize("temperature", [0.5, 0.05])
def test_plans_are_those_of_pot(temperature: float) -> None:
    scores = torch.rand(30, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cost = (1 - scores).numpy()
    a, b = np.full(30, 1 / 30), np.full(20, 1 / 20)
    expected = ot.sinkhorn(a, b, cost, temperature, method="sinkhorn_log", numItermax=10000)
    found = plan_of(scores - 1, temperature, None).numpy()
    assert found == pytest.approx(expected, abs=1e-4)
    expected = ot.unbalanced.sinkhorn_unbalanced(
        a, b, cost, temperature, 0.1, reg_type="entropy", numItermax=10000
    )
    found = plan_of(scores - 1, temperature, 0.1).numpy()
    assert found == pytest.approx(expected, abs=1e-5)


def test_nothing_overflows_at_low_temperatures() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.rand(40, 40, generator=generator) - 1
    plan = plan_of(scores, 1e-3, None)
    assert plan.isfinite().all()
    assert plan.sum(dim=0) == pytest.approx(torch.full((40,), 1 / 40), abs=2e-3)
    exact = linear_sum_assignment(scores.numpy(), maximize=True)[1]
    assert (plan.argmax(dim=1).numpy() == exact).mean() > 0.8


def test_a_sparse_kernel_with_all_pairs_is_the_dense_one() -> None:
    scores = torch.rand(12, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows, columns = torch.meshgrid(torch.arange(12), torch.arange(9), indexing="ij")
    sparse = SparseKernel(rows.flatten(), columns.flatten(), scores.flatten() / 0.1, (12, 9))
    a, b = torch.full((12,), 1 / 12).double(), torch.full((9,), 1 / 9).double()
    first = sinkhorn_potentials(sparse, a, b, temperature=0.1, reach=0.2)
    second = sinkhorn_potentials(DenseKernel(scores / 0.1), a, b, temperature=0.1, reach=0.2)
    assert torch.allclose(first.rows, second.rows)
    assert torch.allclose(first.columns, second.columns)


@pytest.mark.parametrize("dustbin", [None, 0.3])
def test_shortlists_that_hold_everything_give_the_dense_plan(dustbin: float | None) -> None:
    generator = torch.Generator().manual_seed(2)
    source, target = (torch.randn(n, 6, generator=generator) for n in (40, 30))
    pair = pair_of(source[:, :3], target[:, :3], source, target)
    options = Transport(temperature=0.1, dustbin=dustbin)
    dense, sparse = _dense_plan(pair, options, 10), _sparse_plan(pair, options, 10)
    assert torch.equal(dense.best.indices[:, 0], sparse.best.indices[:, 0])
    assert torch.allclose(dense.best.scores, sparse.best.scores, atol=0.02)
    assert torch.allclose(dense.left_out, sparse.left_out, atol=0.05)


def test_transport_reaches_more_of_the_target() -> None:
    known, _ = shared()
    methods = Nearest(), Transport(one_to_one=False)
    nearest, moved = (refine_pair(known.pair, method) for method in methods)
    assert moved.accepted
    assert len(moved.indices.unique()) > 1.1 * len(nearest.indices.unique())
    assert known.error(moved) < known.error(nearest)


def test_a_dustbin_leaves_out_what_the_target_lacks() -> None:
    known, _ = shared(500, noise=0.1)
    pair = known.pair
    kept = pair.target.points[:, 0] < 0.3  # without most of the long limb
    part = Pair(pair.source, pair.target.subset(kept.nonzero()[:, 0]))
    missing = known.truth[:, 0] >= 0.3  # (N,)
    left_out = refine_pair(part, Transport(dustbin=0.8)).indices < 0  # (N,)
    assert left_out[missing].float().mean() > 0.8
    assert left_out[~missing].float().mean() < 0.1


# --- mutual ------------------------------------------------------------------------------------


def test_mutual_keeps_what_holds_both_ways_and_fills_in_the_rest() -> None:
    known, partner = shared()
    nearest = refine_pair(known.pair, "none")
    filled = refine_pair(known.pair, "mutual")
    only = refine_pair(known.pair, Mutual(fill=False))
    kept = only.indices >= 0
    assert 0.1 < kept.float().mean() < 0.9
    assert torch.equal(only.indices[kept], nearest.indices[kept])
    assert torch.equal(only.indices[kept], filled.indices[kept])
    assert len(only.indices[kept].unique()) == int(kept.sum())  # both ways: no point twice
    right = only.indices[kept] == partner[kept]
    assert right.float().mean() > (nearest.indices == partner).float().mean()
    assert known.error(filled) < known.error(nearest)


# --- linear ------------------------------------------------------------------------------------


def test_a_linear_fit_is_that_of_the_pseudo_inverse() -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(50, 8, generator=generator).double() for _ in range(2))
    expected = (np.linalg.pinv(source.numpy()) @ target.numpy()).T  # the paper's formula
    assert fit_linear(source, target, ridge=1e-12).numpy() == pytest.approx(expected, abs=1e-8)
    assert torch.allclose(fit_linear(source, target, ridge=1e9), torch.eye(8).double(), atol=1e-6)
    with pytest.raises(InputError, match="one row for each match"):
        fit_linear(source, target[:-1], ridge=1.0)


def test_a_hidden_linear_map_is_recovered() -> None:
    known, partner = shared(noise=0.0)
    generator = torch.Generator().manual_seed(1)
    hidden = torch.eye(64) + 0.17 * torch.randn(64, 64, generator=generator)
    source, target = known.pair.source, known.pair.target
    pair = Pair(source, EmbeddedShape(target.points, target.features @ hidden.T))
    nearest, result = refine_pair(pair, "none"), refine_pair(pair, "linear")
    assert (nearest.indices == partner).float().mean() < 0.6
    assert (result.indices == partner).float().mean() > 0.95
    assert result.accepted


# --- spectral ----------------------------------------------------------------------------------


def test_zoomout_recovers_an_isometric_copy_from_a_rough_start() -> None:
    mesh = trimesh.creation.icosphere(subdivisions=3)
    points = torch.tensor(np.array(mesh.vertices), dtype=torch.float32)  # (642, 3)
    bumps = embedded(points, noise=0.0, seed=0, dimension=4).mean(dim=1, keepdim=True)
    points = points * torch.tensor([0.4, 0.6, 1.0]) * (1 + 0.3 * bumps)  # no symmetry is left
    points, faces = 0.5 * points / points.square().sum(1).mean().sqrt(), torch.tensor(mesh.faces)
    generator = torch.Generator().manual_seed(3)
    order = torch.randperm(len(points), generator=generator)
    place = order.argsort()  # vertex v is target point place[v]
    rotation = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    target = points[order] @ (rotation * torch.det(rotation)).T
    rough = points + 0.15 * torch.randn(points.shape, generator=generator)
    start = place[euclidean_topk(rough, points, 1).indices[:, 0]]  # (N,)
    features = torch.ones(len(points), 2)  # say nothing
    pair = Pair(
        EmbeddedShape(points, features, faces=faces),
        EmbeddedShape(target, features, faces=place[faces]),
    )
    result = refine_pair(pair, "spectral", start=start)
    assert (start == place).float().mean() < 0.1
    assert (result.indices == place).float().mean() > 0.99
    assert result.accepted


def test_shapes_too_small_for_a_spectrum_are_refused() -> None:
    with pytest.raises(InputError, match="at least 16 on each"):
        refine_pair(apart(200, 12).pair, "spectral")


# --- Soft partners -----------------------------------------------------------------------------


def test_soft_partners_are_the_nearest_mixtures() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    places = 0.5 * torch.randn(6, 3, generator=generator, dtype=torch.float64)
    soft = around(places, target, nearest_points(places, target, 6).indices)
    assert (soft.scores >= 0).all()
    found = (weighted_mean(target, soft) - places).norm(dim=1)
    for row in range(6):
        corners, place = target[soft.indices[row]].numpy(), places[row].numpy()
        best = minimize(
            lambda w, c=corners, p=place: np.square(w @ c - p).sum(),
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        )
        assert float(found[row]) <= math.sqrt(max(best.fun, 0.0)) + 0.01


def test_a_target_point_is_its_own_soft_partner() -> None:
    target = body(100, 0)
    soft = around(target, target, nearest_points(target, target, 10).indices)
    assert torch.equal(soft.indices[:, 0], torch.arange(100))
    assert soft.scores[:, 0].min() > 0.999


# --- Errors ------------------------------------------------------------------------------------


def test_errors_say_what_to_do() -> None:
    pair = apart(30, 20).pair
    with pytest.raises(UsageError, match="coherent, ot, linear, mutual, spectral, none"):
        refine_pair(pair, "magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="leaving the faces out"):
        EmbeddedShape(pair.target.points, pair.target.features, faces=torch.tensor([[0, 1, 20]]))
    for start in (torch.zeros(29).long(), torch.full((30,), 20), torch.zeros(30)):
        with pytest.raises(InputError, match="from -1 to 19 for each of 30 points"):
            refine_pair(pair, start=start)
    with pytest.raises(InputError, match="neighbors=0"):
        refine_pair(pair, neighbors=0)
    with pytest.raises(InputError, match="'auto', True or False"):
        Coherent(one_to_one="perhaps")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="dustbin=2"):
        Transport(dustbin=2.0)
    for name in ("temperature", "reach"):
        with pytest.raises(InputError, match=f"{name}=0"):
            Transport(**{name: 0})
