from __future__ import annotations

import builtins
import importlib
import json
import logging
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.io

from ltenet.data.readers import READERS, open_set
from ltenet.data.readers.common import natural_key, ordered_pairs, through_template
from ltenet.data.readers.tosca import open_tosca
from ltenet.errors import InputError, LTENetError, MissingError, UsageError
from ltenet.io import save
from ltenet.shape import Shape

POINTS = np.array([[0.0, 0, 0], [100, 0, 0], [0, 200, 0], [0, 0, 300]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def mesh(path: Path, points: np.ndarray = POINTS, faces: np.ndarray | None = FACES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save(Shape(points=points, faces=faces), path)
    return path


def text(path: Path, numbers: Sequence[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{number}\n" for number in numbers))
    return path


def mat(path: Path, points: np.ndarray = POINTS, faces: np.ndarray = FACES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    axes = {axis: points[:, [place]] for place, axis in enumerate("XYZ")}
    scipy.io.savemat(path, {"surface": {**axes, "TRIV": (faces + 1).astype(float)}})
    return path


# --- the table -------------------------------------------------------------------------------


def test_the_table_has_the_documented_names() -> None:
    sampled = {"surreal", "shrec19", "smal", "tosca", "faust", "scape", "folder"}
    listed = {"faust_r", "scape_r", "shrec19_r", "smal_r", "dt4d", "dt4d-across", "topkids"}
    listed |= {"shrec16-cuts", "shrec16-holes"}
    assert {name for name in READERS if READERS[name].protocol == "samples"} == sampled
    assert {name for name in READERS if READERS[name].protocol == "listed"} == listed
    assert set(READERS) - sampled - listed == {"shrec07"}


@pytest.mark.parametrize("name", sorted(READERS))
def test_absent_data_say_what_is_needed(tmp_path: Path, name: str) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(MissingError, match="expected") as caught:
            open_set(name, path)
        assert caught.value.exit_code == 4
        assert str(path) in str(caught.value)


def test_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown set"):
        open_set("coma", tmp_path)
    with pytest.raises(UsageError, match="without a path"):
        open_set("tosca")
    with pytest.raises(UsageError, match="numbering"):
        open_set("tosca", tmp_path, numbering="shared")


def test_an_index_beyond_the_set(tmp_path: Path) -> None:
    mesh(tmp_path / "a.ply")
    with pytest.raises(InputError, match="expected 0 to 0"):
        open_set(tmp_path).shape(1)


# --- small parts -----------------------------------------------------------------------------


def test_sorting_pairing_and_composing() -> None:
    assert sorted(["cat10", "cat2", "ape1"], key=natural_key) == ["ape1", "cat2", "cat10"]
    assert ordered_pairs("aab").tolist() == [[0, 1], [1, 0]]
    assert ordered_pairs("abc").shape == (0, 2)
    truth = through_template(np.array([5, 5, -1, 7]), np.array([0, 1, 2, 3]), label="pair")
    assert truth.source.tolist() == [5, 7]
    assert truth.target.tolist() == [0, 3]
    with pytest.raises(InputError, match="2 and 1 entries"):
        through_template(np.array([0, 1]), np.array([0]), label="pair")


# --- SURREAL ---------------------------------------------------------------------------------


def test_surreal_meshes(tmp_path: Path) -> None:
    for number in (0, 2, 10):
        mesh(tmp_path / "dataset-surreal" / f"{number}.ply", POINTS + number)
    shapes = open_set("surreal", tmp_path)
    assert shapes.names == tuple(f"dataset-surreal/{number}" for number in (0, 2, 10))
    np.testing.assert_array_equal(shapes.shape(2).points, POINTS + 10)
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert truth.target.tolist() == [0, 1, 2, 3]
    assert shapes.pairs.shape == (0, 2)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pth"])
def test_surreal_arrays(tmp_path: Path, suffix: str) -> None:
    samples = np.stack([POINTS, POINTS + 1, POINTS + 2]).astype(np.float32)
    path = tmp_path / f"datas_surreal_train{suffix}"
    if suffix == ".npy":
        np.save(path, samples)
    elif suffix == ".npz":
        np.savez(path, datas=samples)
    else:
        torch = pytest.importorskip("torch")
        torch.save(torch.from_numpy(samples), path)
    mesh(tmp_path / "template.ply")
    for place in (tmp_path, path):
        shapes = open_set("surreal", place)
        assert len(shapes) == 3
        assert shapes.categories == ("human",) * 3
        np.testing.assert_array_equal(shapes.shape(1).points, POINTS + 1)
        np.testing.assert_array_equal(shapes.shape(1).faces, FACES)
        truth = shapes.truth(0, 2)
        assert truth is not None
        assert len(truth.source) == 4


def test_surreal_h5_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str, package: str | None = None) -> object:
        if name == "h5py":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    (tmp_path / "train.h5").write_bytes(b"")
    with pytest.raises(MissingError, match="pip install h5py"):
        open_set("surreal", tmp_path / "train.h5")


def stand_in_for_h5py(arrays: dict[str, np.ndarray]) -> ModuleType:
    class Dataset(np.ndarray):
        is_virtual, external = False, None

    class HardLink:
        pass

    class File(dict):  # type: ignore[type-arg]
        def __init__(self, path: Path, mode: str) -> None:
            super().__init__({key: array.view(Dataset) for key, array in arrays.items()}, group={})

        def get(self, key: str, *, getlink: bool) -> HardLink:  # type: ignore[override]
            return HardLink()

    module = ModuleType("h5py")
    module.Dataset, module.HardLink, module.File = Dataset, HardLink, File  # type: ignore[attr-defined]
    return module


def test_hostile_h5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "train.h5"
    (tmp_path / "other.bin").write_bytes(bytes(96))
    for name, make in {
        "more than the": lambda file: file.create_dataset(
            "v", (10**6, 10**6, 3), "f4", chunks=True
        ),
        "in other files": lambda file: file.create_dataset(
            "v", (2, 4, 3), "f4", external=[(str(tmp_path / "other.bin"), 0, 96)]
        ),
        "got nothing": lambda file: file.__setitem__("v", h5py.ExternalLink("other.h5", "/v")),
    }.items():
        with h5py.File(path, "w") as file:
            make(file)
        with pytest.raises(InputError, match=name):
            open_set("surreal", path)


def test_surreal_h5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.stack([POINTS, POINTS + 1])
    try:
        import h5py
    except ImportError:  # a stand-in with the part of its interface that is used
        h5py = stand_in_for_h5py({"vertices": samples})
        monkeypatch.setitem(sys.modules, "h5py", h5py)
        (tmp_path / "train.h5").write_bytes(b"")
    else:
        with h5py.File(tmp_path / "train.h5", "w") as file:
            file["vertices"] = samples
    np.testing.assert_array_equal(open_set("surreal", tmp_path).shape(1).points, POINTS + 1)


def test_surreal_damage(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    np.save(tmp_path / "flat.npy", POINTS)
    with pytest.raises(InputError, match=r"got vertices \(4, 3\), expected exactly one array"):
        open_set("surreal", tmp_path / "flat.npy")
    (tmp_path / "cut.pth").write_bytes(b"PK\3\4nothing")
    with pytest.raises(InputError, match="damaged"):
        open_set("surreal", tmp_path / "cut.pth")
    torch.save({"a": 1}, tmp_path / "dict.pth")
    with pytest.raises(InputError, match="got a dict"):
        open_set("surreal", tmp_path / "dict.pth")
    np.save(tmp_path / "nan.npy", np.full((2, 4, 3), np.nan))
    with pytest.raises(InputError, match=r"nan\.npy: .*not finite"):
        open_set("surreal", tmp_path / "nan.npy").shape(0)
    np.savez(tmp_path / "faces.npz", v=np.zeros((2, 4, 3)), faces=np.array([[0, 1, 9]]))
    with pytest.raises(InputError, match=r"faces\.npz: .*vertices 0 to 3"):
        open_set("surreal", tmp_path / "faces.npz").shape(0)


# --- SMAL ------------------------------------------------------------------------------------


def test_smal_meshes_are_turned_to_the_canonical_frame(tmp_path: Path) -> None:
    mesh(tmp_path / "dataset_cats" / "cats0.ply")
    mesh(tmp_path / "dataset_cats" / "cats10.ply")
    mesh(tmp_path / "dataset_hyppo" / "hyppo2.ply")
    shapes = open_set("smal", tmp_path)
    assert shapes.categories == ("cats", "cats", "hyppo")
    shape = shapes.shape(0)
    np.testing.assert_array_equal(shape.points, POINTS[:, [1, 2, 0]])
    np.testing.assert_allclose(shape.restored(), POINTS, atol=1e-12)
    assert np.linalg.det(shape.transform) == pytest.approx(1)  # no mirror image
    truth = shapes.truth(0, 2)
    assert truth is not None
    assert len(truth.source) == 4
    same = open_set("smal", tmp_path, frame="x y z").shape(0)
    np.testing.assert_array_equal(same.points, POINTS)


def test_smal_arrays_with_families(tmp_path: Path) -> None:
    samples = np.stack([POINTS, POINTS + 1])
    np.savez(tmp_path / "s.npz", vertices=samples, faces=FACES, categories=["cat", "dog"])
    shapes = open_set("smal", tmp_path)
    assert shapes.categories == ("cat", "dog")
    np.testing.assert_array_equal(shapes.shape(1).faces, FACES)
    np.savez(tmp_path / "s.npz", vertices=samples, families=[1])
    with pytest.raises(InputError, match="got 1 families for 2 shapes"):
        open_set("smal", tmp_path / "s.npz")


def test_smal_remeshed(tmp_path: Path) -> None:
    mesh(tmp_path / "off" / "cow_1.off")
    mesh(tmp_path / "off" / "fox_1.off")
    text(tmp_path / "corres" / "cow_1.vts", [1, 2])
    text(tmp_path / "corres" / "fox_1.vts", [4, 3])
    shapes = open_set("smal", tmp_path)
    assert shapes.categories == ("cow", "fox")
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert (truth.source.tolist(), truth.target.tolist()) == ([0, 1], [3, 2])


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str, str]]:
            return (builtins.open, (str(tmp_path / "exploded"), "w"))

    for name in ("smal_CVPR2017.pkl", "samples.pth"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        for reader in ("smal", "surreal"):
            with pytest.raises(InputError, match="convert it once"):
                open_set(reader, tmp_path / name)
    assert not (tmp_path / "exploded").exists()


# --- SHREC'19 --------------------------------------------------------------------------------


def shrec(folder: Path) -> Path:
    mesh(folder / "off_2" / "1.off")
    mesh(folder / "off_2" / "2.off", POINTS[:3], FACES[:1])
    mesh(folder / "off_2" / "10.off")
    text(folder / "groundtruth" / "1_2.map", [3, 2, 1, 0])
    text(folder / "groundtruth" / "10_1.map", [1, 2, 3, 4])
    return folder


def test_shrec19_maps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shapes = open_set("shrec19", shrec(tmp_path))
    assert shapes.names == ("1", "2", "10")
    assert shapes.pairs.tolist() == [[0, 1], [2, 0]]
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert (truth.source.tolist(), truth.target.tolist()) == ([0, 1, 2], [2, 1, 0])
    assert shapes.truth(1, 0) is None
    (tmp_path / "PAIRS_list_SHREC19_connectivity.txt").write_text("10,1\n1,2\n2,44\n")
    with caplog.at_level(logging.WARNING):
        listed = open_set("shrec19", tmp_path)
    assert listed.pairs.tolist() == [[2, 0], [0, 1]]
    assert "1 of 3 pairs are left out" in caplog.text


def test_shrec19_maps_of_the_organisers(tmp_path: Path) -> None:
    mesh(tmp_path / "1.obj")
    mesh(tmp_path / "7.obj")
    text(tmp_path / "FARMgt_txt" / "1_7.txt", [4, 3, 2, 1])
    truth = open_set("shrec19", tmp_path).truth(0, 1)
    assert truth is not None
    assert truth.target.tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3, 2, 4, 1], "line 3: got entry 4, expected a number from 1 to 3"),
        ([3, 2, 1], "line 3: got 3 entries, expected one for each of the 4"),
        ([3, "two", 1, 1], "line 2: got 'two', expected a number"),
        ([], "empty"),
    ],
)
def test_shrec19_damaged_maps(tmp_path: Path, numbers: list[object], words: str) -> None:
    text(shrec(tmp_path) / "groundtruth" / "1_2.map", numbers)
    with pytest.raises(InputError, match=words) as caught:
        open_set("shrec19", tmp_path).truth(0, 1)
    assert "1_2.map" in str(caught.value)


def test_shrec19_damaged_list_and_mesh(tmp_path: Path) -> None:
    shrec(tmp_path)
    (tmp_path / "pairs.txt").write_text("1,2\n1;x\n")
    with pytest.raises(InputError, match=r"pairs\.txt, line 2"):
        open_set("shrec19", tmp_path)
    (tmp_path / "pairs.txt").unlink()
    (tmp_path / "off_2" / "1.off").write_text("OFF\n3 1 0\n0 0 0\n")
    with pytest.raises(InputError, match=r"1\.off, line 3: got 1 lines"):
        open_set("shrec19", tmp_path).shape(0)


# --- TOSCA -----------------------------------------------------------------------------------


def vert(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, POINTS, fmt="%.4f")
    np.savetxt(path.with_suffix(".tri"), FACES + 1, fmt="%d")
    return path


def off(path: Path) -> Path:
    return mesh(path)


@pytest.mark.parametrize(("write", "suffix"), [(mat, ".mat"), (vert, ".vert"), (off, ".off")])
def test_tosca_layouts(tmp_path: Path, write: object, suffix: str) -> None:
    for name in ("cat0", "cat2", "cat10", "wolf0", "david0", "wolf1"):
        write(tmp_path / "nonrigid3d" / f"{name}{suffix}")  # type: ignore[operator]
    shapes = open_set("tosca", tmp_path)
    assert shapes.names == ("cat0", "cat2", "cat10", "wolf0", "wolf1")
    assert shapes.categories == ("cat",) * 3 + ("wolf",) * 2
    assert len(shapes.pairs) == 6 + 2
    assert shapes.error_divisor == 3
    shape = shapes.shape(0)
    x, y, z = POINTS.T / 100
    np.testing.assert_allclose(shape.points, np.stack([x, z, -y], axis=1))
    np.testing.assert_array_equal(shape.faces, FACES)
    np.testing.assert_allclose(shape.restored(), POINTS, atol=1e-9)
    truth = shapes.truth(0, 2)
    assert truth is not None
    assert truth.source.tolist() == truth.target.tolist() == [0, 1, 2, 3]
    assert shapes.truth(0, 3) is None
    assert len(open_tosca(tmp_path, classes=("david",))) == 1


def test_tosca_damage(tmp_path: Path) -> None:
    (tmp_path / "cat0.mat").write_bytes(mat(tmp_path / "x.mat").read_bytes()[:300])
    with pytest.raises(InputError, match=r"cat0\.mat: got an unreadable TOSCA shape"):
        open_set("tosca", tmp_path).shape(0)
    scipy.io.savemat(tmp_path / "cat0.mat", {"other": 1})
    with pytest.raises(InputError, match="'surface'"):
        open_set("tosca", tmp_path).shape(0)
    (tmp_path / "cat0.mat").unlink()
    vert(tmp_path / "cat0.vert")
    (tmp_path / "cat0.tri").write_text("1 2 3\n1 2 9\n")
    with pytest.raises(InputError, match=r"cat0\.tri, line 2: got '1 2 9', expected vertices"):
        open_set("tosca", tmp_path).shape(0)
    (tmp_path / "cat0.tri").unlink()
    with pytest.raises(InputError, match=r"no \.tri file"):
        open_set("tosca", tmp_path).shape(0)


def test_tosca_classes_with_different_counts(tmp_path: Path) -> None:
    mesh(tmp_path / "cat0.off")
    mesh(tmp_path / "cat1.off", POINTS[:3], FACES[:1])
    with pytest.raises(InputError, match="got 4 vertices in cat0 and 3 in cat1"):
        open_set("tosca", tmp_path).truth(0, 1)


# --- FAUST and SCAPE -------------------------------------------------------------------------


def test_faust_registrations(tmp_path: Path) -> None:
    folder = tmp_path / "MPI-FAUST" / "training" / "registrations"
    for number in (0, 79, 80, 81, 99):
        mesh(folder / f"tr_reg_{number:03d}.ply")
    mesh(tmp_path / "MPI-FAUST" / "training" / "scans" / "tr_scan_000.ply")
    shapes = open_set("faust", tmp_path)
    assert shapes.names[:2] == ("tr_reg_000", "tr_reg_079")
    assert shapes.pairs.tolist() == [[2, 3], [2, 4], [3, 2], [3, 4], [4, 2], [4, 3]]
    truth = shapes.truth(2, 3)
    assert truth is not None
    assert len(truth.source) == 4


@pytest.mark.parametrize(
    ("name", "stem", "numbers"), [("faust", "tr_reg_", (80, 81)), ("scape", "mesh", (52, 71))]
)
def test_remeshed(tmp_path: Path, name: str, stem: str, numbers: tuple[int, int]) -> None:
    for number in numbers:
        mesh(tmp_path / "off" / f"{stem}{number:03d}.off")
        text(tmp_path / "corres" / f"{stem}{number:03d}.sym.vts", [4, 4, 4])
    text(tmp_path / "corres" / f"{stem}{numbers[0]:03d}.vts", [1, 1, 3])
    text(tmp_path / "corres" / f"{stem}{numbers[1]:03d}.vts", [4, 3, 2])
    shapes = open_set(name, tmp_path)
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert (truth.source.tolist(), truth.target.tolist()) == ([0, 2], [3, 1])
    text(tmp_path / "corres" / f"{stem}{numbers[1]:03d}.vts", [4, 3, 5])
    with pytest.raises(InputError, match=r"\.vts, line 3: got entry 5"):
        open_set(name, tmp_path).truth(0, 1)
    text(tmp_path / "corres" / f"{stem}{numbers[1]:03d}.vts", [4, 3])
    with pytest.raises(InputError, match="lists of 3 and 2 points"):
        open_set(name, tmp_path).truth(0, 1)
    (tmp_path / "corres" / f"{stem}{numbers[1]:03d}.vts").unlink()
    with pytest.raises(InputError, match=r"got no \.vts file for 1 of 2 meshes"):
        open_set(name, tmp_path)


def test_scape_registrations_without_test_shapes(tmp_path: Path) -> None:
    for number in (0, 1):
        mesh(tmp_path / f"mesh{number:03d}.ply")
    shapes = open_set("scape", tmp_path)
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    truth = shapes.truth(1, 0)
    assert truth is not None
    assert len(truth.source) == 4


def test_a_cut_registration(tmp_path: Path) -> None:
    path = mesh(tmp_path / "tr_reg_000.ply")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"tr_reg_000\.ply: got 315 bytes"):
        open_set("faust", tmp_path).shape(0)


