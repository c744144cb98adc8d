"""The remeshed benchmarks and SHREC'07 in their public layouts, written by the tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ltenet import io
from ltenet.data.mesh_set import LandmarkSet, ListedSet, random_pairs
from ltenet.data.readers import open_set
from ltenet.errors import InputError, MissingError
from ltenet.shape import Shape

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def mesh(path: Path, count: int = 4) -> None:
    """Write a tetrahedron, with further vertices on a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    more = np.stack([np.arange(4.0, count), *np.zeros((2, max(count - 4, 0)))], axis=1)
    io.save(Shape(np.concatenate([POINTS, more]), faces=FACES), path)


def numbers(path: Path, values: Sequence[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{value}\n" for value in values))


def opened(name: str, path: Path) -> ListedSet:
    shapes = open_set(name, path)
    assert isinstance(shapes, ListedSet)
    return shapes


@pytest.mark.parametrize(
    ("name", "stem", "tested"), [("faust_r", "tr_reg_{:03d}", 80), ("scape_r", "mesh{:03d}", 52)]
)
def test_lists_to_a_template(tmp_path: Path, name: str, stem: str, tested: int) -> None:
    for number in (tested - 1, tested, tested + 1):
        mesh(tmp_path / "off" / f"{stem.format(number)}.off")
        # On the last one template points 1 and 2 share a vertex, and point 4 has none.
        lists = [3, 3, 1, 0, 2] if number > tested else [1, 2, 3, 4, 4]
        numbers(tmp_path / "corres" / f"{stem.format(number)}.vts", lists)
        numbers(tmp_path / "corres" / f"{stem.format(number)}.sym.vts", lists[::-1])
    shapes = opened(name, tmp_path)
    assert shapes.pairs.tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    forth, back = shapes.listed(1, 2), shapes.listed(2, 1)
    assert (forth.source.tolist(), forth.target.tolist()) == ([0, 1, 2, 3], [2, 2, 0, 1])
    assert (back.source.tolist(), back.target.tolist()) == ([2, 2, 0, 1], [0, 1, 2, 3])
    once = shapes.truth(2, 1)
    assert once is not None
    assert (once.source.tolist(), once.target.tolist()) == ([2, 0, 1], [0, 2, 3])
    mirrored = shapes.mirrored(1, 2)
    assert mirrored is not None
    assert mirrored.tolist() == [1, -1, 0, 2]
    (tmp_path / "corres" / f"{stem.format(tested + 1)}.sym.vts").unlink()
    assert opened(name, tmp_path).mirrored(1, 2) is None


def test_smal_takes_the_shapes_of_its_test_list(tmp_path: Path) -> None:
    for name in ("cow_1", "hippo_2", "hippo_3"):
        mesh(tmp_path / "off" / f"{name}.off")
        numbers(tmp_path / "corres" / f"{name}.vts", [1, 2, 3, 4])
    assert len(opened("smal_r", tmp_path).pairs) == 9
    (tmp_path / "test_cat.txt").write_text("hippo_2\nhippo_3\n")
    shapes = opened("smal_r", tmp_path)
    assert (shapes.names, len(shapes.pairs)) == (("hippo_2", "hippo_3"), 4)
    (tmp_path / "test_cat.txt").write_text("cat_9\n")
    with pytest.raises(MissingError, match="shapes in its test list"):
        opened("smal_r", tmp_path)


def test_dt4d_within_and_across_characters(tmp_path: Path) -> None:
    for character, name in (("crypto", "a"), ("crypto", "b"), ("ninja", "a"), ("pumpkinhulk", "a")):
        mesh(tmp_path / "off" / character / f"{name}.off", 5)
        lists = [1, 2, 3] if character == "crypto" else [5, 4, 3, 2]
        numbers(tmp_path / "corres" / character / f"{name}.vts", lists)
    numbers(tmp_path / "corres" / "cross_category_corres" / "crypto_ninja.vts", [4, 3, 1])
    within = opened("dt4d", tmp_path)
    assert within.categories == ("crypto", "crypto", "ninja")
    assert within.pairs.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 2]]
    across = opened("dt4d-across", tmp_path)
    assert across.pairs.tolist() == [[2, 0], [2, 1]]
    listed = across.listed(2, 0)
    # Template points 1, 2, 3 of crypto are points 4, 3, 1 of ninja: its vertices 2, 3, 5.
    assert (listed.source.tolist(), listed.target.tolist()) == ([1, 2, 4], [0, 1, 2])
    numbers(tmp_path / "corres" / "cross_category_corres" / "crypto_ninja.vts", [4, 9, 1])
    with pytest.raises(InputError, match=r"got template points up to 9, expected 1 to 4"):
        opened("dt4d-across", tmp_path).listed(2, 0)
    (tmp_path / "test.txt").write_text("crypto/a\nninja/a\n")
    assert opened("dt4d", tmp_path).names == ("a", "a")


