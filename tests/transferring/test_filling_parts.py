"""What a part lacks is filled from the other shape, and marked."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from ltenet import io
from ltenet.bodies.body_pairs import own_generator
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.shape import Shape
from ltenet.transferring.filling import gap
from ltenet.transferring.marking import save_marked, write_marks
from ltenet.transferring.merging import merge_scans
from ltenet.transferring.surface import Surface
from ltenet.transferring.transfer import transfer, transfer_marked
from ltenet.transferring.wrapping import wrap


class Cut(NamedTuple):
    """A body, a template of the same numbering, and what a scan sees of the body."""

    body: Shape
    template: Shape
    scan: Shape
    seen: NDArray[np.bool_]

    @property
    def map(self) -> Correspondence:
        """The true map from the scan to the template."""
        rows = np.flatnonzero(self.seen)
        return Correspondence(rows, len(self.template), source=self.scan, target=self.template)


def part_of(shape: Shape, kept: NDArray[np.bool_]) -> Shape:
    """Some points of a mesh, and the triangles between them."""
    assert shape.faces is not None
    number = np.cumsum(kept) - 1
    return Shape(shape.points[kept], number[shape.faces[kept[shape.faces].all(axis=1)]])


@cache
def cut(index: int, *, cloud: bool = False) -> Cut:
    """Everything below the waist is missing."""
    generator = own_generator("human")
    drawn = [generator.draw(31, number) for number in (index, index + 1)]
    body, template = (
        Shape(one.vertices.astype(float), generator.templates[one.template].faces.astype(int))
        for one in drawn
    )
    seen = body.points[:, 1] > np.quantile(body.points[:, 1], 0.4)
    scan = part_of(body, seen)
    return Cut(body, template, Shape(scan.points) if cloud else scan, seen)


def edges(shape: Shape, points: NDArray[np.float64], kept: NDArray[np.bool_]) -> float:
    """Median length of the edges between some points."""
    assert shape.faces is not None
    pairs = shape.faces[kept[shape.faces].all(axis=1)][:, :2]
    return float(np.median(np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)))


@pytest.mark.slow
@pytest.mark.parametrize("cloud", [False, True])
@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_the_lower_body_comes_from_the_template(cloud: bool, unit: float) -> None:
    drawn = cut(4, cloud=cloud)
    template = replace(drawn.template, points=unit * drawn.template.points)
    bent, filled = transfer_marked(drawn.map, template, onto=drawn.scan, what="deformation")
    assert isinstance(bent, Shape)
    assert filled is not None
    away = np.linalg.norm(bent.points - drawn.body.points, axis=1) / drawn.body.diameter
    assert away[drawn.seen].mean() < 0.002  # what the scan shows is met
    assert filled[~drawn.seen].mean() > 0.75  # all but the rim
    assert filled[drawn.seen].mean() < 0.01
    # The legs are those of the template, at the size of the scan: neither shrunk nor in its unit.
    assert away[~drawn.seen].mean() < 0.12
    size = edges(drawn.body, bent.points, filled) / edges(drawn.body, drawn.body.points, filled)
    assert 0.8 < size < 1.25


@pytest.mark.slow
def test_of_a_whole_shape_nothing_is_filled() -> None:
    drawn = cut(4)
    count = len(drawn.body)
    bent = wrap(drawn.template, drawn.body, drawn.body.points, np.ones(count))
    assert not bent.filled.any()
    assert bent.distance < 0.001


def test_places_on_the_border_of_an_open_mesh() -> None:
    square = Shape(
        np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])
    )
    queries = np.array(
        [
            [0.5, 0.2, 1.0],  # above a triangle
            [0.5, -0.3, 0.0],  # beside an edge
            [2.0, 2.0, 0.0],  # beyond a corner
            [0.7, 0.3, 0.0],  # inside
        ]
    )
    surface = Surface(square)
    assert surface.at_border(surface.nearest(queries)).tolist() == [False, True, True, False]
    cloud = Surface(Shape(square.points))
    assert not cloud.at_border(cloud.nearest(queries)).any()


def test_a_closed_mesh_has_no_border(tetrahedron: Shape) -> None:
    surface = Surface(tetrahedron)
    queries = np.random.default_rng(0).normal(size=(50, 3)) * 3
    assert not surface.at_border(surface.nearest(queries)).any()


def test_gaps_are_told_by_the_spacing() -> None:
    x, y = np.meshgrid(np.arange(5.0), np.arange(5.0))
    grid = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1)
    assert gap(2 * grid) == pytest.approx(3.0)
    nowhere = np.full((3, 3), np.nan)
    assert gap(np.concatenate([grid, grid, nowhere])) == pytest.approx(1.5)  # no distances of 0
    assert gap(nowhere) == gap(grid[:1]) == 0.0


def test_colours_and_labels_that_are_missing_are_the_receivers_own(tetrahedron: Shape) -> None:
    giver = Shape(
        np.arange(9.0).reshape(3, 3),
        colors=np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3]], np.uint8),
        labels=np.array([7, 8, 9]),
    )
    corr = Correspondence(np.array([3, 0, -1]), 4, source=giver, target=tetrahedron)
    options = {"onto": tetrahedron, "fill": 1e-9}
    colored, filled = transfer_marked(corr, giver, what="colors", **options)  # type: ignore[arg-type]
    assert filled is not None
    assert filled.tolist() == [False, True, True, False]
    assert isinstance(colored, Shape)
    assert colored.colors is not None
    assert tetrahedron.colors is not None
    assert colored.colors[[0, 3]].tolist() == [[2, 2, 2], [1, 1, 1]]
    np.testing.assert_array_equal(colored.colors[1:3], tetrahedron.colors[1:3])
    labelled, _ = transfer_marked(corr, giver, what="labels", **options)  # type: ignore[arg-type]
    assert isinstance(labelled, Shape)
    assert labelled.labels is not None
    assert tetrahedron.labels is not None
    assert labelled.labels.tolist() == [8, *tetrahedron.labels[1:3], 7]
    # Without filling, and onto a shape that has none, gaps stay and nothing is marked.
    empty = transfer(corr, giver, onto=tetrahedron, what="labels", fill=0).labels
    assert empty is not None
    assert empty.tolist() == [8, -1, -1, 7]
    bare = replace(tetrahedron, labels=None)
    marked = transfer_marked(corr, giver, onto=bare, what="labels", fill=1e-9)
    assert marked.filled is not None
    assert not marked.filled.any()


def test_colours_with_and_without_alpha(tetrahedron: Shape) -> None:
    opaque = replace(tetrahedron, colors=np.full((4, 3), 9, np.uint8))
    clear = replace(tetrahedron, colors=np.full((4, 4), 5, np.uint8))
    corr = Correspondence(np.array([0, 1, -1, -1]), 4)
    onto_opaque = transfer(corr, clear, onto=opaque, what="colors", direction="pull")
    assert onto_opaque.colors is not None
    assert onto_opaque.colors.tolist() == [[5] * 4] * 2 + [[9, 9, 9, 255]] * 2
    onto_clear = transfer(corr, opaque, onto=clear, what="colors", direction="pull")
    assert onto_clear.colors is not None
    assert onto_clear.colors.tolist() == [[9] * 3] * 2 + [[5] * 3] * 2


def test_files_hold_the_marks(tetrahedron: Shape, tmp_path: Path) -> None:
    filled = np.array([True, False, False, True])
    assert save_marked(tetrahedron, filled, tmp_path / "a.ply")
    header = (tmp_path / "a.ply").read_bytes().split(b"end_header")[0].decode()
    assert "property uchar filled\n" in header
    again = io.load(tmp_path / "a.ply")
    np.testing.assert_array_equal(again.points, tetrahedron.points)
    np.testing.assert_array_equal(again.labels, tetrahedron.labels)  # type: ignore[arg-type]
    assert save_marked(tetrahedron, filled, tmp_path / "a.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npz")["filled"], [1, 0, 0, 1])
    np.testing.assert_array_equal(io.load(tmp_path / "a.npz").points, tetrahedron.points)
    assert not save_marked(tetrahedron, filled, tmp_path / "a.obj")
    # Nothing to mark: the file is the same as ever.
    assert save_marked(tetrahedron, np.zeros(4, bool), tmp_path / "b.ply")
    io.save(tetrahedron, tmp_path / "c.ply")
    assert (tmp_path / "b.ply").read_bytes() == (tmp_path / "c.ply").read_bytes()
    write_marks(filled, tmp_path / "marks.txt")
    assert (tmp_path / "marks.txt").read_text() == "1\n0\n0\n1\n"


def scans_of(drawn: Cut, *kept: NDArray[np.bool_], cloud: bool = False) -> list[Correspondence]:
    """True maps from parts of the body to the template."""
    maps = []
    for one in kept:
        scan = part_of(drawn.body, one)
        scan = Shape(scan.points) if cloud else scan
        maps.append(Correspondence(np.flatnonzero(one), len(one), source=scan))
    return maps


@pytest.mark.slow
@pytest.mark.parametrize("cloud", [False, True])
def test_two_halves_make_a_whole(cloud: bool) -> None:
    drawn = cut(4)
    height = drawn.body.points[:, 1]
    upper, lower = height > np.quantile(height, 0.4), height < np.quantile(height, 0.5)
    merged = merge_scans(scans_of(drawn, upper, lower, cloud=cloud), drawn.template)
    away = np.linalg.norm(merged.shape.points - drawn.body.points, axis=1) / drawn.body.diameter
    assert away.mean() < 0.002
    assert merged.filled.mean() < 0.01
    assert (merged.scans[upper & lower] == 2).all()
    assert np.array_equal(merged.shape.faces, drawn.template.faces)  # type: ignore[arg-type]


@pytest.mark.slow
def test_what_no_scan_shows_is_filled() -> None:
    drawn = cut(4)
    across = drawn.body.points[:, 0] - np.median(drawn.body.points[:, 0])
    left, right = drawn.seen & (across > -0.02), drawn.seen & (across < 0.02)
    merged = merge_scans(scans_of(drawn, left, right), drawn.template)
    assert merged.filled[~drawn.seen].mean() > 0.75
    assert merged.filled[drawn.seen].mean() < 0.01
    away = np.linalg.norm(merged.shape.points - drawn.body.points, axis=1) / drawn.body.diameter
    assert away[drawn.seen].mean() < 0.003


def test_merging_needs_the_scans(tetrahedron: Shape) -> None:
    with pytest.raises(UsageError, match="got no map"):
        merge_scans([], tetrahedron)
    with pytest.raises(InputError, match="map 0 without its scan"):
        merge_scans([Correspondence(np.arange(4), 4)], tetrahedron)
    lost = Correspondence(np.full(4, -1), 4, source=tetrahedron)
    with pytest.raises(InputError, match="at least 4"):
        merge_scans([lost], tetrahedron)
