"""Shapes, maps and a browser for the tests of the viewer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ltenet.bodies.humans import HumanGenerator
from ltenet.correspondence import Correspondence
from ltenet.shape import Shape
from tools.chromium import Browser, find_chromium


@pytest.fixture(scope="session")
def people() -> tuple[Shape, Shape]:
    """Two generated people of one numbering: vertex i is vertex i."""
    generator = HumanGenerator()
    faces = generator.template.faces
    source, target = (
        Shape(generator.draw(11, index).vertices, faces, name=name)
        for index, name in ((5, "walker"), (8, "sitter"))
    )
    return source, target


@pytest.fixture(scope="session")
def rough_map(people: tuple[Shape, Shape]) -> Correspondence:
    """A soft map with some noise, with scores, and without partners below the ankles."""
    source, target = people
    rng = np.random.default_rng(3)
    indices = np.arange(len(source))
    wrong = rng.random(len(source)) < 0.1
    indices[wrong] = rng.integers(0, len(target), int(wrong.sum()))
    neighbors = np.stack([indices, np.roll(indices, 1)], axis=1)
    weights = np.tile([1.0, 0.0], (len(source), 1))
    lost = source.points[:, 1] < np.quantile(source.points[:, 1], 0.05)
    return Correspondence(
        np.where(lost, -1, indices),
        len(target),
        scores=np.where(wrong, 0.2, 0.9),
        neighbors=neighbors,
        weights=weights,
        details={"model": "human", "options": {"points": 1024}},
    )


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("there is no Chromium; tools/install_chromium.sh installs Debian's")
    browser = Browser(executable, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures of the pages are kept, for people to look at."""
    default = Path(__file__).parents[2] / "out" / "screenshots"
    return Path(os.environ.get("LTENET_SCREENSHOTS", default))
