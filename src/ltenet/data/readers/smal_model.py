"""The SMAL model [Zuffi et al. 2017] as plain arrays: `python -m ltenet.data.readers.smal_model`.

Users get the model as a Python 2 pickle of numpy, scipy and chumpy objects. A process of its own
reads it once, by an allow-list that runs nothing, and writes `smal_model.npz`, which every other
tool can open. The licence does not let anybody pass the model on, converted or not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.io.formats.pickled_arrays import read_pickled

#: Arrays of the model, and their number of dimensions.
ARRAYS = {
    "v_template": 2,  # (V, 3) mean shape
    "f": 2,  # (F, 3) faces from 0
    "shapedirs": 3,  # (V, 3, B) shape space
    "posedirs": 3,  # (V, 3, 9 (J - 1)) pose correctives
    "J_regressor": 2,  # (J, V) joints from vertices
    "weights": 2,  # (V, J) skinning
    "kintree_table": 2,  # (2, J) parents and joints
}
FILE = "smal_model.npz"


def read_smal_model(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a model file; nothing in it runs."""
    try:
        with path.open("rb") as stream:
            content = read_pickled(stream)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: got more than arrays, or a damaged file ({error}), expected a SMAL model; "
            "try the file as its authors distribute it"
        ) from None
    found = content if isinstance(content, dict) else {}
    arrays = {name: np.asarray(found[name]) for name in ARRAYS if name in found}
    wrong = [
        name
        for name, dimensions in ARRAYS.items()
        if name not in arrays
        or arrays[name].ndim != dimensions
        or arrays[name].dtype.kind not in "iuf"
    ]
    if wrong:
        raise InputError(
            f"{path}: got a file without fitting {', '.join(wrong)}, expected the arrays of a SMAL "
            "model; try smal_CVPR2017.pkl"
        )
    count, joints = len(arrays["v_template"]), arrays["weights"].shape[1]
    sizes = {
        "shapedirs": len(arrays["shapedirs"]) == count,
        "posedirs": len(arrays["posedirs"]) == count,
        "weights": len(arrays["weights"]) == count,
        "J_regressor": arrays["J_regressor"].shape == (joints, count),
        "kintree_table": arrays["kintree_table"].shape == (2, joints),
        "f": 0 <= arrays["f"].min(initial=0) <= arrays["f"].max(initial=0) < count,
    }
    if not all(sizes.values()):
        names = ", ".join(name for name, fine in sizes.items() if not fine)
        raise InputError(
            f"{path}: got {names} that do not fit {count} vertices and {joints} joints, expected "
            "the arrays of one model; try downloading it again"
        )
    return arrays


def convert_smal(path: Path, folder: Path, *, force: bool = False) -> Path:
    """Convert a model file in a process of its own; returns the archive."""
    target = folder / FILE
    words = [sys.executable, "-m", "ltenet.data.readers.smal_model", str(path), str(target)]
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*words, *(["--force"] if force else [])], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InputError(
            f"{path}: got a file that cannot be converted ({reason}), expected a SMAL model; try "
            "the file as its authors distribute it"
        )
    return target


def _main(words: list[str]) -> int:
    """Convert WORDS[0] into WORDS[1], in the process that `convert_smal` starts."""
    try:
        arrays = read_smal_model(Path(words[0]))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return InputError.exit_code
    with atomic_path(Path(words[1]), force="--force" in words) as temporary:
        np.savez_compressed(temporary, **arrays)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
