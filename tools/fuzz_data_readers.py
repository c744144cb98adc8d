"""Readers of shape sets for the fuzzer, with valid files to start from."""

from __future__ import annotations

import io
import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz_seeds import SHAPE, Reader, Seed, written

_MESHES: dict[str, Any] = {
    "verts": np.arange(24.0).reshape(8, 3) ** 2,
    "vert_offsets": [0, 4, 8],
    "faces": [[0, 1, 2], [1, 2, 3], [0, 1, 3]],
    "face_offsets": [0, 2, 3],
    "names": np.array(["a", "b"]),
}


def npz_bytes(**arrays: Any) -> bytes:
    """Pack arrays."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _stacks() -> list[Seed]:
    import torch

    vertices = np.arange(36, dtype=np.float32).reshape(3, 4, 3)
    tensor = io.BytesIO()
    torch.save(torch.from_numpy(vertices), tensor)
    packed = npz_bytes(vertices=vertices, faces=[[0, 1, 2]], categories=["a", "b", "c"])
    plain = written("a.npy", lambda path: np.save(path, vertices))
    return [
        Seed("a.npz", packed, "npz", {}),
        Seed("a.npy", plain, "npy", {}),
        Seed("a.pth", tensor.getvalue(), "checkpoint", {}),
    ]


def _read_stack(path: Path) -> Any:
    from ltenet.data.readers.stacked import StackedSet, read_stack

    return StackedSet("a", path, read_stack(path), category="a").shape(0)


def _hdf5() -> list[Seed]:
    import h5py

    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            vertices = np.arange(36, dtype=np.float32).reshape(3, 4, 3)
            file.create_dataset("vertices", data=vertices, compression="gzip")
            file.create_dataset("faces", data=[[0, 1, 2]])

    return [Seed("a.h5", written("a.h5", write), "bytes", {})]


def _archives() -> list[Seed]:
    names = np.array(["a", "b"])
    listed = {"common": [[0, 1], [1, 2]], "mirror": [[1, 0], [2, 1]]}
    tosca = {
        "verts": _MESHES["verts"], "vert_offsets": [0, 4, 8], "names": names,
        "class_ids": [0, 0], "class_names": np.array(["cat"]), "class_faces": [[0, 1, 2]],
        "class_face_offsets": [0, 1], "pairs": [[0, 1]],
    }  # fmt: skip
    shrec19 = {
        "pts": np.arange(24.0).reshape(2, 4, 3) ** 2, "orig_vertex": np.arange(8).reshape(2, 4),
        "names": names, "pairs": [[0, 1]], "surf_pts": np.ones((2, 5, 3)),
        "to_yup": np.stack([np.eye(3)] * 2),
    }  # fmt: skip
    shrec07 = {
        **_MESHES, "landmarks": [0, 1, 2, 3], "landmark_offsets": [0, 2, 4], "class_ids": [1, 1],
        "class_names": np.array(["1:human"]), "ids": [1, 2], "symmetric": [[1, 0, 1]],
    }  # fmt: skip
    faust = {"verts": np.zeros((3, 4, 3)), "faces": [[0, 1, 2]], "names": np.array(["a", "b", "c"])}
    found = {
        "faust": faust,
        "tosca": tosca,
        "shrec19": shrec19,
        "faust_r": {**_MESHES, **listed},
        "shrec07": shrec07,
    }
    return [Seed(f"{name}.npz", npz_bytes(**arrays), "npz", {}) for name, arrays in found.items()]


def _read_archive(path: Path) -> Any:
    from ltenet.data.readers import archives

    kinds = {
        "faust": archives.FaustArchive,
        "tosca": archives.ToscaArchive,
        "shrec19": archives.Shrec19Archive,
        "faust_r": archives.FaustRemeshArchive,
        "shrec07": archives.Shrec07Archive,
    }
    shapes = kinds[path.stem](path)
    pairs = [shapes.truth(int(s), int(t)) for s, t in shapes.pairs[:3]]
    return pairs, [shapes.shape(index) for index in range(min(len(shapes.names), 3))]


def _tosca() -> list[Seed]:
    from scipy.io import savemat

    assert SHAPE.faces is not None
    x, y, z = SHAPE.points.T
    surface = {"X": x, "Y": y, "Z": z, "TRIV": SHAPE.faces + 1.0, "note": "by hand"}
    contents = {"other": np.eye(3), "surface": surface}
    plain, packed = io.BytesIO(), io.BytesIO()
    savemat(plain, contents)
    savemat(packed, contents, do_compression=True)
    vert = b"0 0 0\n1 0 0\n0 1 0\n0 0 1.5\n"
    return [
        Seed("cat0.mat", plain.getvalue(), "bytes", {}),
        Seed("cat0.mat", packed.getvalue(), "bytes", {}),
        Seed("cat0.vert", vert, "text", {"cat0.tri": b"1 2 3\n1 2 4\n"}),
        Seed("cat0.tri", b"1 2 3\n1 2 4\n", "text", {"cat0.vert": vert}, "cat0.vert"),
    ]


def _read_tosca(path: Path) -> Any:
    from ltenet.data.readers.tosca import read_tosca

    return read_tosca(path)


def _smal() -> list[Seed]:
    rng = np.random.default_rng(0)
    model = {
        "v_template": rng.normal(size=(6, 3)),
        "f": np.array([[0, 1, 2], [3, 4, 5]], dtype=np.uint32),
        "shapedirs": rng.normal(size=(6, 3, 4)),
        "posedirs": rng.normal(size=(6, 3, 9)),
        "J_regressor": rng.random((2, 6)),
        "weights": rng.random((6, 2)),
        "kintree_table": np.array([[4294967295, 0], [0, 1]], dtype=np.uint32),
        "bs_style": "lbs",
    }
    return [Seed("a.pkl", pickle.dumps(model, protocol), "bytes", {}) for protocol in (0, 2)]


def _read_smal(path: Path) -> Any:
    from ltenet.data.readers.smal_model import read_smal_model

    return read_smal_model(path)


def _dpc() -> list[Seed]:
    import torch

    state: dict[str, Any] = {}
    for layer, (inputs, outputs) in enumerate(((6, 4), (8, 5), (9, 7))):
        state[f"net.convs.{layer}.0.weight"] = torch.ones(outputs, inputs, 1, 1)
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"net.convs.{layer}.1.{part}"] = torch.ones(outputs)
    out = io.BytesIO()
    torch.save({"state_dict": state, "epoch": 3}, out)
    return [Seed("a.ckpt", out.getvalue(), "checkpoint", {})]


def _read_dpc(path: Path) -> Any:
    from ltenet.training.dpc_weights import import_dpc

    return import_dpc(path)


def _listed_sets() -> list[Seed]:
    mesh = b"OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1.5\n3 0 1 2\n3 0 1 3\n"
    names = {f"tr_reg_{number:03d}": mesh for number in (80, 81)}
    files = {f"{name}.off": mesh for name in names} | {
        f"{name}.vts": b"1\n2\n4\n" for name in names
    }
    marked = {"1.off": mesh, "61.off": mesh, "62.off": mesh}
    marked |= dict.fromkeys(("61.vts", "62.vts"), b"0 0 0 0\n2 0 1 0\n")
    changed = [("tr_reg_080.vts", files), ("tr_reg_081.off", files), ("61.vts", marked)]
    return [
        Seed(name, group[name], "text", {k: v for k, v in group.items() if k != name}, ".")
        for name, group in changed
    ]


def _read_listed(folder: Path) -> Any:
    """Open a folder of meshes with lists of corresponding vertices, and all that it offers."""
    from ltenet.data.readers import open_set

    shapes = open_set("shrec07" if (folder / "61.vts").exists() else "faust_r", folder)
    pairs = [shapes.truth(int(s), int(t)) for s, t in shapes.pairs[:3]]
    return pairs, [shapes.shape(index) for index in range(len(shapes.names))]


def _manifests() -> list[Seed]:
    files = {
        "m.json": b'{"name": "n", "numbering": "own", "shapes": ["a.xyz", {"file": "b.xyz", "name":'
        b' "b", "category": "c"}], "pairs": [["a", "b"], {"source": "b", "target": "a", "map": '
        b'"a_b.map", "index_base": 1}]}',
        "m.toml": b'name = "n"\nshapes = ["a.xyz", "b.xyz"]\n[[pairs]]\nsource = "a"\ntarget = "b"'
        b'\nmap = "a_b.map"\n',
        "m.csv": b"source,target,map,index_base\na.xyz,b.xyz,a_b.map,1\n",
        "n.csv": b"file,name,category\na.xyz,a,x\nb.xyz,b,y\n",
    }
    clouds = {"a.xyz": b"0 0 0\n1 2 3\n", "b.xyz": b"0 0 0\n1 2 4\n", "a_b.map": b"1\n2\n"}
    kinds = {".json": "json", ".toml": "text", ".csv": "text"}
    return [Seed(name, data, kinds[Path(name).suffix], clouds) for name, data in files.items()]


def _read_set(path: Path) -> Any:
    """Open a set and everything that it offers."""
    from ltenet.data.readers import open_set

    shapes = open_set("folder", path)
    for index in range(min(len(shapes.names), 3)):
        shapes.shape(index)
    return [shapes.truth(int(s), int(t)) for s, t in shapes.pairs[:3]]


def _optional(package: str, name: str, reader: Reader) -> dict[str, Reader]:
    return {name: reader} if find_spec(package) else {}


DATA_READERS: dict[str, Reader] = {
    "manifest": Reader(_read_set, _manifests),
    "stack": Reader(_read_stack, _stacks),
    **_optional("h5py", "hdf5", Reader(_read_stack, _hdf5)),
    "archive": Reader(_read_archive, _archives),
    "tosca": Reader(_read_tosca, _tosca),
    "smal": Reader(_read_smal, _smal),
    "dpc": Reader(_read_dpc, _dpc),
    "listed": Reader(_read_listed, _listed_sets),
}
