from __future__ import annotations

import numpy as np
import pytest

from ltenet.geometry.winding import is_closed, is_inside_out, signed_volume
from ltenet.shape import Shape

CUBE = np.array([[x, y, z] for x in (0.0, 1) for y in (0.0, 1) for z in (0.0, 1)])
CUBE_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ]
)  # fmt: skip


def test_a_cube_has_its_volume_wherever_it_is() -> None:
    assert signed_volume(CUBE, CUBE_FACES) == pytest.approx(1)
    assert signed_volume(2 * CUBE + 1e4, CUBE_FACES) == pytest.approx(8)
    assert signed_volume(CUBE, CUBE_FACES[:, ::-1]) == pytest.approx(-1)


def test_the_volume_is_that_of_another_program() -> None:
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(subdivisions=2)
    bent = ball.vertices * (1 + 0.3 * np.sin(3 * ball.vertices[:, :1]))
    assert signed_volume(bent, ball.faces) == pytest.approx(
        trimesh.Trimesh(bent, ball.faces, process=False).volume
    )


def test_inside_out_is_told_for_closed_meshes_only(tetrahedron: Shape) -> None:
    assert tetrahedron.faces is not None
    turned = tetrahedron.faces[:, ::-1]
    assert not is_inside_out(tetrahedron.points, tetrahedron.faces)
    assert is_inside_out(tetrahedron.points, turned)
    assert is_inside_out(tetrahedron.points * (-1, 1, 1), tetrahedron.faces)  # a mirrored file
    assert not is_inside_out(tetrahedron.points, turned[:-1])  # open
    assert not is_inside_out(tetrahedron.points, None)


def test_closed_means_no_boundary_and_one_orientation() -> None:
    assert is_closed(CUBE_FACES)
    assert not is_closed(CUBE_FACES[1:])
    one_flipped = CUBE_FACES.copy()
    one_flipped[0] = one_flipped[0, ::-1]
    assert not is_closed(one_flipped)
    assert not is_closed(np.vstack([CUBE_FACES, CUBE_FACES[:1]]))
    assert not is_closed(np.zeros((0, 3), int))
