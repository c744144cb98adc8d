"""`ltenet data convert-smal`: the SMAL model as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ltenet.cli.command import Command, Result


@dataclass(frozen=True, kw_only=True)
class ConvertSmal(Command):
    """Convert the SMAL model, a pickle, into arrays; nothing in it runs.

    A process of its own reads numpy, scipy and chumpy arrays by an allow-list and refuses all else.
    """

    file: tyro.conf.Positional[Path]
    """The model, e.g. smal_CVPR2017.pkl."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="DIR")]
    """Folder for smal_model.npz."""
    force: bool = False
    """Replace the archive if it is there."""

    def run(self) -> Result:
        """Check, convert."""
        from ltenet.data.readers.smal_model import FILE, convert_smal
        from ltenet.errors import MissingError
        from ltenet.files import check_output_folder, refuse_to_overwrite

        check_output_folder(self.output)
        refuse_to_overwrite(self.output / FILE, force=self.force)
        if not self.file.is_file():
            raise MissingError(
                f"{self.file}: got no such file, expected a SMAL model; try another spelling"
            )
        written = convert_smal(self.file, self.output, force=self.force)
        return Result({"file": str(written)}, f"arrays written to {written}")