def test_shrec19_leaves_the_incomplete_mesh_out(tmp_path: Path) -> None:
    for number, size in ((1, 4), (2, 5), (40, 4)):
        mesh(tmp_path / "off" / f"{number}.off", size)
    numbers(tmp_path / "corres" / "1_2.map", [5, 4, 0, 1])
    numbers(tmp_path / "corres" / "1_40.map", [1, 2, 3, 4])
    shapes = opened("shrec19_r", tmp_path)
    assert shapes.pairs.tolist() == [[1, 0]]  # measured on mesh 1
    listed = shapes.listed(1, 0)
    assert (listed.source.tolist(), listed.target.tolist()) == ([4, 3, 0], [0, 1, 3])


def test_topkids(tmp_path: Path) -> None:
    for name, size in (("kid00", 5), ("kid16", 4), ("kid17", 6)):
        mesh(tmp_path / "off" / f"{name}.off", size)
    numbers(tmp_path / "corres" / "kid16_ref.vts", [5, 1, 0, 2])
    numbers(tmp_path / "corres" / "kid17_ref.vts", [1, 2, 3, 4, 5, 5])
    shapes = opened("topkids", tmp_path)
    assert shapes.pairs.tolist() == [[1, 0], [2, 0]]
    listed = shapes.listed(1, 0)
    assert (listed.source.tolist(), listed.target.tolist()) == ([0, 1, 3], [4, 0, 1])
    (tmp_path / "corres" / "kid17_ref.vts").unlink()
    with pytest.raises(InputError, match=r"got 3 meshes and 1 lists, expected a list for every"):
        opened("topkids", tmp_path)


@pytest.mark.parametrize("kind", ["cuts", "holes"])
def test_parts_onto_wholes(tmp_path: Path, kind: str) -> None:
    for name in ("cat", "dog"):
        mesh(tmp_path / "null" / "off" / f"{name}.off", 6)
    mesh(tmp_path / kind / "off" / f"{kind}_dog_shape_1.off", 4)
    numbers(tmp_path / kind / "corres" / f"{kind}_dog_shape_1.vts", [6, 1, 2, 3])
    shapes = opened(f"shrec16-{kind}", tmp_path)
    assert shapes.pairs.tolist() == [[2, 1]]
    listed = shapes.listed(2, 1)
    assert (listed.source.tolist(), listed.target.tolist()) == ([0, 1, 2, 3], [5, 0, 1, 2])
    assert shapes.mirrored(2, 1) is None


def test_hostile_lists(tmp_path: Path) -> None:
    for number in (80, 81):
        mesh(tmp_path / "off" / f"tr_reg_0{number}.off")
    with pytest.raises(MissingError, match=r"corres/\*\.vts"):
        opened("faust_r", tmp_path)
    lists = tmp_path / "corres"
    numbers(lists / "tr_reg_080.vts", [1, 2])
    with pytest.raises(InputError, match=r"got no \.vts file for 1 of 2 meshes.*tr_reg_081"):
        opened("faust_r", tmp_path)
    numbers(lists / "tr_reg_081.vts", [1, 2, 3])
    with pytest.raises(InputError, match=r"got lists of 2 and 3 points, expected equal"):
        opened("faust_r", tmp_path).listed(0, 1)
    numbers(lists / "tr_reg_081.vts", [1, 99])
    with pytest.raises(InputError, match=r"tr_reg_081\.vts, line 2"):
        opened("faust_r", tmp_path).listed(0, 1)
    (lists / "tr_reg_081.vts").write_text("1\nx\n")
    with pytest.raises(InputError, match=r"got 'x', expected a number"):
        opened("faust_r", tmp_path).listed(0, 1)
    (lists / "tr_reg_081.vts").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"tr_reg_081\.vts"):
        opened("faust_r", tmp_path).listed(0, 1)