# --- own shapes ------------------------------------------------------------------------------


def test_folder_without_truth(tmp_path: Path) -> None:
    mesh(tmp_path / "a.ply")
    mesh(tmp_path / "b.npz", POINTS[:3], None)
    mesh(tmp_path / "cats" / "c.off")
    shapes = open_set(tmp_path)
    assert shapes.name == tmp_path.name
    assert shapes.names == ("a", "b", "c")
    assert shapes.categories == ("shape", "shape", "cats")
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    assert shapes.truth(0, 1) is None
    shared = open_set("folder", tmp_path, numbering="shared")
    assert shared.truth(0, 2) is not None
    with pytest.raises(InputError, match="got 4 vertices in a and 3 in b"):
        shared.truth(0, 1)


def test_folder_with_maps(tmp_path: Path) -> None:
    for name in ("a", "a_1", "b"):
        mesh(tmp_path / f"{name}.ply")
    text(tmp_path / "a_1_b.map", [1, 2, 3, 0])
    text(tmp_path / "maps" / "b_a.txt", [3, 2, 1, -1])
    shapes = open_set(tmp_path)
    assert shapes.names == ("a", "a_1", "b")
    assert shapes.pairs.tolist() == [[1, 2], [2, 0]]
    truth = shapes.truth(1, 2)
    assert truth is not None
    assert truth.target.tolist() == [0, 1, 2]
    other = shapes.truth(2, 0)
    assert other is not None
    assert other.target.tolist() == [3, 2, 1]


