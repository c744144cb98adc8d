from __future__ import annotations

import numpy as np
import torch
from scipy.spatial.distance import cdist

from ltenet.geometry.surface_graph import (
    across_seams,
    cloud_graph,
    distance_to_nearest,
    distances_along,
    edge_lengths,
    mesh_graph,
    nearest_on_surface,
    region_faces,
    region_graph,
    surface_coordinates,
    surface_graph,
    voronoi_regions,
)
from ltenet.refinement.deformation import DeformationGraph
from ltenet.shape import Shape

STRIP = np.array([[0, 1, 2], [1, 3, 2], [2, 3, 4]])


def sheet(size: int) -> Shape:
    """A square of size x size points with spacing 1."""
    x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    points = np.stack([x, y, 0 * x], axis=2).reshape(-1, 3).astype(np.float64)
    corner = (np.arange(size - 1)[:, None] * size + np.arange(size - 1)).reshape(-1)
    lower = np.stack([corner, corner + size, corner + 1], axis=1)
    upper = np.stack([corner + 1, corner + size, corner + size + 1], axis=1)
    return Shape(points, faces=np.concatenate([lower, upper]))


def two_sheets(size: int = 12, gap: float = 0.1) -> Shape:
    """Two squares that almost touch and that no edge joins."""
    one = sheet(size)
    assert one.faces is not None
    points = np.concatenate([one.points, one.points + np.array([0.0, 0.0, gap])])
    return Shape(points, faces=np.concatenate([one.faces, one.faces + len(one)]))


def test_edges_of_a_mesh_both_ways_and_once() -> None:
    graph = mesh_graph(STRIP, 6).toarray()
    edges = {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)}
    expected = np.zeros((6, 6))
    for a, b in edges:
        expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(graph, expected)


def test_a_cloud_has_its_nearest_points() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3))
    graph = cloud_graph(points).toarray()
    near = np.argsort(cdist(points, points), axis=1)[:, 1:9]
    assert all(graph[i, near[i]].all() for i in range(40))
    np.testing.assert_array_equal(graph, graph.T)
    assert graph.diagonal().sum() == 0
    assert cloud_graph(np.zeros((1, 3))).nnz == 0
    np.testing.assert_array_equal(surface_graph(points, None).toarray(), graph)


def test_ways_run_along_the_edges() -> None:
    shape = sheet(5)
    graph = surface_graph(shape.points, shape.faces)
    ways = distances_along(graph, shape.points, np.array([0]))  # (25, 1)
    assert ways[4, 0] == 4
    assert ways[20, 0] == 4
    assert ways[24, 0] == 8  # the diagonals run the other way
    assert np.isinf(distances_along(graph, shape.points, np.array([0]), reach=3.0)[4, 0])
    np.testing.assert_allclose(
        distance_to_nearest(graph, shape.points, np.array([0, 24])),
        np.minimum(ways[:, 0], distances_along(graph, shape.points, np.array([24]))[:, 0]),
    )
    assert np.isinf(distance_to_nearest(graph, shape.points, np.array([], dtype=int))).all()


def test_chosen_points_are_neighbours_where_their_regions_touch() -> None:
    shape = sheet(9)
    rows = np.array([10, 16, 64, 70])  # one in each quarter
    fine = surface_graph(shape.points, shape.faces)
    dense = region_graph(fine, voronoi_regions(fine, shape.points, rows)).toarray()
    assert dense[0, 1] == dense[0, 2] == dense[1, 3] == dense[2, 3] == 1
    whole = region_graph(fine, voronoi_regions(fine, shape.points, np.arange(len(shape))))
    assert (whole != fine).nnz == 0


def test_regions_do_not_cross_where_parts_only_touch() -> None:
    shape = two_sheets()
    rows = np.arange(0, len(shape), 7)
    fine = surface_graph(shape.points, shape.faces)
    graph = region_graph(fine, voronoi_regions(fine, shape.points, rows))
    below = rows < len(shape) // 2
    start, stop = graph.nonzero()
    np.testing.assert_array_equal(below[start], below[stop])


def test_regions_that_meet_are_joined_by_triangles() -> None:
    shape = sheet(9)
    assert shape.faces is not None
    graph = surface_graph(shape.points, shape.faces)
    rows = np.array([10, 16, 64, 70])  # one in each quarter
    regions = voronoi_regions(graph, shape.points, rows)
    np.testing.assert_array_equal(regions[rows], np.arange(4))
    nearest = distances_along(graph, shape.points, rows)  # (81, 4)
    np.testing.assert_array_equal(nearest[np.arange(81), regions], nearest.min(axis=1))
    faces = region_faces(shape.faces, regions)
    assert len(faces) == 2  # the square between the four points
    normals = np.cross(
        *(shape.points[rows][faces[:, k]] - shape.points[rows][faces[:, 0]] for k in (1, 2))
    )
    fine = np.cross(
        *(shape.points[shape.faces[:, k]] - shape.points[shape.faces[:, 0]] for k in (1, 2))
    )
    assert (normals @ fine[0] > 0).all()  # faces look the same way
    everything = voronoi_regions(graph, shape.points, np.arange(81))
    assert len(region_faces(shape.faces, everything)) == len(shape.faces)


