from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
import torch

from ltenet.data.readers.stacked import read_stack
from ltenet.errors import InputError
from ltenet.io.formats.torch_files import check_records
from ltenet.method.encoder import EncoderConfig
from ltenet.training.checkpoint import read_checkpoint


def test_files_of_torch_pass(tmp_path: Path) -> None:
    torch.save(torch.zeros(2, 4, 3), tmp_path / "a.pth")
    check_records(tmp_path / "a.pth")
    assert read_stack(tmp_path / "a.pth").vertices.shape == (2, 4, 3)


@pytest.mark.parametrize("name", ["a.pth", "a.ckpt"])
def test_hostile_files_of_torch(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    read = read_checkpoint if name.endswith("ckpt") else read_stack
    for content in (b"", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"since version 1\.6"):
            read(path)
    torch.save(torch.zeros(2, 4, 3), path, _use_new_zipfile_serialization=False)
    with pytest.raises(InputError, match=r"since version 1\.6"):
        read(path)
    plain = io.BytesIO()
    torch.save(torch.zeros(2, 4, 3), plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            new.writestr(member, old.read(member))
    with pytest.raises(InputError, match="packed"):
        read(path)
    # The sizes of the tensor's record in the archive's directory, turned into 4 GiB.
    sizes = (96).to_bytes(4, "little") * 2
    content = plain.getvalue()
    place = content.rindex(sizes)
    path.write_bytes(content[:place] + b"\xfe\xff\xff\xff" * 2 + content[place + 8 :])
    with pytest.raises(InputError, match="leave the file"):
        read(path)


def test_absurd_networks_are_refused_before_they_are_built() -> None:
    with pytest.raises(InputError, match="got 20000 layers"):
        EncoderConfig(widths=(8,) * 20_000)
    with pytest.raises(InputError, match="sizes up to 1000000000000"):
        EncoderConfig(widths=(8, 10**12))
