from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.errors import InputError
from ltenet.geometry.surface_graph import cloud_graph, distances_along, surface_coordinates
from ltenet.method import neighbors
from ltenet.method.neighbors import (
    cosine_topk,
    geodesic_neighbors,
    knn_graph,
    mutual_topk,
    surface_neighbors,
)


def cloud(count: int, columns: int = 3, *, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, columns, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("columns", [2, 3, 16])
def test_knn_graph_agrees_with_all_distances(columns: int) -> None:
    points = cloud(200, columns).double()
    expected = torch.cdist(points, points).topk(9, largest=False).indices
    assert torch.equal(knn_graph(points, 9), expected)


def test_blocks_do_not_change_feature_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    points = cloud(150, 12).double()
    whole = knn_graph(points, 7)
    monkeypatch.setattr(neighbors, "BLOCK_ENTRIES", 600)
    assert torch.equal(knn_graph(points, 7), whole)


@pytest.mark.parametrize("columns", [3, 8])
def test_a_point_comes_first_in_its_own_neighborhood_even_among_duplicates(columns: int) -> None:
    points = cloud(6, columns).repeat(5, 1)  # every point five times
    graph = knn_graph(points, 4)
    assert torch.equal(graph[:, 0], torch.arange(30))
    # All four neighbours are among the five copies, and none is named twice.
    assert (torch.cdist(points, points).gather(1, graph) < 1e-3).all()
    assert all(len(set(row)) == 4 for row in graph.tolist())


def test_one_neighbor_is_the_point_itself() -> None:
    assert torch.equal(knn_graph(cloud(5), 1), torch.arange(5)[:, None])


@pytest.mark.parametrize("k", [0, 11])
def test_impossible_numbers_of_neighbors_are_refused(k: int) -> None:
    with pytest.raises(InputError, match=rf"got {k} neighbours .* 10 points, .* smaller"):
        knn_graph(cloud(10), k)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 8),
    st.integers(1, 200),
    st.integers(0, 9),
)
def test_cosine_topk_equals_the_full_matrix_for_any_block(
    count: int, candidates: int, k: int, block: int, seed: int
) -> None:
    k = min(k, candidates)
    source, target = (
        cloud(count, 5, seed=seed).double(),
        cloud(candidates, 5, seed=seed + 1).double(),
    )
    similarity = torch.nn.functional.cosine_similarity(source[:, None], target[None], dim=-1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "BLOCK_ENTRIES", block)
        found = cosine_topk(source, target, k)
    torch.testing.assert_close(found.scores, similarity.topk(k).values)
    torch.testing.assert_close(similarity.gather(1, found.indices), found.scores)


def test_cosine_topk_of_a_batch_is_that_of_each_pair() -> None:
    source, target = torch.randn(3, 20, 6), torch.randn(3, 30, 6)
    batch = cosine_topk(source, target, 4)
    for number in range(3):
        assert torch.equal(
            batch.indices[number], cosine_topk(source[number], target[number], 4).indices
        )


def test_excluding_itself_keeps_duplicates() -> None:
    features = cloud(4, 6).repeat_interleave(2, dim=0)  # pairs of twins
    nearest = cosine_topk(features, features, 1, exclude_itself=True).indices[:, 0]
    assert nearest.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]


def test_cosine_topk_refuses_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="same dimension"):
        cosine_topk(torch.zeros(4, 3), torch.zeros(4, 5), 1)
    with pytest.raises(InputError, match="5 target neighbours"):
        cosine_topk(torch.zeros(4, 3), torch.zeros(4, 3), 5)
    with pytest.raises(InputError, match=r"got 4 target neighbours for 3 points"):
        cosine_topk(torch.zeros(4, 3), torch.zeros(4, 3), 4, exclude_itself=True)
    with pytest.raises(InputError, match="the same points"):
        cosine_topk(torch.zeros(4, 3), torch.zeros(5, 3), 1, exclude_itself=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(2, 40), st.integers(1, 5), st.integers(0, 9))
def test_mutual_topk_is_cosine_topk_both_ways(
    count: int, candidates: int, k: int, seed: int
) -> None:
    k = min(k, count, candidates)
    source = torch.stack([cloud(count, 5, seed=seed + n).double() for n in range(2)])
    target = torch.stack([cloud(candidates, 5, seed=seed + n + 9).double() for n in range(2)])
    forth, back = mutual_topk(source, target, k)
    assert torch.equal(forth.indices, cosine_topk(source, target, k).indices)
    assert torch.equal(back.indices, cosine_topk(target, source, k).indices)
    torch.testing.assert_close(back.scores, cosine_topk(target, source, k).scores)
    with pytest.MonkeyPatch.context() as patch:  # too large for one product
        patch.setattr(neighbors, "BLOCK_ENTRIES", 3)
        assert torch.equal(mutual_topk(source, target, k)[1].indices, back.indices)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(1, 5), st.integers(0, 9))
def test_a_mirrored_product_finds_what_the_whole_one_does(count: int, k: int, seed: int) -> None:
    k = min(k, count - 1)
    features = torch.stack([cloud(count, 6, seed=seed + n).double() for n in range(3)])
    mirrored = cosine_topk(features, features, k, exclude_itself=True)
    whole = cosine_topk(features, features.clone(), k, exclude_itself=True)  # not known to be equal
    assert torch.equal(mirrored.indices, whole.indices)
    torch.testing.assert_close(mirrored.scores, whole.scores)


