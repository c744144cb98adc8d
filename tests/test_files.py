"""Outputs: whole or not at all, refused before the work, and cleaned up after killed processes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ltenet.files as files
from ltenet.errors import InputError, UsageError
from ltenet.files import (
    atomic_folder,
    atomic_path,
    check_output,
    check_output_folder,
    process_tag,
    sweep,
    sweep_tree,
)


def fail(message: str) -> None:
    raise InputError(message)


def write_half(temporary: Path) -> None:
    temporary.write_text("half")
    fail("stop")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(InputError), atomic_path(path) as temporary:
        write_half(temporary)
    assert list(tmp_path.iterdir()) == []
    with atomic_path(path) as temporary:
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".txt")
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    with pytest.raises(UsageError, match=r"--force"), atomic_path(path):
        pass


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No space left"), atomic_path(tmp_path / "a"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_failing_cleanup_does_not_hide_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("clean-up")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(InputError, match="first"), atomic_path(tmp_path / "a"):
        fail("first")


@pytest.mark.parametrize("stepwise", [False, True])
def test_a_folder_is_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stepwise: bool
) -> None:
    if stepwise:
        monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    folder = tmp_path / "deep" / "folder"
    with atomic_folder(folder) as temporary:
        (temporary / "old").write_text("old")
        assert not folder.exists()
    with pytest.raises(UsageError, match="not empty"), atomic_folder(folder):
        pass
    with pytest.raises(InputError), atomic_folder(folder, force=True) as temporary:
        write_half(temporary / "new")
    assert [file.name for file in folder.iterdir()] == ["old"]
    with atomic_folder(folder, force=True) as temporary:
        (temporary / "new").write_text("new")
        assert (folder / "old").read_text() == "old"
    assert [file.name for file in folder.iterdir()] == ["new"]
    assert list(folder.parent.iterdir()) == [folder]


def test_outputs_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there.npz").write_text("mine")
    for name, words in (
        ("there.npz", "--force"),
        ("map.jpg", r"got the suffix '.jpg', expected .npz or .csv; try map.npz"),
        ("nowhere/map.npz", "does not exist"),
    ):
        with pytest.raises(UsageError, match=words):
            check_output(tmp_path / name, suffixes=(".npz", ".csv"))
    with pytest.raises(UsageError, match="got a folder"):
        check_output(tmp_path)
    check_output(tmp_path / "there.npz", force=True)
    check_output_folder(tmp_path / "new" / "deeper")
    with pytest.raises(UsageError, match="got a file at"):
        check_output_folder(tmp_path / "there.npz" / "deeper")
    assert [file.name for file in tmp_path.iterdir()] == ["there.npz"]
    monkeypatch.setattr(files, "LEAST_ROOM", 2**80)
    with pytest.raises(UsageError, match="bytes left"):
        check_output(tmp_path / "map.npz")


def test_a_read_only_folder_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "write_bytes", refuse)  # root may write to any folder
    for check in (check_output, check_output_folder):
        with pytest.raises(UsageError, match=r"Read-only.*; try another"):
            check(tmp_path / "a.npz")


def test_leftovers_of_killed_processes_are_swept(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from ltenet.files import atomic_folder, atomic_path\n"
        "with atomic_path(sys.argv[1] + '/a.npz') as file, atomic_folder(sys.argv[1] + '/b') as b:"
        "\n    file.write_text('half'); (b / 'c').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    mine = tmp_path / f".a.{process_tag()}-00000000.npz"
    mine.write_text("being written")
    other = tmp_path / ".a.ltenet-00000000-1-00000000.npz"
    other.write_text("of another machine")
    assert len(list(tmp_path.iterdir())) == 4
    below = tmp_path / "below"
    shutil.copytree(tmp_path, below)
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, other, below])
    assert len(list(below.iterdir())) == 4
    sweep_tree(tmp_path)
    assert sorted(below.iterdir()) == sorted(below / one.name for one in (mine, other))


def test_working_folders_of_killed_processes_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import os, signal\n"
        "from ltenet.files import working_folder\n"
        "with working_folder('ltenet-adapt') as folder:\n"
        "    (folder / 'log').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=False, env=environment)
    assert len(list(tmp_path.glob("*/log"))) == 1
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with files.working_folder("ltenet-adapt") as folder:
        assert list(tmp_path.iterdir()) == [folder]
        assert folder.stat().st_mode & 0o77 == 0
    assert list(tmp_path.iterdir()) == []


def test_leftovers_beside_a_folder_that_exists_are_swept(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    tag = files.process_tag().rsplit("-", 1)[0]
    left = tmp_path / f".mine.{tag}-{ended.pid}-00000000"
    left.mkdir()
    (tmp_path / "mine").mkdir()
    files.check_output_folder(tmp_path / "mine")
    assert not left.exists()
