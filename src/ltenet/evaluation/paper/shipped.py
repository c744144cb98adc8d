"""Finished trainings that ship: `training.json` beside weights tells which training they are of.

A row finds its weights by it on a machine that has not trained them. `tools.ship_weights` writes
it; nothing else writes beside weights that ship.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from ltenet.configuration import from_dict, to_dict
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.io.formats.documents import read_json
from ltenet.method.model import available_weights, find_weights
from ltenet.training.config import TrainingConfig

#: Name of the record.
FILE = "training.json"
#: Largest record, in bytes.
_LIMIT = 2**20


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The finished training that weights are of.

    Attributes
    ----------
    preset
        Settings it started from.
    steps, minutes
        Its length; None for minutes that nobody noted.
    commit
        Of the code that trained, None if nobody noted it.
    passes
        Passes of four pairs that BatchNorm statistics were settled with.
    settings
        All settings of the run. They identify the training: presets change.
    """

    preset: str
    steps: int
    minutes: float | None = None
    commit: str | None = None
    passes: int
    settings: TrainingConfig


class ShippedTraining(NamedTuple):
    """Weights of a finished training.

    Attributes
    ----------
    weights
        Their folder in the package: only read.
    record
        What they are.
    """

    weights: Path
    record: TrainingRecord


def same_training(first: TrainingConfig, second: TrainingConfig) -> bool:
    """Whether two runs learn the same; the pace at which they do may differ."""
    pace = {name: getattr(second, name) for name in ("threads", "checkpoint_minutes")}
    return replace(first, **pace) == second


def find_shipped(config: TrainingConfig) -> ShippedTraining | None:
    """Return the shipped weights of exactly this training; None if there are none."""
    if config.name not in available_weights():
        return None
    folder = find_weights(config.name)
    record = read_record(folder)
    if record is None or not same_training(record.settings, config):
        return None
    return ShippedTraining(folder, record)


def read_record(folder: Path) -> TrainingRecord | None:
    """Read the record beside weights; None if there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    values: Any = read_json(path, limit=_LIMIT)
    needed = {item.name for item in fields(TrainingRecord) if item.default is MISSING}
    missing = sorted(needed - set(values)) if isinstance(values, dict) else []
    if missing:
        raise InputError(
            f"{path}: got a record without {', '.join(missing)}, expected the one that ships with "
            "the weights; try installing ltenet again"
        )
    return from_dict(TrainingRecord, values, where=str(path))


def write_record(folder: Path, record: TrainingRecord) -> None:
    """Write the record beside weights; what nobody noted is left out."""
    values = {name: value for name, value in to_dict(record).items() if value is not None}
    with atomic_path(folder / FILE, force=True) as temporary:
        temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
