"""Checkpoints: everything that a run needs to go on as if it had never stopped.

Written whole or not at all. Loading executes nothing: tensors, numbers and texts only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.io.formats.torch_files import check_records

#: Raised when a change makes older checkpoints mean something else.
FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two steps.

    Attributes
    ----------
    step
        Steps done.
    seconds
        Time they took, interruptions not counted.
    best_score, best_step
        Lowest validation score so far and where; infinity and 0 before the first.
    config
        The run's settings as TOML.
    model, average, optimizer
        State dictionaries.
    random_states
        Of torch's generators: the CPU's, then each GPU's.
    """

    step: int
    seconds: float
    best_score: float
    best_step: int
    config: str
    model: dict[str, Tensor]
    average: dict[str, Tensor]
    optimizer: dict[str, Any]
    random_states: list[Tensor]


def random_states() -> list[Tensor]:
    """States of torch's generators. The pairs need none: they are found by their index."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *gpus]


def restore_random_states(states: list[Tensor]) -> None:
    """Undo what happened to the generators since `random_states`."""
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint in place of the last one."""
    content = {field.name: getattr(checkpoint, field.name) for field in fields(checkpoint)}
    with atomic_path(path, force=True) as temporary:
        torch.save({"format": FORMAT, **content}, temporary)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read what `write_checkpoint` wrote, onto the CPU."""
    try:
        check_records(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(
            f"{path}: got no checkpoint, expected a run that has saved at least once; try starting "
            "it again with --force"
        ) from None
    except Exception as error:  # the restricted unpickler raises whatever it stumbles over
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{path}: got a damaged checkpoint ({reason}), expected the file that training wrote; "
            "try copying the run again"
        ) from None
    found = content.pop("format", None) if isinstance(content, dict) else None
    if found != FORMAT or set(content) != {field.name for field in fields(Checkpoint)}:
        raise InputError(
            f"{path}: got a checkpoint of format {found!r}, expected format {FORMAT}; try the "
            "version of ltenet that wrote it"
        )
    return Checkpoint(**content)
