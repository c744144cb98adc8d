"""Fine-tuning on the user's own unlabelled shapes, from any weights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ltenet.errors import UsageError
from ltenet.files import (
    atomic_folder,
    check_output_folder,
    refuse_to_replace_folder,
    working_folder,
)
from ltenet.method.model import LTENet, note_files
from ltenet.shape import Shape
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import TrainingResult, train
from ltenet.training.own_shapes import OwnPairs
from ltenet.training.runs import new_run
from ltenet.training.validation import HeldBack, draw_share

#: Files that a folder of adapted weights may hold; the command line adds the mean shape.
_OURS = {
    *("config.json", "model.safetensors", "config.toml", "log.jsonl", "README.md"),
    *("orientation.safetensors", "calibration.json", "mean.ply"),
}


def adapt(
    model: LTENet,
    shapes: Sequence[Shape],
    folder: Path,
    config: TrainingConfig,
    *,
    beside: Sequence[Path] = (),
    force: bool = False,
) -> TrainingResult:
    """Go on training on shapes without labels and write the weights, settings and log to a folder.

    The folder appears whole or not at all, and one that it replaces stays until then.

    Parameters
    ----------
    model
        Weights to begin with; network and normalisation are theirs.
    shapes
        What the weights shall become good at, at least two.
    folder
        Gets `config.json`, `model.safetensors`, `config.toml` and `log.jsonl`.
    config
        How; its objective must not need labels. Preset `adapt` is meant for this.
    beside
        Files that belong to the weights and go with them: orientation, calibration.
    force
        Replace a folder of weights.
    """
    if config.known.weight > 0 or config.validation.select == "error":
        raise UsageError(
            f"adapt: got known.weight {config.known.weight} and selection by "
            f"{config.validation.select!r}, expected an objective without labels; try the preset "
            "`adapt`"
        )
    if len(shapes) < 2:
        raise UsageError(
            f"got {len(shapes)} shape, expected at least two: one alone has no other to be matched "
            "with; try more shapes of its kind"
        )
    check_weights_folder(folder, force=force)
    own = model.config
    pairs_config = replace(config.pairs, radius=own.radius, center=own.center)
    config = replace(config, model=own, pairs=pairs_config)
    pairs = OwnPairs(shapes, config.pairs, config.seed)
    held_back = OwnPairs(shapes, config.pairs, config.seed, "validation")
    # The run itself is of no use later: it could only go on with the same shapes at hand.
    with working_folder("ltenet-adapt") as temporary:
        run = new_run(config, temporary)
        validation = HeldBack(draw_share(held_back, config.validation.pairs), [])
        result = train(config, run, pairs=pairs, held_back=validation, initial=model)
        with atomic_folder(folder, force=force) as whole:
            for path in (*run.best.iterdir(), run.config, run.log, *beside):
                shutil.copyfile(path, whole / path.name)
            note_files(whole)
    return result


def check_weights_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that weights could not be written to, before hours of work.

    A folder is replaced as a whole, so one that holds anything but weights never is.
    """
    check_output_folder(folder)
    refuse_to_replace_folder(folder, force=force)
    others = sorted({file.name for file in folder.iterdir()} - _OURS) if folder.is_dir() else []
    if others or folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        held = f"holds {', '.join(others[:3])}" if others else "is the one you are in"
        raise UsageError(
            f"{folder}: got a folder that {held}, expected a new one, or one of weights alone, as "
            f"it is replaced whole; try {folder / 'weights'}"
        )
