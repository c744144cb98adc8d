from __future__ import annotations

import numpy as np
import pytest

from ltenet.bodies.collision import CollisionCheck, CollisionTest, spread


def sphere(rings: int = 14, segments: int = 28) -> tuple[np.ndarray, np.ndarray]:
    """Unit sphere (V, 3) with outward faces (F, 3)."""
    angle = np.linspace(0, np.pi, rings + 2)[1:-1]
    turn = np.arange(segments) * 2 * np.pi / segments
    grid = np.stack(
        [
            np.sin(angle)[:, None] * np.cos(turn),
            np.sin(angle)[:, None] * np.sin(turn),
            np.broadcast_to(np.cos(angle)[:, None], (rings, segments)),
        ],
        -1,
    ).reshape(-1, 3)
    points = np.concatenate([grid, [[0, 0, 1], [0, 0, -1]]])
    top, bottom, faces = len(grid), len(grid) + 1, []
    for segment in range(segments):
        following = (segment + 1) % segments
        faces.append([top, segment, following])
        last = (rings - 1) * segments
        faces.append([bottom, last + following, last + segment])
        for ring in range(rings - 1):
            a, b = ring * segments + segment, ring * segments + following
            faces += [[a, a + segments, b], [b, a + segments, b + segments]]
    return points, np.array(faces)


@pytest.fixture(scope="module")
def spheres() -> tuple[np.ndarray, np.ndarray, CollisionTest]:
    """Two unit spheres at the origin, in one numbering, and the test between them."""
    points, faces = sphere()
    count = len(points)
    both = np.concatenate([points, points])
    test = CollisionTest(
        np.concatenate([faces, faces + count]),
        [
            CollisionCheck(np.arange(count), np.arange(count, 2 * count)),
            CollisionCheck(np.arange(count, 2 * count), np.arange(count)),
        ],
        reach=0.5,
        rank=1,
    )
    return both, faces, test


@pytest.mark.parametrize("gap", [0.3, 0.02])
def test_separate_spheres_do_not_collide(spheres, gap: float) -> None:
    both, _, test = spheres
    moved = both.copy()
    moved[len(both) // 2 :, 0] += 2 + gap
    assert test.depth(moved) == 0.0


@pytest.mark.parametrize("overlap", [0.05, 0.1, 0.2])
def test_depth_is_the_overlap(spheres, overlap: float) -> None:
    both, _, test = spheres
    moved = both.copy()
    moved[len(both) // 2 :, 0] += 2 - overlap
    assert test.depth(moved) == pytest.approx(overlap, abs=0.02)
    assert len(test.depths(moved)) == 2


def test_depth_scales_with_the_shape_up_to_reach(spheres) -> None:
    both, _, test = spheres
    moved = both.copy()
    moved[len(both) // 2 :, 1] += 1.9
    assert test.depth(0.5 * moved) == pytest.approx(0.5 * test.depth(moved), rel=1e-4)
    assert test.depth(moved + np.array([5.0, -3.0, 2.0])) == pytest.approx(
        test.depth(moved), abs=1e-5
    )


def test_rank_forgives_single_probes(spheres) -> None:
    both, faces, _ = spheres
    count = len(both) // 2
    strict, lenient = (
        CollisionTest(
            np.concatenate([faces, faces + count]),
            [(np.arange(count), np.arange(count, 2 * count))],
            reach=2.0,
            rank=rank,
        )
        for rank in (1, 2)
    )
    moved = both.copy()
    moved[:count, 0] += 5
    moved[0] = [0.8, 0, 0]
    assert strict.depth(moved) == pytest.approx(0.2, abs=0.02)
    assert lenient.depth(moved) == 0.0


def test_surface_vertices_need_faces() -> None:
    points, faces = sphere()
    with pytest.raises(ValueError, match=r"got vertex .* without a face"):
        CollisionTest(faces, [(np.arange(3), np.array([len(points)]))])


@pytest.mark.parametrize("checks", [[], [([0], [1]), ([], [1])], [([0], [])]])
def test_checks_must_not_be_empty(checks: list) -> None:
    with pytest.raises(ValueError, match="try leaving empty parts out"):
        CollisionTest(sphere()[1], checks)


def test_allowance_is_forgiven(spheres) -> None:
    both, faces, test = spheres
    count = len(both) // 2
    soft = CollisionTest(
        np.concatenate([faces, faces + count]),
        [CollisionCheck(np.arange(count), np.arange(count, 2 * count), 0.06)],
        reach=0.5,
        rank=1,
    )
    moved = both.copy()
    moved[count:, 2] += 1.9
    assert soft.depth(moved) == pytest.approx(test.depths(moved)[0] - 0.06, abs=1e-6)
    moved[count:, 2] += 0.08
    assert soft.depth(moved) == 0.0


def test_spread_covers_a_part_evenly() -> None:
    points, _ = sphere()
    chosen = spread(points, np.arange(len(points)), 60)
    assert len(set(chosen.tolist())) == 60
    assert (np.diff(chosen) > 0).all()
    gaps = np.linalg.norm(points[:, None] - points[chosen], axis=2).min(1)
    assert gaps.max() < 0.45
    np.testing.assert_array_equal(spread(points, [5, 2, 9], 10), [2, 5, 9])
