"""The folder of a run: `config.toml`, `log.jsonl`, `events.*`, `last.ckpt`, `best/`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from ltenet.errors import InputError, MissingError, UsageError
from ltenet.files import atomic_path, sweep
from ltenet.io.formats.documents import parse_json
from ltenet.io.formats.text import failure, read_text
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
        lines = read_text(self.log).split("\n") if self.log.exists() else []
        records = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = parse_json(line, self.log, constants=True)
            except InputError:
                if number == len(lines):
                    continue  # a killed process was writing it
                record = None
            if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
                raise failure(
                    self.log,
                    number,
                    "got a line without a record, expected the log of a run",
                    "try copying the run again",
                )
            records.append(record)
        return records


def new_run(config: TrainingConfig, root: Path, *, force: bool = False) -> RunFolder:
    """Create the folder of a new run; with `force` in place of one that is there."""
    run = RunFolder(root / config.name)
    if joined_later():
        return run
    if run.path.is_dir():
        sweep(run.path)
    # A folder that is empty once swept is of a process killed before it wrote its settings.
    if run.path.exists() and not (run.path.is_dir() and not any(run.path.iterdir())):
        if not force:
            raise UsageError(
                f"{run.path}: got a run that exists, expected a new name; try another --name, "
                "--resume to go on with it, or --force to replace it"
            )
        if not run.config.exists():
            raise UsageError(
                f"{run.path}: got a folder without config.toml, expected a run to replace; try "
                "another name, or remove the folder yourself"
            )
        shutil.rmtree(run.path)
    run.path.mkdir(parents=True, exist_ok=True)
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
        f"{name}: got no run there nor in {root}, expected a folder with config.toml; try "
        "checking the spelling"
    )


def joined_later() -> bool:
    """Whether another process, the first of this run, writes the files."""
    return any(int(os.environ.get(name, "0")) > 0 for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))