# --- landmarks -----------------------------------------------------------------------------------


def landmark_folder(path: Path) -> None:
    """Two planes, a plier, and a cup, which is none of the classes."""
    for number in (61, 62, 201, 21):
        mesh(path / "Meshes" / f"{number}.off", 12)
        rows = [f"{(number + k) % 12} 0.5 0.25 1e-3" for k in range(11)]
        (path / "Corrs").mkdir(exist_ok=True)
        (path / "Corrs" / f"{number}.vts").write_text("\n".join(rows) + "\n")


def test_landmarks_of_the_public_layout(tmp_path: Path) -> None:
    landmark_folder(tmp_path)
    shapes = open_set("shrec07", tmp_path)
    assert isinstance(shapes, LandmarkSet)
    assert shapes.categories == ("airplane", "airplane", "plier")
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    assert shapes.landmarks(0).tolist() == [(61 + k) % 12 for k in range(11)]
    assert shapes.swapped(0).tolist() == [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9]
    truth = shapes.truth(0, 1)
    assert truth is not None
    np.testing.assert_array_equal((truth.source + 1) % 12, truth.target)
    assert shapes.truth(0, 2) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "3 0 0 0\n99 0 0 0\n",
            r"61\.vts, line 2: got vertex 99, expected a whole number up to 11",
        ),
        ("3.5 0 0 0\n", r"got vertex 3\.5"),
        ("", r"got an empty file"),
        (";\n", r"line 1: got a line without a number"),
        ("a b c d\n", r"got 'a', expected a number"),
        ("1 0 0 0\n2 0\n", r"line 2"),
    ],
)
def test_hostile_landmarks(tmp_path: Path, text: str, message: str) -> None:
    landmark_folder(tmp_path)
    (tmp_path / "Corrs" / "61.vts").write_text(text)
    shapes = open_set("shrec07", tmp_path)
    assert isinstance(shapes, LandmarkSet)
    with pytest.raises(InputError, match=message):
        shapes.landmarks(0)


def test_missing_landmarks_do_not_count(tmp_path: Path) -> None:
    landmark_folder(tmp_path)
    (tmp_path / "Corrs" / "61.vts").write_text("-7 0 0 0\n4 0 0 0\n")
    (tmp_path / "Corrs" / "62.vts").write_text("1 0 0 0\n2 0 0 0\n")
    shapes = open_set("shrec07", tmp_path)
    assert isinstance(shapes, LandmarkSet)
    assert shapes.landmarks(0).tolist() == [-1, 4]
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert (truth.source.tolist(), truth.target.tolist()) == ([4], [2])


def test_random_pairs_are_seeded_and_stay_inside_classes() -> None:
    categories = ("a",) * 20 + ("b",) * 3
    pairs = random_pairs(categories, 40)
    np.testing.assert_array_equal(pairs, random_pairs(categories, 40))
    assert not np.array_equal(pairs[:40], random_pairs(categories, 40, seed=1)[:40])
    assert len(pairs) == 40 + 6
    assert len({tuple(pair) for pair in pairs.tolist()}) == 46
    assert all(categories[one] == categories[two] and one != two for one, two in pairs)


# --- archives ------------------------------------------------------------------------------------


