"""`ltenet import-dpc`: a released DPC checkpoint as weights of this package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ltenet.cli.command import Command, Result


@dataclass(frozen=True, kw_only=True)
class ImportDPC(Command):
    """Turn a checkpoint of DPC into a folder of weights, to be tested beside ours.

    Nothing in the file is run: only tensors are read.

    Examples
    --------
      ltenet import-dpc dpc_surreal.ckpt -o dpc-released
      ltenet bench shrec19 --method embedding --model dpc-released
    """

    file: tyro.conf.Positional[Path]
    """Checkpoint of PyTorch Lightning."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="DIR")]
    """Folder for the weights."""
    neighbors: int = 27
    """Neighbours in the graph, which the file does not tell."""
    force: bool = False
    """Replace weights in the folder."""

    def run(self) -> Result:
        """Read, map, write."""
        from ltenet.errors import MissingError, UsageError
        from ltenet.files import check_output_folder
        from ltenet.training.dpc_weights import import_dpc

        check_output_folder(self.output)
        if not self.file.is_file():
            raise MissingError(
                f"{self.file}: got no such file, expected a checkpoint; try another spelling"
            )
        if (self.output / "config.json").exists() and not self.force:
            raise UsageError(
                f"{self.output}: got a folder with weights, expected a new one; try another, or "
                "--force"
            )
        model = import_dpc(self.file, neighbors=self.neighbors)
        model.save_pretrained(self.output, force=self.force)
        encoder = model.config.encoder
        figures = {
            "weights": str(self.output),
            "widths": list(encoder.widths),
            "dimension": encoder.dimension,
            "neighbors": encoder.neighbors,
        }
        return Result(figures, f"weights written to {self.output}")


COMMAND = ImportDPC
