"""Colours, labels and scalars along a map, the direction, and the nearest place on a surface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet import io
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.io.values import read_values, write_values
from ltenet.shape import Shape
from ltenet.transferring.surface import Surface, nearest_in_triangles
from ltenet.transferring.transfer import transfer


@pytest.fixture
def scan() -> Shape:
    return Shape(points=np.arange(9.0).reshape(3, 3), name="scan")


@pytest.fixture
def template(tetrahedron: Shape) -> Shape:
    return tetrahedron  # four points, with colours and labels


@pytest.fixture
def corr(scan: Shape, template: Shape) -> Correspondence:
    return Correspondence(np.array([3, 0, -1]), 4, source=scan, target=template)


def test_the_example_of_the_readme(corr: Correspondence, scan: Shape, template: Shape) -> None:
    colored = transfer(corr, template, onto=scan, what="colors")
    assert colored.colors is not None
    assert colored.colors.tolist() == [[9, 8, 7], [255, 0, 0], [128] * 3]
    assert colored.name == "scan"
    assert scan.colors is None
    labelled = transfer(corr, template, onto=scan, what="labels")
    assert labelled.labels is not None
    assert labelled.labels.tolist() == [1, 3, -1]


def test_onto_the_target_goes_through_the_inverse(
    corr: Correspondence, scan: Shape, template: Shape
) -> None:
    values = transfer(corr, [1.0, 2.0, 3.0], onto=template, what="scalars", fill=0)
    np.testing.assert_equal(values, [2, np.nan, np.nan, 1])
    filled = transfer(corr, [1.0, 2.0, 3.0], onto=template, what="scalars", fill=2.0)
    np.testing.assert_equal(filled, [2, 2, 2, 1])
    labels = transfer(corr, np.uint8([5, 6, 7]), onto=template, what="labels", fill=0).labels
    assert labels is not None
    assert labels.tolist() == [6, -1, -1, 5]


def test_scalars_mix_even_if_they_are_whole(scan: Shape) -> None:
    neighbors, weights = np.array([[0, 1]] * 3), np.array([[0.5, 0.5]] * 3)
    corr = Correspondence(np.zeros(3, int), 4, neighbors=neighbors, weights=weights)
    assert transfer(corr, [1, 2, 0, 0], what="scalars").tolist() == [1.5] * 3
    assert transfer(corr, np.eye(4), what="scalars").shape == (3, 4)


def test_the_direction_is_told_by_identity_size_or_hash(
    corr: Correspondence, scan: Shape, template: Shape, tmp_path: Path
) -> None:
    loose = corr.attached(None, None)
    assert transfer(loose, [1.0, 2, 3, 4], onto=scan, what="scalars").shape == (3,)
    assert transfer(loose, [1.0, 2, 3], what="scalars").shape == (4,)
    # Both shapes of one size: only the map's own shapes, or their hashes, tell.
    first, second = template, replace(template, points=template.points + 1)
    square = Correspondence(np.array([1, 2, 3, 0]), 4, source=first, target=second)
    values = np.arange(4.0)
    pulled, pushed = [1, 2, 3, 0], [3, 0, 1, 2]
    assert transfer(square, values, onto=first, what="scalars").tolist() == pulled
    assert transfer(square, values, onto=second, what="scalars").tolist() == pushed
    assert transfer(square, values, of=first, what="scalars").tolist() == pushed
    square.save(tmp_path / "map.npz")
    loaded = Correspondence.load(tmp_path / "map.npz")
    again = Shape(points=first.points, faces=first.faces)
    assert transfer(loaded, values, onto=again, what="scalars").tolist() == pulled
    bare = square.attached(None, None)
    with pytest.raises(UsageError, match="fits both ways"):
        transfer(bare, values, onto=first, what="scalars")
    assert transfer(bare, values, onto=first, what="scalars", direction="push").tolist() == pushed


def test_a_map_of_a_shape_onto_itself_pulls(template: Shape) -> None:
    corr = Correspondence(np.array([1, 2, 3, 0]), 4, source=template, target=template)
    assert transfer(corr, np.arange(4.0), onto=template, what="scalars").tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("what", "values", "error", "words"),
    [
        ("colors", np.zeros((4, 3)), InputError, "float64 of shape"),
        ("colors", "the scan", InputError, "no colours"),
        ("labels", np.zeros(4), InputError, "float64 of shape"),
        ("labels", "the scan", InputError, "no labels"),
        ("scalars", ["a", "b", "c", "d"], InputError, "as scalars"),
        ("scalars", np.zeros(7), InputError, "one row for each of the 4"),
        ("landmarks", np.zeros((4, 3)), InputError, "as landmarks"),
        ("texture", "the scan", InputError, "without a picture"),
        ("deformation", np.zeros((4, 3)), InputError, "to deform"),
        ("everything", np.zeros(4), UsageError, "got what='everything'"),
    ],
)
def test_what_cannot_be_carried(
    corr: Correspondence, scan: Shape, what: Any, values: Any, error: type[Exception], words: str
) -> None:
    bare = Shape(points=np.zeros((4, 3)))
    with pytest.raises(error, match=words):
        transfer(corr, bare if isinstance(values, str) else values, onto=scan, what=what)


def test_shapes_that_are_missing(corr: Correspondence, scan: Shape, template: Shape) -> None:
    loose = corr.attached(None, None)
    with pytest.raises(UsageError, match="got no shape to carry onto"):
        transfer(loose, template, what="colors")
    with pytest.raises(UsageError, match="'of'"):
        transfer(loose, "marks.csv", onto=scan, what="landmarks")
    with pytest.raises(InputError, match="belongs to"):
        transfer(loose, np.zeros(7), what="scalars")
    with pytest.raises(InputError, match="as the source"):
        transfer(loose, template, onto=template, what="colors", direction="pull")


# The nearest place on a surface.


def test_the_nearest_place_in_a_triangle() -> None:
    corners = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]] * 5)
    asked = np.array([[0.25, 0.25, 3], [-1, -1, 0], [0.5, -2, 1], [1, 1, 0], [9, 0, 0]])
    found = nearest_in_triangles(asked, corners)
    places = np.einsum("nk,nkd->nd", found, corners)
    expected = [[0.25, 0.25, 0], [0, 0, 0], [0.5, 0, 0], [0.5, 0.5, 0], [1, 0, 0]]
    np.testing.assert_allclose(places, expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), flat=st.booleans())
def test_the_nearest_place_is_nowhere_else(seed: int, flat: bool) -> None:
    """Against a fine sample of every triangle; large, small and degenerate ones together."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3)) * rng.choice([0.01, 1, 30], (12, 1))
    points[:, 2] *= not flat
    shape = Shape(points=points, faces=rng.integers(0, 12, (15, 3)))
    asked = rng.normal(size=(6, 3)) * 3
    found = Surface(shape).nearest(asked)
    np.testing.assert_allclose(
        np.linalg.norm(found.on(points) - asked, axis=1), found.distances, atol=1e-9
    )
    assert (found.weights >= 0).all()
    steps = np.linspace(0, 1, 13)
    grid = np.array([(1 - a, a * (1 - b), a * b) for a in steps for b in steps])
    sample = np.einsum("sk,fkd->fsd", grid, points[shape.faces]).reshape(-1, 3)
    nearest = np.linalg.norm(sample[None] - asked[:, None], axis=2).min(axis=1)
    assert (found.distances <= nearest + 1e-9).all()


