"""The SMAL model file, in the layout that users get, and hostile files beside."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from ltenet.cli import main
from ltenet.data.readers.smal_model import read_smal_model
from ltenet.errors import InputError

RNG = np.random.default_rng(0)
MODEL: dict[str, Any] = {
    "v_template": RNG.normal(size=(6, 3)),
    "f": np.array([[0, 1, 2], [3, 4, 5]], dtype=np.uint32),
    "shapedirs": RNG.normal(size=(6, 3, 4)),
    "posedirs": np.asfortranarray(RNG.normal(size=(6, 3, 9))),
    "J_regressor": RNG.random((2, 6)),
    "weights": RNG.random((6, 2)),
    "kintree_table": np.array([[4294967295, 0], [0, 1]], dtype=np.uint32),
}


@pytest.fixture
def chumpy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class that is pickled as chumpy's arrays are; the reader must not need it."""
    module: Any = types.ModuleType("chumpy.ch")

    class Ch:
        def __init__(self, x: np.ndarray) -> None:
            self.x = x

    Ch.__module__, Ch.__qualname__ = "chumpy.ch", "Ch"
    module.Ch = Ch
    monkeypatch.setitem(sys.modules, "chumpy", types.ModuleType("chumpy"))
    monkeypatch.setitem(sys.modules, "chumpy.ch", module)
    return Ch


@pytest.mark.parametrize("protocol", [0, 2])
@pytest.mark.parametrize("sparse", [scipy.sparse.csc_matrix, scipy.sparse.csr_matrix])
def test_the_model(chumpy: Any, tmp_path: Path, protocol: int, sparse: Any) -> None:
    content = MODEL | {
        "shapedirs": chumpy(MODEL["shapedirs"]),
        "J_regressor": sparse(MODEL["J_regressor"]),
        "bs_style": "lbs",
    }
    file = tmp_path / "smal.pkl"
    file.write_bytes(pickle.dumps(content, protocol=protocol))
    found = read_smal_model(file)
    assert set(found) == set(MODEL)
    for name, array in MODEL.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "smal.pkl", tmp_path / "out"
    file.write_bytes(pickle.dumps(MODEL, protocol=2))
    words = ["data", "convert-smal", str(file), "-o", str(out)]
    assert main(words) == 0
    with np.load(out / "smal_model.npz") as found:
        np.testing.assert_array_equal(found["weights"], MODEL["weights"])
    assert main(words) == 2
    assert main([*words, "--force"]) == 0
    assert main(["data", "convert-smal", str(tmp_path / "no.pkl"), "-o", str(out / "x")]) == 4
    file.write_bytes(pickle.dumps(print))
    capsys.readouterr()
    assert main([*words, "--force"]) == 3
    assert "the name builtins.print" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cposix\nsystem\n(S'true'\ntR.", "the name posix.system"),
        (b"", "damaged"),
        (pickle.dumps([1]), "without fitting v_template"),
        (pickle.dumps(MODEL | {"f": np.array([[0, 1, 9]])}, protocol=2), "got f that do not fit"),
        (pickle.dumps(MODEL | {"weights": np.ones((5, 2))}, protocol=2), "got weights that"),
        (pickle.dumps(MODEL | {"weights": [None]}, protocol=2), "without fitting weights"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "smal.pkl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_smal_model(tmp_path / "smal.pkl")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02]r\xff\xff\xff\x7f.",  # LONG_BINPUT: a memo of 2^31 entries
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x3f].",  # FRAME: of 2^62 bytes
        b"\x80\x02T\xff\xff\xff\x7fabc.",  # BINSTRING: of 2^31 bytes
        b"\x80\x05\x96\xff\xff\xff\xff\x00\x00\x00\x00abc.",  # BYTEARRAY8: of 2^32 bytes
    ],
)
def test_pickles_that_declare_too_much_take_no_memory(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "smal.pkl"
    file.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(InputError, match="more than arrays, or a damaged file"):
        read_smal_model(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
