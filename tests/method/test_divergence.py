from __future__ import annotations

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.errors import InputError
from ltenet.method import divergence as module
from ltenet.method import plain
from ltenet.method.divergence import (
    DIVERGENCES,
    DivergenceConfig,
    cauchy_schwarz,
    chamfer,
    divergence,
    earth_mover,
    entropic_plan,
    mean_spacing,
    transport_plan,
)

KINDS = tuple(DIVERGENCES)


def cloud(count: int, *, seed: int = 0, batch: int = 2, scale: float = 0.3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(batch, count, 3, generator=generator, dtype=torch.float64)


# --- Cauchy-Schwarz -----------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.01 / 9, 0.01, 0.09])
@pytest.mark.parametrize("sizes", [(40, 40), (25, 40)])
def test_cauchy_schwarz_is_the_listing_of_the_paper(sigma: float, sizes: tuple[int, int]) -> None:
    rebuilt, real = cloud(sizes[0]), cloud(sizes[1], seed=1)
    torch.testing.assert_close(
        cauchy_schwarz(rebuilt, real, sigma),
        plain.cauchy_schwarz(rebuilt, real, sigma),
        rtol=1e-9,
        atol=1e-9,
    )


def density(axes: np.ndarray, points: np.ndarray, sigma: float) -> np.ndarray:
    """Kernel density of (N, C) points at (G, C) places, with the textbook normaliser."""
    squares = np.square(axes[:, None] - points).sum(axis=-1)
    height = (2 * np.pi * sigma**2) ** (-points.shape[1] / 2)
    return height * np.exp(-squares / (2 * sigma**2)).mean(axis=1)


@pytest.mark.parametrize("columns", [1, 2])
def test_cauchy_schwarz_is_the_integral_of_the_densities(columns: int) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-0.5, 0.5, (7, columns)), rng.uniform(-0.5, 0.5, (4, columns))
    sigma = 0.15
    axis = np.linspace(-2, 2, 401)
    grid = np.stack(np.meshgrid(*[axis] * columns, indexing="ij"), axis=-1).reshape(-1, columns)
    p, q = density(grid, first, sigma), density(grid, second, sigma)
    expected = -np.log((p * q).sum() / np.sqrt((p * p).sum() * (q * q).sum()))
    # Points in fewer dimensions are points in space with zeros.
    as_space = [np.pad(x, ((0, 0), (0, 3 - columns)))[None] for x in (first, second)]
    ours = cauchy_schwarz(torch.tensor(as_space[0]), torch.tensor(as_space[1]), sigma)
    assert float(ours) == pytest.approx(float(expected), rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(0, 99),
    st.floats(0.01, 1),
    st.integers(1, 99),
)
def test_cauchy_schwarz_is_a_symmetric_divergence_for_any_block(
    first: int, second: int, seed: int, sigma: float, block: int
) -> None:
    a, b = cloud(first, seed=seed), cloud(second, seed=seed + 1)
    whole = cauchy_schwarz(a, b, sigma)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_ENTRIES", block)
        blocked = cauchy_schwarz(a, b, sigma)
    torch.testing.assert_close(blocked, whole, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(cauchy_schwarz(b, a, sigma), whole, rtol=1e-9, atol=1e-11)
    assert (whole >= -1e-12).all()
    torch.testing.assert_close(
        cauchy_schwarz(a, a.flip(1), sigma), torch.zeros(2).double(), rtol=0, atol=1e-12
    )


def test_repeating_every_point_changes_nothing() -> None:
    """The numbers of points cancel, also when they differ."""
    a, b = cloud(20), cloud(30, seed=1)
    torch.testing.assert_close(cauchy_schwarz(a.repeat(1, 3, 1), b, 0.1), cauchy_schwarz(a, b, 0.1))


@pytest.mark.parametrize("sigma", [0.01 / 9, 0.01, 0.09])
def test_far_from_the_origin_and_apart_nothing_is_lost(sigma: float) -> None:
    near = cloud(200, batch=1).float()
    rebuilt, real = near, near + 0.01 * cloud(200, seed=1, batch=1).float()
    # 1/128 of a unit is exact in float32 100 units away; so both clouds are the same there.
    grid = 2.0**-17
    rebuilt, real = ((x / grid).round() * grid for x in (rebuilt, real))
    expected = plain.cauchy_schwarz(rebuilt.double(), real.double(), sigma).float()
    here, there = (cauchy_schwarz(rebuilt + c, real + c, sigma) for c in (0.0, 100.0))
    torch.testing.assert_close(here, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(there, expected, rtol=1e-4, atol=1e-5)
    apart = cauchy_schwarz(rebuilt, real + 10, sigma)
    assert torch.isfinite(apart).all()
    assert apart.item() > 100


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_single_precision_gradients_are_good_far_away(shift: float) -> None:
    grid = 2.0**-17
    rebuilt, real = ((x / grid).round() * grid for x in (cloud(150), cloud(150, seed=1)))
    exact = rebuilt.clone().requires_grad_()
    (expected,) = torch.autograd.grad(plain.cauchy_schwarz(exact, real, 0.05).sum(), exact)
    moved = (rebuilt.float() + shift).requires_grad_()
    ours = cauchy_schwarz(moved, real.float() + shift, 0.05).sum()
    (grad,) = torch.autograd.grad(ours, moved)
    torch.testing.assert_close(grad, expected.float(), rtol=1e-3, atol=1e-4 * expected.abs().max())


def test_a_bandwidth_for_each_pair() -> None:
    a, b = cloud(10), cloud(12, seed=1)
    both = cauchy_schwarz(a, b, torch.tensor([0.05, 0.2]))
    for number, sigma in enumerate((0.05, 0.2)):
        one = slice(number, number + 1)
        torch.testing.assert_close(both[one], cauchy_schwarz(a[one], b[one], sigma))


def test_relative_bandwidth_follows_the_scale() -> None:
    a, b = cloud(30), cloud(40, seed=1)
    config = DivergenceConfig(sigma=0.8, relative=True)
    torch.testing.assert_close(divergence(a, b, config), divergence(7 * a, 7 * b, config))
    line = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [3, 0, 0]]])
    assert mean_spacing(line).tolist() == pytest.approx([4 / 3])


