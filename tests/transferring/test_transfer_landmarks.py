"""Landmarks: their files, with the axes these mean, and their way along a map."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ltenet.bodies.body_pairs import own_generator
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray
from ltenet.io.landmarks import Landmarks, read_landmarks, write_landmarks
from ltenet.shape import Shape
from ltenet.transferring.landmarks import carry_landmarks
from ltenet.transferring.transfer import transfer

# As 3D Slicer writes them.
FCSV = """# Markups fiducial file version = 4.11
# CoordinateSystem = {system}
# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID
vtkMRMLMarkupsFiducialNode_0,1.5,-2,3,0,0,0,1,1,1,0,F-1,"tip, left",vtkMRMLScalarVolumeNode1
vtkMRMLMarkupsFiducialNode_1,4,5,6.25,0,0,0,1,1,1,0,F-2,,
"""
MARKUPS = {
    "@schema": "https://raw.githubusercontent.com/slicer/slicer/master/markups-schema-v1.0.3.json#",
    "markups": [
        {
            "type": "Fiducial",
            "coordinateSystem": "RAS",
            "coordinateUnits": "mm",
            "controlPoints": [
                {"id": "1", "label": "F-1", "position": [1.5, -2.0, 3.0]},
                {"id": "2", "label": "F-2", "position": [4, 5, 6.25], "positionStatus": "defined"},
                {"id": "3", "label": "F-3", "positionStatus": "undefined"},
            ],
        }
    ],
}


@cache
def body(index: int) -> Shape:
    generator = own_generator("human")
    drawn = generator.draw(0, index)
    return Shape(points=drawn.vertices, faces=generator.templates[drawn.template].faces)


# Files.


@pytest.mark.parametrize(
    ("word", "system"), [("LPS", "LPS"), ("RAS", "RAS"), ("0", "RAS"), ("1", "LPS")]
)
def test_fcsv_of_slicer(tmp_path: Path, word: str, system: str) -> None:
    path = tmp_path / "marks.fcsv"
    path.write_text(FCSV.format(system=word))
    marks = read_landmarks(path)
    assert marks.names == ("F-1", "F-2")
    assert marks.points.tolist() == [[1.5, -2, 3], [4, 5, 6.25]]
    assert (marks.system, marks.descriptions) == (system, ("tip, left", ""))
    write_landmarks(marks, tmp_path / "again.fcsv")
    again = read_landmarks(tmp_path / "again.fcsv")
    assert (again.names, again.system) == (marks.names, system)
    assert np.array_equal(again.points, marks.points)
    assert again.descriptions == marks.descriptions
    assert f"# CoordinateSystem = {system}\n" in (tmp_path / "again.fcsv").read_text()


def test_old_fcsv_without_a_system_means_ras(tmp_path: Path) -> None:
    path = tmp_path / "marks.fcsv"
    path.write_text("\n".join(FCSV.splitlines()[2:]))
    assert read_landmarks(path).system == "RAS"


def test_markups_of_slicer(tmp_path: Path) -> None:
    path = tmp_path / "marks.mrk.json"
    path.write_text(json.dumps(MARKUPS))
    marks = read_landmarks(path)
    assert marks.names == ("F-1", "F-2", "F-3")
    np.testing.assert_equal(marks.points, [[1.5, -2, 3], [4, 5, 6.25], [np.nan] * 3])
    assert marks.system == "RAS"
    write_landmarks(marks, tmp_path / "again.mrk.json")
    written = json.loads((tmp_path / "again.mrk.json").read_text())["markups"][0]
    assert (written["type"], written["coordinateSystem"]) == ("Fiducial", "RAS")
    status = [point["positionStatus"] for point in written["controlPoints"]]
    assert status == ["defined", "defined", "undefined"]
    np.testing.assert_equal(read_landmarks(tmp_path / "again.mrk.json").points, marks.points)


def test_markups_without_a_system_mean_lps(tmp_path: Path) -> None:
    path = tmp_path / "marks.mrk.json"
    path.write_text('{"markups": [{"controlPoints": [{"label": "a", "position": [1, 2, 3]}]}]}')
    assert read_landmarks(path).system == "LPS"


def test_lps_and_ras_differ_in_two_signs() -> None:
    marks = Landmarks(("a",), np.array([[1.0, 2, 3]]), "LPS")
    assert marks.converted("RAS").points.tolist() == [[-1, -2, 3]]
    assert marks.converted("RAS").converted("LPS").points.tolist() == [[1, 2, 3]]
    assert marks.converted("LPS").points.tolist() == [[1, 2, 3]]


def test_csv_by_place_and_by_number(tmp_path: Path, tetrahedron: Shape) -> None:
    path = tmp_path / "marks.csv"
    path.write_text('name,x,y,z\n"tip, left",1,2,3\nlost,,,\n')
    marks = read_landmarks(path)
    assert marks.names == ("tip, left", "lost")
    np.testing.assert_equal(marks.points, [[1, 2, 3], [np.nan] * 3])
    write_landmarks(marks, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == 'name,x,y,z\n"tip, left",1.0,2.0,3.0\nlost,,,\n'
    path.write_text("nose,3\nchin,0\n")
    by_number = read_landmarks(path, tetrahedron)
    assert by_number.points.tolist() == tetrahedron.points[[3, 0]].tolist()
    write_landmarks(by_number, path, force=True)
    assert path.read_text() == "name,index\nnose,3\nchin,0\n"
    with pytest.raises(InputError, match="expected their shape"):
        read_landmarks(path)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "name,x,y,z\n", "no landmark"),
        ("a.csv", "a,1,2,3\nb,1\n", "line 2"),
        ("a.csv", "a,1,2\n", "line 1"),
        ("a.csv", "a,1,2,3\nb,x,2,3\n", "line 2"),
        ("a.csv", "a,1.5\n", "not whole"),
        ("a.csv", "a,4\n", "got 'a' at point 4"),
        ("a.fcsv", "# nothing\n", "no landmark"),
        ("a.fcsv", "1,2\n", "line 1"),
        ("a.fcsv", FCSV.format(system="IJK"), "IJK"),
        ("a.mrk.json", "{", "not JSON"),
        ("a.mrk.json", '{"markups": []}', "no readable control points"),
        (
            "a.mrk.json",
            '{"markups": [{"controlPoints": [{"position": [1]}]}]}',
            "expected 3, got 1",
        ),
    ],
)
def test_damaged_files(
    tmp_path: Path, tetrahedron: Shape, name: str, text: str, words: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_landmarks(path, tetrahedron)
    assert str(caught.value).startswith(str(path))


def test_other_complaints(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="that of landmarks"):
        read_landmarks(tmp_path / "a.xml")
    with pytest.raises(InputError, match="for 2 names"):
        Landmarks(("a", "b"), np.zeros((1, 3)))
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_landmarks(tmp_path / "a.csv")


# The way along a map.


def places(shape: Shape, count: int) -> FloatArray:
    """Return (count, 3) places inside triangles, the same ones for every body."""
    rng = np.random.default_rng(7)
    assert shape.faces is not None
    faces = shape.faces[rng.integers(0, len(shape.faces), count)]
    found: FloatArray = np.einsum(
        "nk,nkd->nd", rng.dirichlet(np.ones(3), count), shape.points[faces]
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.0, 0.1])
@pytest.mark.parametrize("to_source", [False, True])
def test_places_between_points_are_met(wrong: float, to_source: bool) -> None:
    source, target = body(0), body(1)
    indices = np.arange(len(source))
    rng = np.random.default_rng(0)
    lost = rng.random(len(source)) < wrong
    indices[lost] = rng.integers(0, len(source), lost.sum())
    corr = Correspondence(indices, len(target), source=source, target=target)
    giver, receiver = (target, source) if to_source else (source, target)
    names = tuple(f"p{i}" for i in range(100))
    carried = transfer(corr, Landmarks(names, places(giver, 100)), onto=receiver, what="landmarks")
    error = np.linalg.norm(carried.points - places(receiver, 100), axis=1) / receiver.diameter
    # Neighbouring points are about 1 % of the diameter apart.
    assert error.mean() < 0.001
    assert np.quantile(error, 0.9) < 0.002
    assert carried.names == names


def test_a_landmark_at_a_point_goes_to_its_partner() -> None:
    source, target = body(0), body(1)
    perm = np.random.default_rng(1).permutation(len(source))
    assert target.faces is not None
    shuffled = Shape(points=target.points[perm], faces=np.argsort(perm)[target.faces])
    corr = Correspondence(np.argsort(perm), len(target), source=source, target=shuffled)
    chosen = np.array([10, 500, 4000])
    marks = Landmarks(("a", "b", "c"), source.points[chosen], indices=chosen)
    carried = transfer(corr, marks, onto=shuffled, what="landmarks")
    assert carried.indices is not None
    assert carried.indices.tolist() == np.argsort(perm)[chosen].tolist()
    away = np.linalg.norm(carried.points - target.points[chosen], axis=1)
    assert away.max() < 1e-3 * target.diameter


def test_parts_that_the_map_leaves_out_lose_their_landmarks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, target = body(0), body(1)
    indices = np.where(source.points[:, 1] > np.median(source.points[:, 1]), np.arange(5014), -1)
    corr = Correspondence(indices, len(target), source=source, target=target)
    lowest, highest = source.points[:, 1].argmin(), source.points[:, 1].argmax()
    marks = Landmarks(("toe", "crown"), source.points[[lowest, highest]])
    with caplog.at_level(logging.WARNING):
        carried = transfer(corr, marks, onto=target, what="landmarks")
    assert np.isnan(carried.points).all(axis=1).tolist() == [True, False]
    assert "no partner on shape for toe" in caplog.text


def test_landmarks_in_the_other_system_are_noticed(caplog: pytest.LogCaptureFixture) -> None:
    source = body(0)
    corr = Correspondence(np.arange(len(source)), len(source), source=source, target=body(1))
    marks = Landmarks(("a", "b"), source.points[[5, 4000]], "LPS").converted("RAS")
    with caplog.at_level(logging.WARNING):
        transfer(corr, marks, onto=body(1), what="landmarks")
    assert "with x and y negated they lie on it: the landmarks are in RAS" in caplog.text


def test_landmarks_on_clouds(tmp_path: Path) -> None:
    x, y = np.meshgrid(np.arange(10.0), np.arange(10.0))
    flat = Shape(points=np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1))
    wide = Shape(points=flat.points * (2, 3, 1))
    corr = Correspondence(np.arange(100), 100, source=flat, target=wide)
    path = tmp_path / "marks.csv"
    path.write_text("name,x,y,z\na,4,5,0\n")
    assert transfer(corr, path, onto=wide, what="landmarks").points.tolist() == [[8, 15, 0]]


def test_landmarks_carry_the_probability_of_their_partners() -> None:
    shape = body(0)
    scores = np.linspace(0, 1, len(shape))
    corr = Correspondence(np.arange(len(shape)), len(shape), scores=scores)
    wanted = np.array([10, 4000, len(shape) - 1])
    marks = Landmarks(("a", "b", "c", "lost"), np.vstack([shape.points[wanted], [[np.nan] * 3]]))
    there = carry_landmarks(corr, marks, source=shape, target=shape, to_source=False)
    assert there.probabilities is not None
    np.testing.assert_allclose(there.probabilities[:3], scores[wanted], atol=0.05)
    assert np.isnan(there.probabilities[3])
    doubted = replace(marks, probabilities=np.array([0.5, np.nan, 1, 1]))
    again = carry_landmarks(corr, doubted, source=shape, target=shape, to_source=True)
    assert again.probabilities is not None
    np.testing.assert_allclose(
        again.probabilities[:3], there.probabilities[:3] * (0.5, 1, 1), atol=1e-9
    )
    silent = Correspondence(np.arange(len(shape)), len(shape))
    none = carry_landmarks(silent, marks, source=shape, target=shape, to_source=False)
    assert none.probabilities is None