def test_mutual_topk_refuses_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="same dimension"):
        mutual_topk(torch.zeros(4, 3), torch.zeros(4, 5), 1)
    with pytest.raises(InputError, match=r"got 5 target neighbours for 4 points"):
        mutual_topk(torch.zeros(4, 3), torch.zeros(9, 3), 5)


def test_geodesic_neighbors_surround_the_best_match() -> None:
    line = torch.zeros(1, 30, 3)
    line[0, :, 0] = torch.arange(30.0)  # paths are known: neighbours in order
    surface = surface_neighbors(line, 4)
    assert surface[0, 10, 0] == 10
    assert set(surface[0, 10].tolist()) <= {8, 9, 10, 11, 12}
    target = torch.eye(30)[None]  # every feature its own
    source = target[:, [7, 20]]
    found = geodesic_neighbors(source, target, surface, 3)
    assert torch.equal(found, surface[:, [7, 20], :3])
    # For itself, point i keeps the neighbours of its best match but is not among them.
    features = cloud(30, 6)[None]
    best = cosine_topk(features, features, 1, exclude_itself=True).indices[0, :, 0]
    own = geodesic_neighbors(features, features, surface, 3, exclude_itself=True)
    for i in range(30):
        expected = [j for j in surface[0, best[i]].tolist() if j != i][:3]
        assert own[0, i].tolist() == expected
    with pytest.raises(InputError, match="got surface neighbours none"):
        geodesic_neighbors(features, features, None, 3)


def test_paths_do_not_jump_between_limbs() -> None:
    """Two parallel lines, joined at one end: the other line is near in space, far along it."""
    along = torch.linspace(0, 10, 101)
    first = torch.stack([along, torch.zeros(101), torch.zeros(101)], dim=1)
    second = first + torch.tensor([0.0, 0.45, 0.0])
    end = torch.stack([torch.zeros(8), torch.linspace(0.05, 0.4, 8), torch.zeros(8)], dim=1)
    points = torch.cat([first, second, end])[None]
    near = knn_graph(points[0], 24)[80]
    along_surface = surface_neighbors(points, 24)[0, 80]
    assert (near >= 101).any()
    assert (along_surface < 101).all()


def hairpin(gap: float) -> np.ndarray:
    """A strip of 2 x 120 points with spacing 1, bent back upon itself: its arms are `gap` apart."""
    around = np.linspace(0, np.pi, 20)
    arm = np.arange(50.0)
    x = np.concatenate([arm[::-1], -gap / 2 * np.sin(around), arm])
    y = np.concatenate([0 * arm + gap / 2, gap / 2 * np.cos(around), 0 * arm - gap / 2])
    return np.concatenate([np.stack([x, y, 0 * x + z], axis=1) for z in (0.0, 1.0)])


def test_neighbors_keep_to_the_surface_where_it_is_known() -> None:
    points = hairpin(gap=3.0)  # (240, 3)
    links = cloud_graph(hairpin(gap=40.0))  # without those across the gap
    along = surface_coordinates(links, points)  # (240, 32)
    paths = distances_along(links, points, np.arange(240))  # (240, 240)
    tensor, coordinates = torch.from_numpy(points), torch.from_numpy(along)
    tips = np.flatnonzero(points[:, 0] > 30)

    def crossed(found: torch.Tensor) -> float:
        return float((paths[tips[:, None], found[tips].numpy()] > 60).mean())

    assert crossed(knn_graph(tensor, 16)) > 0.15
    assert crossed(knn_graph(tensor, 16, coordinates)) == 0.0
    # Turning and scaling the shape changes nothing.
    again = knn_graph(3 * tensor[:, [2, 0, 1]], 16, 3 * coordinates)
    assert crossed(again) == 0.0
    # Where there are too few others, points across the gap are better than none.
    everything = knn_graph(tensor, 240, coordinates).sort(dim=1).values
    assert torch.equal(everything, torch.arange(240).expand(240, 240))


def test_far_along_the_surface_is_decided_as_by_a_loop_over_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    points, along = rng.random((60, 3)), 4 * rng.random((60, 5))
    along[50:] = np.nan  # off the surface
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    nearest = np.sort(apart, axis=1)[:, 1]
    spacing = np.sort(nearest)[29]  # torch takes the lower of the two middle values
    expected = np.empty((60, 9), dtype=np.int64)
    for i in range(60):
        path = [np.abs(along[i] - along[j]).max() for j in range(60)]
        far = [path[j] > 2 * apart[i, j] + 4 * spacing for j in range(60)]
        expected[i] = sorted(range(60), key=lambda j: (j != i, far[j], apart[i, j]))[:9]
    found = knn_graph(torch.from_numpy(points), 9, torch.from_numpy(along))
    np.testing.assert_array_equal(found.numpy(), expected)
    # Large shapes look at the nearest points only, here at enough of them.
    monkeypatch.setattr(neighbors, "_ALL_PAIRS", 10)
    monkeypatch.setattr(neighbors, "BLOCK_ENTRIES", 700)
    found = knn_graph(torch.from_numpy(points), 40, torch.from_numpy(along))
    np.testing.assert_array_equal(found[:, :9].numpy(), expected)


def test_a_surface_that_is_not_known_changes_nothing() -> None:
    points = torch.rand(50, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    nowhere = torch.full((50, 4), torch.nan, dtype=torch.float64)
    assert torch.equal(knn_graph(points, 7, nowhere), knn_graph(points, 7))
