from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltenet.errors import InputError, UsageError
from ltenet.io.maps import read_map, write_map


@pytest.mark.parametrize(
    ("suffix", "text"), [(".txt", "2\n-1\n0\n"), (".map", "3\n0\n1\n"), (".vts", "3\n0\n1\n")]
)
def test_the_suffix_says_what_the_file_counts_from(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"a_b{suffix}"
    write_map(path, [2, -1, 0])
    assert path.read_text() == text
    assert read_map(path, size=3, count=3).tolist() == [2, -1, 0]


def test_index_base_overrides_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a_b.txt"
    write_map(path, np.array([0, 4]), index_base=1)
    assert path.read_text() == "1\n5\n"
    assert read_map(path, index_base=1).tolist() == [0, 4]
    assert read_map(path).tolist() == [1, 5]


@given(
    indices=st.lists(st.integers(-1, 2**40), min_size=1, max_size=30),
    suffix=st.sampled_from([".txt", ".map", ".vts"]),
    base=st.sampled_from([None, 0, 1]),
)
def test_reading_gives_back_what_was_written(
    indices: list[int], suffix: str, base: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"map{suffix}"
        write_map(path, indices, index_base=base)
        result = read_map(path, size=max(indices) + 1 or None, index_base=base)
    assert result.dtype == np.int64
    assert result.tolist() == indices


def test_numbers_as_matlab_writes_them_and_comments_pass(tmp_path: Path) -> None:
    path = tmp_path / "a_b.map"
    path.write_text("# made by hand\n 1.0000000e+00\n\n7.0\n")
    assert read_map(path, size=7).tolist() == [0, 6]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("1\n2\n9\n", 3, "got entry 9"),
        ("1\n-1\n2\n", 2, "got entry -1"),
        ("1\nx\n2\n", 2, "got 'x', expected a number"),
        ("1\n2.5\n2\n", 2, "whole numbers"),
        ("1\n2\nnan\n", 3, "not finite"),
        ("1\n2 3\n2\n", 2, "got 2 numbers"),
        ("1\n2\n", 2, "got 2 entries"),
    ],
)
def test_a_damaged_map_names_file_line_and_reason(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = tmp_path / "bad.map"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_map(path, size=3, count=3)
    assert f"bad.map, line {line}:" in str(caught.value)
    assert str(caught.value).count(";") >= 1


def test_other_damage(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_map(tmp_path / "none.map")
    (tmp_path / "empty.map").write_text("\n")
    with pytest.raises(InputError, match="empty"):
        read_map(tmp_path / "empty.map")
    (tmp_path / "bytes.map").write_bytes(b"1\n2\n\xff\xfe")
    with pytest.raises(InputError, match=r"bytes.map, line 3: got bytes that are not UTF-8"):
        read_map(tmp_path / "bytes.map")


def test_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.csv"):
        read_map(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="--index-base 2"):
        read_map(tmp_path / "a.map", index_base=2)
    write_map(tmp_path / "a.map", [0])
    with pytest.raises(UsageError, match="exists"):
        write_map(tmp_path / "a.map", [0])
    write_map(tmp_path / "a.map", [1], force=True)
    assert (tmp_path / "a.map").read_text() == "2\n"
    for wrong in ([0.5], [[1]], [-2]):
        with pytest.raises(InputError, match="whole numbers"):
            write_map(tmp_path / "b.map", wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["a.map"]
