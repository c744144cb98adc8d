"""Sharpening: eigenfunctions move the places of a coherent map, where and as far as they may."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from ltenet.data.generated_meshes import GeneratedMeshes
from ltenet.method.laplacian import laplacian_basis
from ltenet.refinement import sharpening
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair
from ltenet.refinement.sharpening import sharpen, spectral_distances
from ltenet.shape import Shape, normalizing_matrix


def person(index: int, *, vertices: int) -> Shape:
    """A mesh of root-mean-square radius 0.5; 0 and 1 are one person, 2 is another."""
    shape = GeneratedMeshes("people", ("human",), 9, vertices=vertices).shape(index)
    return shape.transformed(normalizing_matrix(shape.points))


def embedded(shape: Shape, *, faces: bool = True) -> EmbeddedShape:
    points = torch.tensor(shape.points)
    triangles = torch.tensor(shape.faces) if faces and shape.faces is not None else None
    return EmbeddedShape(points, torch.ones(len(points), 2), faces=triangles)


def off_the_truth(points: Tensor, size: float, seed: int) -> Tensor:
    """Move points along a smooth random field of a given size, as a coherent map errs."""
    rng = np.random.default_rng(seed)
    waves = torch.from_numpy(rng.normal(size=(3, 24)) * 6)
    phases = torch.from_numpy(rng.uniform(0, 6, 24))
    amounts = torch.from_numpy(rng.normal(size=(24, 3)))
    field = torch.cos(points @ waves + phases) @ amounts
    return points + size * field / field.norm(dim=1).mean()


def test_a_turned_copy_is_found_by_its_eigenfunctions() -> None:
    shape = person(0, vertices=1300)
    turned = Shape(shape.points @ Rotation.random(random_state=1).as_matrix().T, shape.faces)
    pair = Pair(embedded(shape), embedded(turned))
    places = off_the_truth(pair.target.points, 0.03, 5)
    before = (places - pair.target.points).norm(dim=1)
    found = sharpen(pair, places, before)
    assert found is not None
    after = (found - pair.target.points).norm(dim=1)
    assert after.mean() < 0.5 * before.mean()


def test_places_that_are_certain_stay() -> None:
    shape = person(0, vertices=1300)
    pair = Pair(embedded(shape), embedded(person(2, vertices=1300)))
    generator = torch.Generator().manual_seed(0)
    corners = pair.target.points[torch.randint(1300, (1300,), generator=generator)]
    certain = sharpen(pair, corners, torch.zeros(1300))
    doubtful = sharpen(pair, corners, torch.full((1300,), 0.3))
    assert certain is not None
    assert doubtful is not None
    moved = (certain - corners).norm(dim=1).mean(), (doubtful - corners).norm(dim=1).mean()
    assert moved[0] < 1.5 * float(pair.target.spacing)
    assert moved[1] > 1.5 * moved[0]


def test_distances_in_the_aligned_basis_vanish_at_the_truth() -> None:
    shape = person(0, vertices=1300)
    order = torch.from_numpy(np.random.default_rng(2).permutation(1300))
    points, faces = torch.tensor(shape.points), torch.tensor(shape.faces)
    ours = laplacian_basis(points, 40, faces=faces)
    theirs = laplacian_basis(points[order], 40, faces=order.argsort()[faces])
    truth = order.argsort()  # (1300,)
    listed = torch.stack([truth, truth.roll(1)], dim=1)  # (1300, 2)
    apart = spectral_distances(ours, theirs, truth, listed, 40)
    # Independently: bases of one shape differ by an orthogonal matrix.
    assert apart[:, 0].max() < 1e-6
    rolled = (ours.functions - ours.functions.roll(1, dims=0)).square().sum(dim=1)
    torch.testing.assert_close(apart[:, 1].double(), rolled, rtol=1e-3, atol=1e-3)


def test_what_cannot_be_sharpened_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = person(0, vertices=1300)
    points = torch.tensor(shape.points)
    mesh, cloud = embedded(shape), embedded(shape, faces=False)
    none = torch.zeros(1300)
    assert sharpen(Pair(mesh, cloud), points, none) is None
    assert sharpen(Pair(cloud, mesh), points, none) is None
    small = embedded(person(0, vertices=300))
    assert sharpen(Pair(small, small), small.points, torch.zeros(300)) is None
    flat = torch.zeros(10, 3, dtype=torch.int64)  # faces without area, on a few vertices
    broken = EmbeddedShape(points, torch.ones(1300, 2), faces=flat)
    assert sharpen(Pair(broken, mesh), points, none) is None
    monkeypatch.setattr(sharpening, "_MOST_POINTS", 899)
    assert sharpen(Pair(mesh, mesh), points, none) is None
