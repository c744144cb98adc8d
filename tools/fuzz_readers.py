"""The readers that the fuzzer knows, each with valid files to start from."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.drawing.rendering import png_bytes
from ltenet.io import load, save
from ltenet.io.correspondences import MapRecord, read_record, write_record
from ltenet.io.formats.gltf_writing import Part, glb_bytes
from ltenet.io.formats.named_points import Landmarks
from ltenet.io.landmarks import read_landmarks, write_landmarks
from ltenet.io.textures import TexturedMesh, read_textured, write_textured
from ltenet.io.values import read_values
from ltenet.shape import Shape
from tools.fuzz_data_readers import DATA_READERS
from tools.fuzz_seeds import SHAPE, Reader, Seed, written
from tools.fuzz_work_readers import WORK_READERS

_UV = np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.6, 0.4]])
_PIXELS = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
_MESHED_PLY = b"""ply
format ascii 1.0
comment by hand
element vertex 4
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
property int label
element face 2
property uchar flags
property list uchar int vertex_indices
element tristrips 1
property list int int vertex_indices
end_header
0 0 0 1 2 3 7
1 0 0 1 2 3 7
1 1 0 1 2 3 7
0 1 2 1 2 3 7
9 4 0 1 2 3
9 3 0 1 2
6 0 1 2 3 -1 0
"""
_OBJ = (
    b"mtllib a.mtl\nv 0 0 0\nv 1 0 0\nvt 0 0\nv 1 1 0\nvt 1 0\nusemtl m\nf 1/1 2/2 3/1\n"
    b"v 0 1 0\nf -4/1 -2/-1 \\\n-1/2\n"
)
_PCD = b"""# .PCD v0.7
VERSION 0.7
FIELDS x y z rgb _ normal
SIZE 4 4 4 4 1 4
TYPE F F F U U F
COUNT 1 1 1 1 2 3
WIDTH 2
HEIGHT 1
POINTS 2
DATA ascii
0 1 2 16711680 0 0 0 0 1
3 4 5 255 0 0 0 1 0
"""


def _saved(suffix: str, kind: str, shape: Shape = SHAPE) -> Seed:
    name = f"a{suffix}"
    return Seed(name, written(name, lambda path: save(shape, path)), kind, {})


def _shape_seeds(suffix: str) -> list[Seed]:
    plain = replace(SHAPE, labels=None)
    cloud = replace(plain, faces=None)
    match suffix:
        case ".ply":
            whole = _saved(".ply", "bytes")
            body = b"".join([b"\x04", np.arange(4, dtype="<i4").tobytes(), b"\x03"])
            mixed = whole.content.replace(b"element face 4", b"element face 2")
            mixed = mixed[: mixed.index(b"end_header\n") + 11 + 4 * 31] + body
            mixed += np.arange(3, dtype="<i4").tobytes()
            return [
                Seed("a.ply", _MESHED_PLY, "text", {}),
                whole,
                Seed("a.ply", whole.content, "text", {}),
                Seed("a.ply", mixed, "bytes", {}),
            ]
        case ".obj":
            return [_saved(".obj", "text", plain), Seed("a.obj", _OBJ, "text", {})]
        case ".off":
            return [_saved(".off", "text", plain)]
        case ".stl":
            return [Seed("a.stl", data, kind, {}) for data, kind in _stl()]
        case ".glb" | ".gltf":
            return [Seed(f"a{suffix}", data, kind, beside) for data, kind, beside in _gltf(suffix)]
        case ".pcd":
            binary = _PCD[: _PCD.index(b"DATA")] + b"DATA binary\n" + bytes(60)
            return [Seed("a.pcd", _PCD, "text", {}), Seed("a.pcd", binary, "bytes", {})]
        case ".npy":
            return [_saved(".npy", "npy", replace(cloud, colors=None))]
        case ".npz":
            return [_saved(".npz", "npz")]
        case _:
            return [_saved(suffix, "text", cloud)]


def _stl() -> list[tuple[bytes, str]]:
    assert SHAPE.faces is not None
    corners = SHAPE.points[SHAPE.faces].astype("<f4")  # (F, 3, 3)
    record = [bytes(12) + triangle.tobytes() + bytes(2) for triangle in corners]
    text = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in triangle.tolist())
        + "endloop\nendfacet\n"
        for triangle in corners
    )
    binary = bytes(80) + len(corners).to_bytes(4, "little") + b"".join(record)
    return [(binary, "bytes"), (f"solid a\n{text}endsolid a\n".encode(), "text")]


def _gltf(suffix: str) -> list[tuple[bytes, str, dict[str, bytes]]]:
    assert SHAPE.faces is not None
    glb = glb_bytes([Part("a", SHAPE.points, SHAPE.faces, _UV, png_bytes(_PIXELS))] * 2)
    if suffix == ".glb":
        return [(glb, "glb", {})]
    length = int.from_bytes(glb[12:16], "little")
    document = json.loads(glb[20 : 20 + length])
    document["buffers"][0]["uri"] = "a.bin"
    document["nodes"][0] |= {"translation": [1, 2, 3], "rotation": [0, 0, 0, 1], "children": [1]}
    document["scenes"] = [{"nodes": [0]}]
    return [(json.dumps(document).encode(), "json", {"a.bin": glb[28 + length :]})]


def _record(suffix: str) -> bytes:
    record = MapRecord(
        np.array([1, -1, 0, 2]),
        3,
        np.array([0.5, 0.1, 1, 0.25]),
        np.array([[1, 0], [0, 1], [0, 2], [2, 1]]),
        np.full((4, 2), 0.5),
        {"model": "human", "options": {"seed": 0}},
    )
    return written(f"a{suffix}", lambda path: write_record(path, record))


def _maps() -> list[Seed]:
    return [Seed(f"a{suffix}", _record(suffix), "text", {}) for suffix in (".txt", ".map", ".vts")]


def _correspondences() -> list[Seed]:
    return [Seed("a.npz", _record(".npz"), "npz", {}), Seed("a.csv", _record(".csv"), "text", {})]


def _read_correspondence(path: Path) -> Any:
    from ltenet.correspondence import Correspondence

    # A .csv does not say how many points the target has.
    return read_record(path) if path.suffix == ".csv" else Correspondence.load(path)


def _landmarks(suffix: str, kind: str) -> Callable[[], list[Seed]]:
    marks = Landmarks(
        ("nose", "tail, end", "x"),
        np.array([[0.0, 1, 2], [3, 4, 5], [np.nan] * 3]),
        "LPS",
        probabilities=np.array([0.5, np.nan, 1]),
    )
    name = f"a{suffix}"

    def seeds() -> list[Seed]:
        found = [Seed(name, written(name, lambda path: write_landmarks(marks, path)), kind, {})]
        if suffix == ".csv":
            found.append(Seed(name, b"name,index\nnose,0\ntail,3\n", kind, {}))
        return found

    return seeds


def _values() -> list[Seed]:
    array = written("a.npy", lambda path: np.save(path, np.arange(8.0).reshape(4, 2)))
    return [
        Seed("a.npy", array, "npy", {}),
        Seed("a.csv", b"a,b\n1,2\n3,4\n5,6\n", "text", {}),
        Seed("a.txt", b"1\n2\n3\n", "text", {}),
    ]


def _textures() -> list[Seed]:
    assert SHAPE.faces is not None
    mesh = TexturedMesh(SHAPE, _UV, SHAPE.faces, (_PIXELS,), np.zeros(4, np.int64))
    with tempfile.TemporaryDirectory() as folder:
        write_textured(mesh, Path(folder) / "a.obj")
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    files["a.mtl"] = files["a.mtl"].replace(b"map_Kd", b"map_Kd -s 1 1 1")
    glb = written("a.glb", lambda path: write_textured(mesh, path))
    kinds = {"a.obj": "text", "a.mtl": "text", "a.png": "bytes"}
    seeds = [
        Seed(name, files[name], kind, {k: v for k, v in files.items() if k != name}, "a.obj")
        for name, kind in kinds.items()
    ]
    return [*seeds, Seed("a.glb", glb, "glb", {})]


def _weights() -> list[Seed]:
    from ltenet.matching.confidence import Calibration
    from ltenet.method.encoder import EncoderConfig
    from ltenet.method.model import LTENet, ModelConfig

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "weights"
        model = LTENet(ModelConfig(encoder=EncoderConfig((4, 6), 5, 4)))
        model.save_pretrained(folder)
        Calibration().save_pretrained(folder, force=True)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    kinds = {"model.safetensors": "safetensors"}
    return [
        Seed(
            name, data, kinds.get(name, "json"), {k: v for k, v in files.items() if k != name}, "."
        )
        for name, data in files.items()
    ]


def _read_weights(folder: Path) -> Any:
    from ltenet.matching.confidence import Calibration
    from ltenet.method.model import LTENet

    return LTENet.from_pretrained(folder), Calibration.from_pretrained(folder)


def _settings() -> list[Seed]:
    from ltenet.training.settings import dump_config, load_config, presets

    texts = [dump_config(load_config(name)).encode() for name in presets()[:2]]
    return [Seed("a.toml", text, "text", {}) for text in texts]


def _read_settings(path: Path) -> Any:
    from ltenet.training.settings import load_config

    return load_config(path)


def _checkpoints() -> list[Seed]:
    import torch

    from ltenet.training.checkpoint import Checkpoint, write_checkpoint

    state = {"w": torch.arange(6.0).view(2, 3), "n": torch.tensor(3)}
    checkpoint = Checkpoint(
        step=3,
        seconds=1.5,
        best_score=0.25,
        best_step=2,
        config="name = 'a'",
        model=state,
        average=state,
        optimizer={"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]},
        random_states=[torch.get_rng_state()],
    )
    data = written("last.ckpt", lambda path: write_checkpoint(path, checkpoint))
    return [Seed("last.ckpt", data, "checkpoint", {})]


def _read_checkpoint(path: Path) -> Any:
    from ltenet.training.checkpoint import read_checkpoint

    return read_checkpoint(path)


def _shapes(suffix: str) -> Reader:
    return Reader(load, lambda: _shape_seeds(suffix))


READERS: dict[str, Reader] = {
    **{
        suffix[1:]: _shapes(suffix)
        for suffix in (
            *(".ply", ".obj", ".off", ".stl", ".glb", ".gltf"),
            *(".xyz", ".csv", ".pcd", ".npy", ".npz"),
        )
    },
    "map": Reader(read_record, _maps),
    "correspondence": Reader(_read_correspondence, _correspondences),
    "landmarks-csv": Reader(lambda path: read_landmarks(path, SHAPE), _landmarks(".csv", "text")),
    "landmarks-tps": Reader(read_landmarks, _landmarks(".tps", "text")),
    "landmarks-json": Reader(read_landmarks, _landmarks(".mrk.json", "json")),
    "landmarks-fcsv": Reader(read_landmarks, _landmarks(".fcsv", "text")),
    "values": Reader(read_values, _values),
    "texture": Reader(read_textured, _textures),
    "weights": Reader(_read_weights, _weights),
    "settings": Reader(_read_settings, _settings),
    "checkpoint": Reader(_read_checkpoint, _checkpoints),
    **DATA_READERS,
    **WORK_READERS,
}
