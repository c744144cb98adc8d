"""A network as a folder: `config.json` beside `model.safetensors`, every tensor checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ltenet.errors import InputError
from ltenet.files import atomic_path

#: Files of a saved network.
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def write_network(
    network: nn.Module, settings: Mapping[str, Any], folder: str | Path, *, force: bool = False
) -> None:
    """Write the weights of a network and its settings into a folder.

    Nothing is overwritten without `force`, and no half-written file is ever left behind.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: value.contiguous() for name, value in network.state_dict().items()}
    with atomic_path(folder / WEIGHTS, force=force) as path:
        save_file(state, path, metadata={"format": "pt"})
    with atomic_path(folder / CONFIG, force=force) as path:
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def check_sizes(path: Path, expected: Mapping[str, Tensor]) -> None:
    """Refuse weights whose tensors are not those of `expected`, before memory is taken."""
    try:
        with safe_open(path, "pt") as file:
            sizes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{path}: got weights that cannot be read ({error}), expected a complete "
            "safetensors file; try copying the folder again"
        ) from None
    problems = [
        f"{kind} {', '.join(sorted(names)[:3])}"
        for kind, names in (
            ("missing", set(expected) - set(sizes)),
            ("unexpected", set(sizes) - set(expected)),
            (
                "of another size",
                {k for k in set(expected) & set(sizes) if tuple(expected[k].shape) != sizes[k]},
            ),
        )
        if names
    ]
    if problems:
        raise InputError(
            f"{path}: got tensors that do not fit config.json ({', '.join(problems)}), "
            "expected those of that configuration; try keeping the two files of a folder "
            "together"
        )


def read_into(network: nn.Module, path: Path, expected: Mapping[str, Tensor]) -> None:
    """Load checked weights into a network, in the types of `expected`."""
    state = load_file(path)
    network.load_state_dict({key: state[key].to(expected[key].dtype) for key in expected})