# --- Chamfer and earth mover's ------------------------------------------------------------------


def test_chamfer_is_brute_force() -> None:
    a, b = cloud(30), cloud(45, seed=1)
    squares = torch.cdist(a, b).square()
    expected = squares.amin(dim=2).mean(dim=1) + squares.amin(dim=1).mean(dim=1)
    torch.testing.assert_close(chamfer(a, b), expected)


def test_assignment_is_the_transport_of_pot() -> None:
    a, b = cloud(35), cloud(35, seed=1)
    for number, ours in enumerate(earth_mover(a, b)):
        cost = ot.dist(a[number].numpy(), b[number].numpy(), metric="euclidean")
        assert float(ours) == pytest.approx(ot.emd2([], [], cost), rel=1e-9)
    assert transport_plan(a[0], b[0]).solver == "assignment"


def test_sinkhorn_comes_close_to_the_transport_of_pot_for_unequal_sizes() -> None:
    a, b = cloud(30), cloud(50, seed=1)
    assert transport_plan(a[0], b[0]).solver == "sinkhorn"
    for number, ours in enumerate(earth_mover(a, b)):
        cost = ot.dist(a[number].numpy(), b[number].numpy(), metric="euclidean")
        assert float(ours) == pytest.approx(ot.emd2([], [], cost), rel=2e-3)


def test_sinkhorn_takes_over_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = cloud(20), cloud(20, seed=1)
    exact = earth_mover(a, b)
    monkeypatch.setattr(module, "EXACT_ASSIGNMENT", 19)
    assert transport_plan(a[0], b[0]).solver == "sinkhorn"
    torch.testing.assert_close(earth_mover(a, b), exact, rtol=5e-3, atol=0)


def test_sinkhorn_keeps_the_masses_of_columns_exactly_and_of_rows_nearly() -> None:
    plan = entropic_plan(torch.cdist(cloud(12)[0], cloud(17, seed=1)[0]))
    torch.testing.assert_close(plan.sum(dim=0), torch.full((17,), 1 / 17).double())
    torch.testing.assert_close(
        plan.sum(dim=1), torch.full((12,), 1 / 12).double(), rtol=0.1, atol=0
    )
    equal = entropic_plan(torch.zeros(3, 3))
    torch.testing.assert_close(equal, torch.full((3, 3), 1 / 9))


# --- What they have in common -------------------------------------------------------------------


# The entropic plan for unequal sizes is compared with the exact one below.
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [*((kind, (6, 6)) for kind in KINDS), *((kind, (5, 8)) for kind in KINDS[:2])],
)
def test_gradcheck(kind: str, sizes: tuple[int, int]) -> None:
    a, b = cloud(sizes[0]).requires_grad_(), cloud(sizes[1], seed=1).requires_grad_()
    config = DivergenceConfig(kind=kind, sigma=0.2)  # type: ignore[arg-type]
    assert torch.autograd.gradcheck(lambda x, y: divergence(x, y, config), (a, b))


def test_gradient_of_unequal_transport_is_that_of_the_exact_plan() -> None:
    a, b = cloud(12, batch=1).requires_grad_(), cloud(20, seed=1, batch=1)
    (ours,) = torch.autograd.grad(earth_mover(a, b).sum(), a)
    points, others = a.detach()[0].numpy(), b[0].numpy()
    plan = ot.emd([], [], ot.dist(points, others, metric="euclidean"))  # (12, 20)
    steps = points[:, None] - others  # (12, 20, 3)
    exact = (plan[..., None] * steps / np.linalg.norm(steps, axis=-1, keepdims=True)).sum(axis=1)
    np.testing.assert_allclose(ours[0], exact, atol=0.05 * np.abs(exact).max())


@pytest.mark.parametrize("kind", KINDS)
def test_zero_on_equal_sets_positive_on_others_and_finite_gradients(kind: str) -> None:
    a = cloud(20).float()
    config = DivergenceConfig(kind=kind)  # type: ignore[arg-type]
    same = a.clone().requires_grad_()
    value = divergence(same, a.flip(1), config)
    torch.testing.assert_close(value, torch.zeros(2), rtol=0, atol=1e-5)
    (grad,) = torch.autograd.grad(value.sum(), same)
    assert torch.isfinite(grad).all()
    assert (divergence(a, a + 0.1, config) > 1e-3).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"\(B, N, 3\).*same B"):
        divergence(torch.zeros(4, 3), torch.zeros(4, 3))
    with pytest.raises(InputError, match="same B"):
        divergence(torch.zeros(1, 4, 3), torch.zeros(2, 4, 3))
    with pytest.raises(InputError, match="cauchy-schwarz, chamfer, emd"):
        DivergenceConfig(kind="kl")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="positive bandwidth"):
        DivergenceConfig(sigma=0)