def arrays(shapes: int = 3) -> dict[str, np.ndarray]:
    offsets = np.arange(shapes + 1)
    return {
        "verts": np.concatenate([POINTS + k for k in range(shapes)]).astype(np.float32),
        "vert_offsets": 4 * offsets,
        "faces": np.concatenate([FACES] * shapes).astype(np.int16),
        "face_offsets": 4 * offsets,
    }


def remesh(path: Path, **changes: np.ndarray) -> Path:
    rows = np.array([[0, 1, 1], [1, 2, 3], [3, 3, 0]], np.int16)
    names = np.array(["a", "b", "c"])
    content = arrays() | {"names": names, "common": rows, "mirror": rows[:, ::-1]} | changes
    np.savez(path / "faust_r.npz", **content)
    return path


def landmarked(path: Path, **changes: np.ndarray) -> Path:
    content = arrays() | {
        "landmarks": np.array([0, 1, 2, 3, -5, 1]),
        "landmark_offsets": np.array([0, 2, 4, 6]),
        "class_ids": np.array([4, 4, 10]),
        "class_names": np.array(["4:airplane", "10:hand"]),
        "ids": np.array([61, 62, 181]),
        "symmetric": np.array([[4, 0, 1], [10, 3, 4]]),
    }
    np.savez(path / "shrec07.npz", **(content | changes))
    return path


def test_archives(tmp_path: Path) -> None:
    shapes = opened("faust_r", remesh(tmp_path))
    assert shapes.pairs.tolist() == [[2, 2]]  # of fewer than 80 shapes the last
    listed, mirrored = shapes.listed(0, 1), shapes.mirrored(0, 1)
    assert (listed.source.tolist(), listed.target.tolist()) == ([0, 1, 1], [1, 2, 3])
    assert mirrored is not None
    assert mirrored.tolist() == [3, 2, 1]
    np.testing.assert_array_equal(shapes.shape(1).points, POINTS + 1)
    marks = open_set("shrec07", landmarked(tmp_path))
    assert isinstance(marks, LandmarkSet)
    assert marks.categories == ("airplane", "airplane", "hand")
    assert marks.landmarks(2).tolist() == [-1, 1]
    assert (marks.swapped(0).tolist(), marks.swapped(2).tolist()) == ([1, 0], [0, 1])


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("faust_r", "common", np.full((3, 3), 4)),
        ("faust_r", "mirror", np.full((3, 3), -1)),
        ("faust_r", "faces", np.full((12, 3), 4)),
        ("faust_r", "vert_offsets", np.array([0, 8, 4, 12])),
        ("faust_r", "face_offsets", np.array([1, 4, 8, 12])),
        ("shrec07", "landmarks", np.full(6, 4)),
        ("shrec07", "landmark_offsets", np.array([0, 2, 4, 5])),
        ("shrec07", "class_ids", np.array([4.0, 4.0, 10.0])),
    ],
)
def test_hostile_archives(tmp_path: Path, name: str, key: str, value: np.ndarray) -> None:
    write = remesh if name == "faust_r" else landmarked
    with pytest.raises(
        InputError, match=rf"{name}\.npz: got .*, expected .*; try copying the archive"
    ):
        open_set(name, write(tmp_path, **{key: value}))


def test_the_remeshes_of_faust(benchmark_data: Path) -> None:
    if not (benchmark_data / "faust_r.npz").is_file():
        pytest.skip("faust_r.npz is not there")
    shapes = opened("faust_r", benchmark_data)
    assert len(shapes.pairs) == 400
    assert (shapes.pairs[:, 0] == shapes.pairs[:, 1]).sum() == 20
    assert (shapes.pairs.min(), shapes.pairs.max()) == (80, 99)
    assert len(shapes.listed(80, 81).source) == 5000


def test_shrec07_as_it_is(benchmark_data: Path) -> None:
    if not (benchmark_data / "shrec07.npz").is_file():
        pytest.skip("shrec07.npz is not there")
    shapes = open_set("shrec07", benchmark_data)
    assert isinstance(shapes, LandmarkSet)
    assert len(shapes.pairs) == 240
    assert set(shapes.categories) == {"airplane", "hand", "plier", "fish", "bird", "bust"}
