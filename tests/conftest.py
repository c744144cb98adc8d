"""What several tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from ltenet.shape import Shape


def pytest_configure() -> None:
    """Heed Ctrl-C and hang-ups even in the background, so that the children of tests do, too."""
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in a browser are slow, all of them."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def benchmark_data() -> Path:
    """Folder with tosca.npz, shrec19.npz and faust.npz; without it the test is skipped."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LTENET_DATA", default))
    needed = ("tosca.npz", "shrec19.npz", "faust.npz")
    if not all((folder / name).is_file() for name in needed):
        pytest.skip(
            f"the evaluation archives ({', '.join(needed)}) are not in {folder}; "
            "set LTENET_DATA to the folder that holds them"
        )
    return folder


@pytest.fixture
def tetrahedron() -> Shape:
    """Four vertices, four faces, colours and labels."""
    return Shape(
        points=np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.1]]),
        faces=np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
        colors=np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7]], np.uint8),
        labels=np.array([3, 1, 4, 1]),
        name="tetrahedron",
    )
