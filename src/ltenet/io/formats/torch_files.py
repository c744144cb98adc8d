"""Files of `torch.save`: what is checked before `torch.load` may open one.

`weights_only=True` keeps code from running; it does not bound memory. torch takes as much as a
record declares, and as much as a file of its format before version 1.6 asks for.
"""

from __future__ import annotations

import zipfile
from pathlib import Path


def check_records(path: Path) -> None:
    """Raise ValueError unless a file is an archive whose records are stored and lie within it."""
    try:
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"not a file of torch.save since version 1.6: {error}") from None
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError("records that are packed")
        if entry.header_offset + entry.file_size > size:
            raise ValueError("records that leave the file")