def test_folder_with_template_vertices(tmp_path: Path) -> None:
    for name, numbers in (("a", [1, 2]), ("b", [3, 4])):
        mesh(tmp_path / f"{name}.ply")
        text(tmp_path / f"{name}.vts", numbers)
    truth = open_set(tmp_path).truth(0, 1)
    assert truth is not None
    assert (truth.source.tolist(), truth.target.tolist()) == ([0, 1], [2, 3])


def test_equal_names_in_subfolders(tmp_path: Path) -> None:
    mesh(tmp_path / "x" / "a.ply")
    mesh(tmp_path / "y" / "a.ply")
    assert open_set(tmp_path).names == ("x/a.ply", "y/a.ply")


MANIFEST = {
    "name": "mine",
    "shapes": ["a.ply", {"file": "b.ply", "name": "second", "category": "dog"}],
    "pairs": [
        ["a", "second"],
        {"source": "second", "target": "a", "map": "x.map", "index_base": 0},
    ],
}
TOML = """
name = "mine"
shapes = ["a.ply", {file = "b.ply", name = "second", category = "dog"}]
pairs = [["a", "second"], {source = "second", target = "a", map = "x.map", index_base = 0}]
"""


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_manifest(tmp_path: Path, suffix: str) -> None:
    if suffix == ".toml":
        pytest.importorskip("tomllib", reason="needs Python 3.11")
    mesh(tmp_path / "a.ply")
    mesh(tmp_path / "b.ply", POINTS + 1)
    text(tmp_path / "x.map", [0, 1, 2, 3])
    path = tmp_path / f"manifest{suffix}"
    path.write_text(json.dumps(MANIFEST) if suffix == ".json" else TOML)
    for place in (path, tmp_path):
        shapes = open_set(place)
        assert shapes.name == "mine"
        assert shapes.names == ("a", "second")
        assert shapes.categories == ("shape", "dog")
        assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
        truth = shapes.truth(1, 0)
        assert truth is not None
        assert truth.target.tolist() == [0, 1, 2, 3]
        assert shapes.truth(0, 1) is None