def test_a_part_is_not_moved_by_one_that_it_touches() -> None:
    shape = two_sheets()
    points = torch.tensor(shape.points) / 10
    below = torch.arange(len(points)) < len(points) // 2
    # Above goes up, below stays.
    places = points + torch.where(below, 0.0, 1.0)[:, None] * torch.tensor([0.0, 0.0, 1.0])
    weights = torch.ones(len(points), dtype=points.dtype)
    off = []
    for graph in (None, surface_graph(shape.points, shape.faces)):
        bending = DeformationGraph(points, 40, rigidity=0.1, graph=graph)
        fitted = bending.fit(places, weights, frames=bending.frames(), stiffness=0.1, rounds=5)
        off.append(float((bending.apply(fitted) - places).norm(dim=1).mean()))
    assert off[1] < 0.05
    assert off[1] < 0.2 * off[0]


def test_nearest_on_surface_is_that_of_all_shortest_paths() -> None:
    points = np.random.default_rng(0).normal(size=(120, 3))
    lengths = distances_along(cloud_graph(points), points, np.arange(120)).T  # (N, N)
    found = nearest_on_surface(points, 9)
    np.testing.assert_array_equal(found[:, 0], np.arange(120))
    np.testing.assert_allclose(
        np.take_along_axis(lengths, found, axis=1), np.sort(lengths, axis=1)[:, :9]
    )


def test_nearest_on_surface_of_small_pieces_goes_on_in_space() -> None:
    rng = np.random.default_rng(1)
    small, large = rng.normal(size=(9, 3)), rng.normal(size=(40, 3)) + 100
    found = nearest_on_surface(np.concatenate([small, large]), 12)
    assert (np.sort(found[0])[:9] == np.arange(9)).all()
    assert all(len(set(row)) == 12 for row in found.tolist())


def test_graphs_have_the_narrow_indices_of_older_scipy() -> None:
    # scipy up to 1.14 refuses to search graphs with wide ones.
    points = np.random.default_rng(0).normal(size=(20, 3))
    faces = np.array([[0, 1, 2], [1, 2, 3]], dtype=np.int64)
    for graph in (cloud_graph(points), mesh_graph(faces, 20)):
        for made in (graph, edge_lengths(graph, points)):
            assert made.indices.dtype == made.indptr.dtype == np.int32


def test_coordinates_along_the_surface_differ_by_less_than_all_shortest_paths() -> None:
    points = np.random.default_rng(4).standard_normal((80, 3))
    graph = cloud_graph(points)
    paths = distances_along(graph, points, np.arange(80))  # (80, 80)
    coordinates = surface_coordinates(graph, points)  # (80, 32)
    apart = np.abs(coordinates[:, None] - coordinates).max(axis=2)  # (80, 80)
    assert (apart <= paths + 1e-9).all()
    # 32 of the 80 points are landmarks, whose own paths are exact.
    assert np.isclose(apart, paths).mean() > 0.5


def test_coordinates_along_the_surface_are_those_of_the_largest_piece() -> None:
    small, large = sheet(4), sheet(6)
    assert small.faces is not None
    assert large.faces is not None
    points = np.concatenate([small.points, large.points + 20])
    graph = mesh_graph(np.concatenate([small.faces, large.faces + len(small)]), len(points))
    coordinates = surface_coordinates(graph, points)
    assert np.isnan(coordinates[: len(small)]).all()
    assert np.isfinite(coordinates[len(small) :]).all()


def test_ways_cross_seams_where_points_are_repeated() -> None:
    whole = sheet(6)
    assert whole.faces is not None
    # Cut between the third and the fourth column: the right half has vertices of its own.
    right = whole.points[:, 0] >= 3
    own = np.where(right, np.cumsum(right) - 1 + len(whole), np.arange(len(whole)))
    faces = np.where(right[whole.faces].all(axis=1)[:, None], own[whole.faces], whole.faces)
    points = np.concatenate([whole.points, whole.points[right]])
    torn = mesh_graph(faces, len(points))
    assert np.isinf(distances_along(torn, points, np.array([0]))[-1, 0])
    joined = across_seams(torn, points)
    expected = distances_along(mesh_graph(whole.faces, len(whole)), whole.points, np.array([0]))
    found = distances_along(joined, points, np.array([0]))
    np.testing.assert_allclose(found[-1], expected[-1], atol=1e-6)
    intact = mesh_graph(whole.faces, len(whole))
    assert across_seams(intact, whole.points) is intact
