"""Valid files that the fuzzer starts from, and the readers that they belong to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.shape import Shape


@dataclass(frozen=True)
class Seed:
    """A valid file.

    Attributes
    ----------
    name
        The file that is mutated.
    content
        Its bytes.
    kind
        Its structure, a key of `fuzz_mutations.KINDS`.
    beside
        Files that stand beside it, unchanged.
    opened
        What the reader is given, where that is not the file: a file beside it, or ".".
    """

    name: str
    content: bytes
    kind: str
    beside: dict[str, bytes]
    opened: str | None = None


@dataclass(frozen=True)
class Reader:
    """A function of ltenet that reads files of unknown origin, and its seeds."""

    read: Callable[[Path], Any]
    seeds: Callable[[], list[Seed]]


SHAPE = Shape(
    points=np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.5]]),
    faces=np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
    colors=np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7]], np.uint8),
    labels=np.array([3, 1, 4, 1]),
)


def written(name: str, write: Callable[[Path], object]) -> bytes:
    """Return what `write` puts into a file of this name."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()
