"""Fine-tuning on the user's own unlabelled shapes, from any weights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ltenet.errors import UsageError
from ltenet.model import LTENet
from ltenet.shape import Shape
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import TrainingResult, train
from ltenet.training.own_shapes import OwnPairs
from ltenet.training.runs import new_run
from ltenet.training.validation import HeldBack, draw_share


def adapt(
    model: LTENet,
    shapes: Sequence[Shape],
    folder: Path,
    config: TrainingConfig,
    *,
    force: bool = False,
) -> TrainingResult:
    """Go on training on shapes without labels and write the weights, settings and log to a folder.

    Parameters
    ----------
    model
        Weights to begin with; network and normalisation are theirs.
    shapes
        What the weights shall become good at.
    folder
        Gets `config.json`, `model.safetensors`, `config.toml` and `log.jsonl`.
    config
        How; its objective must not need labels. Preset `adapt` is meant for this.
    force
        Write into a folder that holds weights already.
    """
    if config.known.weight > 0 or config.validation.select == "error":
        raise UsageError(
            f"known.weight {config.known.weight} and selection by {config.validation.select!r} "
            "came; shapes without labels need an objective without them; "
            "begin with the preset `adapt`"
        )
    if (folder / "model.safetensors").exists() and not force:
        raise UsageError(
            f"{folder}: weights are there already; another folder is needed; "
            "choose one, or replace them with --force"
        )
    config = replace(
        config, model=model.config, pairs=replace(config.pairs, radius=model.config.radius)
    )
    pairs = OwnPairs(shapes, config.pairs, config.seed)
    held_back = OwnPairs(shapes, config.pairs, config.seed, "validation")
    folder.mkdir(parents=True, exist_ok=True)
    # The run itself is of no use later: it could only go on with the same shapes at hand.
    with TemporaryDirectory(dir=folder, prefix=".run-") as temporary:
        run = new_run(config, Path(temporary))
        validation = HeldBack(draw_share(held_back, config.validation.pairs), [])
        result = train(config, run, pairs=pairs, held_back=validation, initial=model)
        for path in (*run.best.iterdir(), run.config, run.log):
            shutil.copyfile(path, folder / path.name)
    return result
