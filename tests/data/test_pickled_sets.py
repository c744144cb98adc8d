"""Files that DPC leaves behind, as its tools write them, and hostile ones beside."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.data.readers import open_set
from ltenet.errors import InputError
from ltenet.io.formats.pickled_arrays import read_pickled

VERTICES = np.random.default_rng(0).normal(size=(4, 70, 3)).astype(np.float32)
FACES = np.array([[0, 1, 2], [2, 3, 4]])


def test_a_selection_of_surreal(tmp_path: Path) -> None:
    file = tmp_path / "datas_surreal_train_1800.pth"
    torch.save(np.copy(VERTICES), file, pickle_protocol=4)
    shapes = open_set("surreal", tmp_path)
    assert len(shapes) == 4
    np.testing.assert_allclose(shapes.shape(2).points, VERTICES[2])
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert len(truth.source) == 70


@pytest.mark.parametrize("protocol", [2, 4])
def test_the_cached_animals(tmp_path: Path, protocol: int) -> None:
    content = (list(VERTICES.astype(np.float64)), FACES)
    torch.save(content, tmp_path / "data_train.pth", pickle_protocol=protocol)
    shapes = open_set("smal", tmp_path)
    shape = shapes.shape(3)
    np.testing.assert_allclose(shape.points, VERTICES[3][:, [1, 2, 0]])
    np.testing.assert_array_equal(shape.faces, FACES)


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.place}",)


@pytest.mark.parametrize("wrapped", [False, True])
def test_code_in_a_file_never_runs(tmp_path: Path, wrapped: bool) -> None:
    proof = tmp_path / "proof"
    content: Any = ([VERTICES[0], Evil(proof)], FACES) if wrapped else Evil(proof)
    torch.save(content, tmp_path / "data_train.pth")
    with pytest.raises(InputError, match=r"the name (posix|nt)\.system"):
        open_set("smal", tmp_path)
    assert not proof.exists()


def archive(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", content)
    return path


def array_pickle(shape: tuple[int, ...], content: bytes, code: str = "f4") -> bytes:
    """Pickle an array by hand, with a shape that need not fit."""

    class Fake:
        def __reduce__(self) -> Any:
            reconstruct = np.zeros(1).__reduce__()[0]
            state = (1, shape, np.dtype(code), False, content)
            return reconstruct, (np.ndarray, (0,), b"b"), state

    return pickle.dumps(Fake(), protocol=4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (array_pickle((10**12, 3), b"1234"), "4 bytes for an array of shape"),
        (array_pickle((-1, 3), b""), "array"),
        (array_pickle((1, 1, 3), b"", "O"), "an array of 'O8'"),
        (pickle.dumps(VERTICES)[:-20], "damaged"),
        (pickle.dumps({"a": 1}), "a dict"),
        (pickle.dumps(np.sum), "the name numpy.sum"),
        (b"", "damaged"),
    ],
)
def test_damaged_and_dishonest_arrays(tmp_path: Path, content: bytes, message: str) -> None:
    archive(tmp_path / "datas_surreal_train_1800.pth", content)
    with pytest.raises(InputError, match=message):
        open_set("surreal", tmp_path)


def test_functions_cannot_be_changed() -> None:
    """BUILD with a pair of states sets attributes of whatever is on the stack."""
    program = b"c_codecs\nencode\n(N}X\x0c\x00\x00\x00__defaults__K\x01stb."
    with pytest.raises(ValueError, match="a change to a function"):
        read_pickled(io.BytesIO(program))


def test_bombs_of_nesting() -> None:
    nested: Any = VERTICES[0]
    for _ in range(30):
        nested = [nested]
    with pytest.raises(ValueError, match="nested too deeply"):
        read_pickled(io.BytesIO(pickle.dumps(nested)))