def test_a_cloud_has_points_only() -> None:
    found = Surface(Shape(points=np.eye(3))).nearest(np.array([[2.0, 0, 0]]))
    assert found.on(np.eye(3)).tolist() == [[1, 0, 0]]
    assert (found.distances.tolist(), found.faces.tolist()) == ([1], [-1])


# Values in files.


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".txt"])
@pytest.mark.parametrize("values", [[1, -1, 3], [0.5, np.nan, 2.0], [[1.0, 2.5]] * 3])
def test_values_survive_a_file(tmp_path: Path, scan: Shape, suffix: str, values: Any) -> None:
    path = tmp_path / f"values{suffix}"
    array = np.array(values)
    write_values(array, scan, path)
    read = read_values(path)
    np.testing.assert_equal(read, array)
    assert read.dtype == array.dtype


def test_values_in_a_ply_are_float_properties(tmp_path: Path, template: Shape) -> None:
    import trimesh

    path = tmp_path / "one.ply"
    write_values(np.array([0.5, 1, 2, np.nan]), template, path)
    assert b"\nproperty float quality\n" in path.read_bytes()[:400]
    other = trimesh.load(path, process=False)
    data = other.metadata["_ply_raw"]["vertex"]["data"]
    np.testing.assert_equal(np.asarray(data["quality"]), np.float32([0.5, 1, 2, np.nan]))
    np.testing.assert_allclose(other.vertices, template.points)
    assert np.array_equal(other.faces, template.faces)
    assert np.array_equal(io.load(path).points, template.points)
    write_values(np.zeros((4, 2)), template, tmp_path / "two.ply")
    header = (tmp_path / "two.ply").read_bytes()[:400]
    assert b"property float scalar_0\nproperty float scalar_1\n" in header


def test_values_that_cannot_be_read(tmp_path: Path, scan: Shape) -> None:
    path = tmp_path / "bad.csv"
    for text, words in (
        ("1\nx\n", "line 2"),
        ("1,2\n3\n", "line 2"),
        ("", "no values"),
        ("height\n", "no values"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read_values(path)
    path.write_text("height\n1.5\n2.5\n")
    assert read_values(path).tolist() == [1.5, 2.5]
    np.save(tmp_path / "bad.npy", np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match=r"expected \(N,\) or \(N, k\)|numbers"):
        read_values(tmp_path / "bad.npy")
    with pytest.raises(UsageError, match="that of values"):
        read_values(tmp_path / "a.xls")
    with pytest.raises(UsageError, match="that of values"):
        write_values(np.zeros(3), scan, tmp_path / "a.off")
