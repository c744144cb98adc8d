"""Small clouds of generated people in a folder, and options that match them quickly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ltenet.bodies.body_pairs import own_generator
from ltenet.io import save
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape

POINTS = 300


def person(index: int, *, points: int | None = POINTS) -> Shape:
    """A generated person, as a mesh or as some of its vertices, the same for every index."""
    generator = own_generator("human")
    body = generator.draw(986, index)
    faces = generator.templates["human"].faces.astype(np.int64)
    shape = Shape(body.vertices.astype(np.float64), faces, name=f"person{index}")
    if points is None:
        return shape
    return shape.subset(np.sort(np.random.default_rng(5).choice(len(shape), points, replace=False)))


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four clouds."""
    folder = tmp_path_factory.mktemp("people")
    for index in range(4):
        save(person(index), folder / f"p{index}.ply")
    return folder


@pytest.fixture
def quick() -> MatchConfig:
    """Nearest neighbours, nothing turned: about a tenth of a second a pair."""
    return MatchConfig(model="human", points=POINTS, orient="none", refine="none")