def test_manifest_with_shared_numbering(tmp_path: Path) -> None:
    mesh(tmp_path / "a.ply")
    mesh(tmp_path / "b.ply")
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"shapes": ["a.ply", "b.ply"], "numbering": "shared"}))
    shapes = open_set(path)
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    assert shapes.truth(0, 1) is not None


def test_csv_manifests(tmp_path: Path) -> None:
    mesh(tmp_path / "a.ply")
    mesh(tmp_path / "b.ply")
    text(tmp_path / "x.txt", [3, 2, 1, 0])
    path = tmp_path / "pairs.csv"
    path.write_text("source,target,map,index_base\na.ply,b.ply,x.txt,\nb.ply,a.ply,,\n")
    shapes = open_set("folder", path)
    assert shapes.names == ("a.ply", "b.ply")
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert truth.target.tolist() == [3, 2, 1, 0]
    assert shapes.truth(1, 0) is None
    path.write_text("file,category\na.ply,cat\nb.ply,dog\n")
    assert open_set(path).categories == ("cat", "dog")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.json", '{"shapes": [\n"a.ply",\n]}', "m.json, line 3: got text that is not JSON"),
        ("m.json", "[]", "an object with the key 'shapes'"),
        ("m.json", "{}", "got no shapes"),
        ("m.json", '{"shapes": "a.ply"}', "expected a list"),
        ("m.json", '{"shapes": ["a.ply"], "extra": 1}', "the key 'extra'"),
        ("m.json", '{"shapes": ["a.ply"], "numbering": "odd"}', "numbering 'odd'"),
        ("m.json", '{"shapes": ["a.ply", "a.ply"]}', "two shapes of one name"),
        ("m.json", '{"shapes": ["none.ply"]}', "got 'none.ply'"),
        ("m.json", '{"shapes": [3]}', "got '3' as shape 1"),
        ("m.json", '{"shapes": ["a.ply"], "pairs": [["a", "b"]]}', "got 'b' in pair 1"),
        ("m.json", '{"shapes": ["a.ply"], "pairs": ["a"]}', "got 'a' as pair 1"),
        (
            "m.json",
            '{"shapes": ["a.ply"], "pairs": [{"source": "a", "target": "a", "index_base": 2}]}',
            "index_base '2'",
        ),
        ("m.csv", "name\nx\n", "m.csv, line 1: got a header"),
        ("m.csv", "file,category\na.ply\n", "m.csv, line 2: got 1 columns"),
        ("m.json", b"\xff\xfe", "not UTF-8 text"),
    ],
)
def test_damaged_manifests(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    mesh(tmp_path / "a.ply")
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(LTENetError) as caught:
        open_set("folder", path)
    assert isinstance(caught.value, InputError)
    assert words in str(caught.value)


# --- the archives ----------------------------------------------------------------------------


def test_tosca_archive(benchmark_data: Path) -> None:
    shapes = open_set("tosca", benchmark_data)
    assert len(shapes) == 41
    assert len(shapes.pairs) == 286
    counts = {name: shapes.categories.count(name) for name in set(shapes.categories)}
    expected = {"cat": 11, "centaur": 6, "dog": 9, "gorilla": 4, "horse": 8, "wolf": 3}
    assert counts == expected
    assert shapes.error_divisor == 3
    np.testing.assert_array_equal(shapes.pairs, ordered_pairs(shapes.categories))
    for source, target in shapes.pairs[::40]:
        truth = shapes.truth(int(source), int(target))
        assert truth is not None
        assert len(truth.source) == len(shapes.shape(int(source))) == len(shapes.shape(int(target)))
    cat = shapes.shape(shapes.names.index("cat0"))
    assert cat.faces is not None
    low, high = cat.points.min(axis=0), cat.points.max(axis=0)
    assert 0.5 < (high - low)[1] < 1.5  # a metre or so high, y-up
    assert shapes.truth(0, 40) is None


def test_faust_archive(benchmark_data: Path) -> None:
    shapes = open_set("faust", benchmark_data / "faust.npz")
    assert len(shapes) == 100
    assert len(shapes.pairs) == 380
    assert shapes.pairs.min() == 80
    assert shapes.pairs.max() == 99
    body = shapes.shape(0)
    assert len(body) == 6890
    assert 1.4 < np.ptp(body.points[:, 1]) < 2.1
    truth = shapes.truth(80, 99)
    assert truth is not None
    assert len(truth.source) == 6890


def test_shrec19_archive(benchmark_data: Path) -> None:
    shapes = open_set("shrec19", benchmark_data)
    assert len(shapes) == 37
    assert len(shapes.pairs) == 310
    archive = np.load(benchmark_data / "shrec19.npz")
    source, target = (int(index) for index in shapes.pairs[5])
    truth = shapes.truth(source, target)
    assert truth is not None
    np.testing.assert_array_equal(truth.source, truth.target)
    for index in (source, target):
        vertices = archive["orig_vertex"][index][truth.source]
        assert len(np.unique(vertices)) == len(vertices)
        shape, surface = shapes.shape(index), shapes.surface(index)
        assert surface is not None
        assert surface.shape == (4096, 3)
        np.testing.assert_allclose(shape.restored(), archive["pts"][index], atol=1e-6)
        extent = np.ptp(shape.points, axis=0)
        np.testing.assert_allclose(np.ptp(surface, axis=0), extent, atol=0.15 * extent.max())
        assert extent.argmax() == 1


@pytest.mark.parametrize("name", ["tosca", "shrec19", "faust"])
def test_damaged_archives(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.npz"
    np.savez(path, names=np.array(["a", "b"]), pairs=np.array([[0, 7]]))
    with pytest.raises(InputError, match=r"got .* as '|got pairs of shapes 0 to 7"):
        open_set(name, tmp_path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match=r"damaged \.npz"):
        open_set(name, path)
    with pytest.raises(UsageError, match="frame"):
        open_set(name, path, frame="x y z")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"class_ids": [0, 1]}, "class 1, of 1"),
        ({"class_ids": [0, -1]}, "class -1, of 1"),
        ({"vert_offsets": [0, 9, 8]}, "'vert_offsets' that does not rise"),
        ({"class_face_offsets": [1, 1]}, "'class_face_offsets' that does not rise"),
    ],
)
def test_archives_whose_arrays_do_not_fit(
    tmp_path: Path, changed: dict[str, list[int]], words: str
) -> None:
    arrays: dict[str, object] = {
        "names": np.array(["a", "b"]),
        "class_names": np.array(["cat"]),
        "class_ids": [0, 0],
        "pairs": [[0, 1]],
        "verts": np.concatenate([POINTS, POINTS]),
        "vert_offsets": [0, 4, 8],
        "class_faces": FACES[:1],
        "class_face_offsets": [0, 1],
    }
    np.savez(tmp_path / "tosca.npz", **arrays)
    assert open_set("tosca", tmp_path).categories == ("cat", "cat")
    np.savez(tmp_path / "tosca.npz", **{**arrays, **changed})
    with pytest.raises(InputError, match=words):
        open_set("tosca", tmp_path)


