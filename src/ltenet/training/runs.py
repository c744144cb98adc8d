"""The folder of a run: `config.toml`, `log.jsonl`, `events.*`, `last.ckpt`, `best/`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from ltenet.errors import InputError, MissingError, UsageError
from ltenet.files import atomic_path
from ltenet.training.config import TrainingConfig
from ltenet.training.settings import dump_config, load_config


class RunFolder(NamedTuple):
    """Where the files of a run are."""

    path: Path

    @property
    def config(self) -> Path:
        """The settings, as TOML."""
        return self.path / "config.toml"

    @property
    def log(self) -> Path:
        """One JSON object per line: losses and validations."""
        return self.path / "log.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Everything that is needed to go on."""
        return self.path / "last.ckpt"

    @property
    def best(self) -> Path:
        """Weights with the best validation score, for `LTENet.from_pretrained`."""
        return self.path / "best"

    def read_config(self) -> TrainingConfig:
        """Read the settings of the run."""
        return load_config(self.config)

    def read_log(self) -> list[dict[str, Any]]:
        """Read the lines of the log; an unfinished last line is left out."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        records = []
        for number, line in enumerate(lines):
            try:
                records.append(json.loads(line))
            except ValueError:
                if number + 1 < len(lines):
                    raise InputError(
                        f"{self.log}: line {number + 1} is not JSON; the log that training wrote "
                        "is needed; copy the run again"
                    ) from None
        return records


def new_run(config: TrainingConfig, root: Path, *, force: bool = False) -> RunFolder:
    """Create the folder of a new run; with `force` in place of one that is there."""
    run = RunFolder(root / config.name)
    if joined_later():
        return run
    if run.path.exists():
        if not force:
            raise UsageError(
                f"{run.path}: this run exists; another name is needed; "
                "choose one with --name, go on with --resume, or replace it with --force"
            )
        if not run.config.exists():
            raise UsageError(
                f"{run.path}: this is not the folder of a run, for it has no config.toml; only a "
                "run is replaced; choose another name or remove the folder yourself"
            )
        shutil.rmtree(run.path)
    run.path.mkdir(parents=True)
    with atomic_path(run.config) as temporary:
        temporary.write_text(dump_config(config), encoding="utf-8")
    return run


def rewrite_config(run: RunFolder, config: TrainingConfig) -> None:
    """Keep changed settings of a run that goes on."""
    if not joined_later():
        with atomic_path(run.config, force=True) as temporary:
            temporary.write_text(dump_config(config), encoding="utf-8")


def find_run(name: str | Path, root: Path) -> RunFolder:
    """Find a run by its folder, or by its name under `root`."""
    for path in (Path(name), root / name):
        if (path / "config.toml").is_file():
            return RunFolder(path)
    raise MissingError(
        f"{name}: no run there and none of that name in {root}; a folder with config.toml is "
        "needed; check the spelling"
    )


def joined_later() -> bool:
    """Whether another process of the same run, which comes first, takes care of the files."""
    return any(int(os.environ.get(name, "0")) > 0 for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))
