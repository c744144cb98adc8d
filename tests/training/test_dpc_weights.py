"""Checkpoints of DPC, written with its layout, against an independent network of plain torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ltenet.cli import main
from ltenet.errors import InputError
from ltenet.method.model import LTENet
from ltenet.training.dpc_weights import import_dpc


class Trunk(nn.Module):
    """DPC's trunk as its paper describes it: convolutions over the edges of one static graph."""

    def __init__(self, widths: tuple[int, ...], dimension: int) -> None:
        super().__init__()
        inputs = (3, *widths[:-1])
        edges = [
            nn.Sequential(nn.Conv2d(2 * a, b, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))
            for a, b in zip(inputs, widths, strict=True)
        ]
        last = nn.Sequential(
            nn.Conv1d(sum(widths), dimension, 1, bias=False),
            nn.BatchNorm1d(dimension),
            nn.LeakyReLU(0.2),
        )
        self.convs = nn.ModuleList([*edges, last])
        self.linear1 = nn.Linear(2 * dimension, 4, bias=False)  # behind the trunk, not used

    def forward(self, points: Tensor, k: int) -> Tensor:
        near = torch.cdist(points, points).topk(k, largest=False).indices  # (N, k)
        features, outputs = points, []
        for conv in list(self.convs)[:-1]:
            own = features[:, None].expand(-1, k, -1)  # (N, k, C)
            edges = torch.cat([features[near] - own, own], dim=2)  # (N, k, 2 C)
            features = conv(edges.permute(2, 0, 1)[None]).amax(dim=3)[0].T  # (N, C')
            outputs.append(features)
        found: Tensor = self.convs[-1](torch.cat(outputs, dim=1).T[None])[0].T  # (N, D)
        return found


def checkpoint(path: Path, trunk: nn.Module, prefix: str = "encoder.") -> Path:
    state = {f"{prefix}{name}": value for name, value in trunk.state_dict().items()}
    content = {"epoch": 9, "global_step": 1, "pytorch-lightning_version": "1.1.0"}
    torch.save({**content, "state_dict": state, "hyper_parameters": {"lr": 1e-3}}, path)
    return path


@pytest.fixture
def trunk() -> Trunk:
    torch.manual_seed(0)
    made = Trunk((8, 16, 32), 24)
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            for value in (module.running_mean, module.bias):
                nn.init.normal_(value, std=0.1)
            for value in (module.running_var, module.weight):
                nn.init.uniform_(value, 0.5, 2.0)
    return made.eval()


def test_the_same_features(trunk: Trunk, tmp_path: Path) -> None:
    file = checkpoint(tmp_path / "dpc.ckpt", trunk)
    assert main(["import-dpc", str(file), "-o", str(tmp_path / "out"), "--neighbors", "6"]) == 0
    model = LTENet.from_pretrained(tmp_path / "out")
    assert model.config.encoder.widths == (8, 16, 32)
    points = torch.rand(50, 3)
    with torch.no_grad():
        torch.testing.assert_close(model.encoder([points])[0], trunk(points, 6))
    assert main(["import-dpc", str(file), "-o", str(tmp_path / "out")]) == 2
    assert main(["import-dpc", str(tmp_path / "no.ckpt"), "-o", str(tmp_path / "new")]) == 4


def test_a_bare_state_dict(trunk: Trunk, tmp_path: Path) -> None:
    torch.save(trunk.state_dict(), tmp_path / "bare.pth")
    assert import_dpc(tmp_path / "bare.pth").config.encoder.dimension == 24


def test_other_networks_are_refused(trunk: Trunk, tmp_path: Path) -> None:
    file = tmp_path / "other.ckpt"
    torch.save({"state_dict": {"conv1.weight": torch.zeros(3)}}, file)
    with pytest.raises(InputError, match="got 0 networks"):
        import_dpc(file)
    state = trunk.state_dict()
    torch.save({f"{name}{key}": state[key] for name in "ab" for key in state}, file)
    with pytest.raises(InputError, match="got 2 networks"):
        import_dpc(file)
    torch.save({key: value for key, value in state.items() if "convs.1" not in key}, file)
    with pytest.raises(InputError, match=r"got layers \[0, 2, 3\]"):
        import_dpc(file)
    torch.save({key: value for key, value in state.items() if "running_var" not in key}, file)
    with pytest.raises(InputError, match=r"without 1\.running_var"):
        import_dpc(file)
    torch.save({**state, "convs.0.0.weight": torch.zeros(8, 4, 1, 1)}, file)
    with pytest.raises(InputError, match=r"got layers with \[4, 16"):
        import_dpc(file)
    torch.save({**state, "convs.0.1.bias": torch.zeros(7)}, file)
    with pytest.raises(InputError, match="do not fit together"):
        import_dpc(file)


@pytest.mark.parametrize("shape", [(8,), (8, 6, 0), (8, 3, 2)])
def test_tensors_of_other_shapes_are_refused(
    shape: tuple[int, ...], trunk: Trunk, tmp_path: Path
) -> None:
    state = trunk.state_dict() | {"convs.0.0.weight": torch.zeros(shape)}
    torch.save({"state_dict": state}, tmp_path / "a.ckpt")
    with pytest.raises(InputError, match=r"got 0\.weight of shape \(8,.*, expected 2 axes"):
        import_dpc(tmp_path / "a.ckpt")


def test_code_in_a_checkpoint_never_runs(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'proof'}",)

    torch.save({"state_dict": {}, "hyper_parameters": Evil()}, tmp_path / "evil.ckpt")
    with pytest.raises(InputError, match="got more than tensors"):
        import_dpc(tmp_path / "evil.ckpt")
    (tmp_path / "cut.ckpt").write_bytes(b"PK\3\4nothing")
    with pytest.raises(InputError, match="damaged"):
        import_dpc(tmp_path / "cut.ckpt")
    assert not (tmp_path / "proof").exists()
