"""Generated bodies with triangulations of their own."""

from __future__ import annotations

import numpy as np
import pytest

from ltenet.bodies.body_pairs import own_generator
from ltenet.data.generated_meshes import INDIVIDUALS, GeneratedMeshes
from ltenet.evaluation.bench.benchmarks import open_benchmark, protocol_of
from ltenet.geometry.normals import face_areas


@pytest.fixture(scope="module")
def people() -> GeneratedMeshes:
    return GeneratedMeshes("people", ("human",), 9, vertices=600)


def test_meshes_are_closed_and_have_numberings_of_their_own(people: GeneratedMeshes) -> None:
    first, second = people.shape(0), people.shape(1)
    for shape in (first, second):
        assert len(shape) == 600
        assert shape.faces is not None
        assert abs(len(shape.faces) - 2 * 600) < 40  # nearly Euler's formula
        body = own_generator("human").draw(9, 0, individual=0)
        whole = face_areas(
            body.vertices.astype(float), own_generator("human").templates["human"].faces
        ).sum()
        assert face_areas(shape.points, shape.faces).sum() == pytest.approx(whole, rel=0.15)
    assert not np.array_equal(first.faces, second.faces)


def test_lists_name_the_vertices_nearest_to_those_of_the_template(people: GeneratedMeshes) -> None:
    truth = people.listed(0, 2)
    body = own_generator("human").draw(9, 2, individual=1).vertices
    shape = people.shape(2)
    off = np.linalg.norm(shape.points[truth.target] - body, axis=1)
    apart = np.linalg.norm(shape.points[:, None] - body[None], axis=2).min(axis=0)
    assert off.mean() < 1.3 * apart.mean()
    mirrored = people.mirrored(0, 2)
    assert mirrored is not None
    mirror = own_generator("human").templates["human"].mirror
    np.testing.assert_array_equal(mirrored[mirror], truth.target)


def test_two_poses_of_one_person_have_the_same_build() -> None:
    generator = own_generator("human")
    faces = generator.templates["human"].faces
    areas = [
        face_areas(generator.draw(9, index, individual=person).vertices.astype(float), faces)
        for index, person in ((0, 0), (1, 0), (2, 1))
    ]
    same, other = (np.abs(np.log(areas[0] / one)).mean() for one in areas[1:])
    assert same < 0.5 * other


def test_pairs_are_of_one_individual_or_of_one_species() -> None:
    shapes = open_benchmark("generated_r")
    assert protocol_of("generated_r") == "listed"
    assert len(shapes.pairs) == 2 * 2 * INDIVIDUALS
    individuals = shapes.pairs // 2
    assert (individuals[:, 0] == individuals[:, 1]).sum() == 2 * INDIVIDUALS
    assert all(shapes.categories[i] == shapes.categories[j] for i, j in shapes.pairs)