def test_small_archives(tmp_path: Path) -> None:
    verts = np.stack([POINTS, POINTS + 1])
    names = np.array(["a", "b"])
    np.savez(tmp_path / "faust.npz", verts=verts, faces=FACES, names=names)
    faust = open_set("faust", tmp_path)
    assert len(faust.pairs) == 0
    np.testing.assert_array_equal(faust.shape(1).points, POINTS + 1)
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], np.int8)
    np.savez(
        tmp_path / "shrec19.npz",
        names=names,
        pts=verts,
        orig_vertex=np.array([[0, 1, 1, 3], [5, 6, 7, 5]]),
        surf_pts=verts[:, :2],
        to_yup=np.stack([turn, turn]),
        pairs=np.array([[0, 1]]),
    )
    shrec19 = open_set("shrec19", tmp_path)
    damaged = dict(np.load(tmp_path / "shrec19.npz"))
    for flat in (np.zeros((2, 3, 3)), np.full((2, 3, 3), np.nan)):
        np.savez(tmp_path / "b.npz", **{**damaged, "to_yup": flat})
        with pytest.raises(InputError, match="'to_yup' that do more than turn"):
            open_set("shrec19", tmp_path / "b.npz")
    truth = shrec19.truth(0, 1)
    assert truth is not None
    assert truth.source.tolist() == [0, 1]  # 2 repeats 1 on the first, 3 repeats 0 on the second
    np.testing.assert_allclose(shrec19.shape(0).points, POINTS @ turn.T)
    surface = shrec19.surface(0)
    assert surface is not None
    np.testing.assert_allclose(surface, POINTS[:2] @ turn.T)
