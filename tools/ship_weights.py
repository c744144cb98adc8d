"""Copy trained weights into the package, in half precision.

    python -m tools.ship_weights human --run runs/human
    python -m tools.ship_weights human animal --orientation runs/orientation
    python -m tools.ship_weights paper-human --run runs/paper-human --which settled --commit 434a940

Parameters and running statistics lose nothing that a map shows; counters stay whole. Settled
weights of a finished run behind the paper's tables get a record of their training, by which
`ltenet paper` and `tools.train_queue` find them. The model card beside the weights is written by
hand, and `tools.calibrate` goes with new weights.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from ltenet.evaluation.paper import shipped
from ltenet.evaluation.paper.plans import planned_runs
from ltenet.evaluation.paper.shipped import TrainingRecord, same_training, write_record
from ltenet.evaluation.paper.trainings import finished, settled, settled_passes
from ltenet.files import atomic_path
from ltenet.matching import orientation
from ltenet.method.model import note_files
from ltenet.training.runs import RunFolder

WEIGHTS = Path(__file__).parents[1] / "src" / "ltenet" / "weights"


def copy_halved(source: Path, target: Path) -> None:
    """Copy tensors, floating ones in half precision."""
    state = {
        name: value.half() if value.is_floating_point() else value
        for name, value in load_file(source).items()
    }
    if not all(torch.isfinite(value).all() for value in state.values()):
        raise SystemExit(f"{source}: some values do not fit half precision; ship them as they are")
    with atomic_path(target, force=True) as path:
        save_file(state, path, metadata={"format": "pt"})


def record_of(run: RunFolder, commit: str | None = None) -> TrainingRecord | None:
    """Return the record of settled weights; None unless a row waits for this very run."""
    config = run.read_config()
    presets = [
        planned.recipe.preset
        for planned in planned_runs()
        if same_training(planned.recipe.config(planned.seed), config)
    ]
    done, passes = finished(run, config), settled_passes(run)
    if not presets or done is None or passes is None:
        return None
    return TrainingRecord(
        preset=presets[0],
        steps=done[0],
        minutes=round(done[1], 1),
        commit=commit,
        passes=passes,
        settings=config,
    )


def main() -> None:
    """Copy weights of the embedding, of orientation, or both."""
    parser = argparse.ArgumentParser(description="Copy trained weights into the package.")
    parser.add_argument("names", nargs="+", help="names under which the package ships them")
    parser.add_argument("--run", type=Path, help="folder of the run")
    parser.add_argument(
        "--which",
        choices=("best", "settled"),
        default="best",
        help="settled: with the statistics that `ltenet paper` tests, estimated now if need be",
    )
    parser.add_argument("--commit", help="commit of the code that trained, for the record")
    parser.add_argument("--orientation", type=Path, help="folder of the orientation networks")
    options = parser.parse_args()
    if options.run is not None and len(options.names) > 1:
        parser.error("got several names and --run, expected one name; try one command for each")
    for name in options.names:
        target = WEIGHTS / name
        target.mkdir(parents=True, exist_ok=True)
        if options.run is not None:
            run = RunFolder(options.run)
            settle = options.which == "settled"
            source = settled(run, run.read_config()) if settle else run.best
            copy_halved(source / "model.safetensors", target / "model.safetensors")
            with atomic_path(target / "config.json", force=True) as path:
                path.write_bytes((source / "config.json").read_bytes())
            record = record_of(run, options.commit) if settle else None
            (target / shipped.FILE).unlink(missing_ok=True)  # of the weights that were there
            if record is not None:
                write_record(target, record)
        if options.orientation is not None:
            copy_halved(options.orientation / orientation.FILE, target / orientation.FILE)
        note_files(target)
        print(f"{target}: {sum(file.stat().st_size for file in target.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
