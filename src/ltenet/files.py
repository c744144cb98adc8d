"""Outputs: checked before the work, written whole or not at all, never over others without `force`.

Temporary files and folders stand beside what they become and carry the machine and the process
that writes them in their names, so that those of killed processes can be told and removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ltenet.errors import UsageError

#: Least free space where something is written, in bytes.
LEAST_ROOM = 2**20

_TEMPORARY = re.compile(
    r"^(?:\..*|ltenet-app|ltenet-adapt)\.ltenet-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}(\.[^.]*)?$"
)


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block ends well.

    The temporary file has the same suffix, for writers that look at it, and is removed when the
    block raises.

    Parameters
    ----------
    path
        Where the finished file shall be.
    force
        Replace a file that is already there.

    Raises
    ------
    UsageError
        If the file exists and `force` is not given, or if it cannot be written there.
    """
    target = Path(path)
    refuse_to_overwrite(target, force=force)
    _require_folder(target)
    temporary = _temporary_beside(target)
    try:
        yield temporary
        _to_disk(temporary)
        # Somebody else may have written the same file while the block was running.
        refuse_to_overwrite(target, force=force)
        os.replace(temporary, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `path`; rename it to `path` when the block ends well.

    A folder that is already there is replaced with `force` only, and by one exchange: whoever
    looks, and whenever the process is killed, finds the old one or the new one whole.
    """
    target = Path(path).absolute()
    refuse_to_replace_folder(target, force=force)
    temporary = _temporary_beside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        for file in sorted(temporary.rglob("*")):
            if file.is_file():
                _to_disk(file)
        refuse_to_replace_folder(target, force=force)
        if not target.exists():
            os.rename(temporary, target)
        elif not _exchanged(temporary, target):
            _exchange_in_steps(temporary, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_output(
    path: str | os.PathLike[str], *, force: bool = False, suffixes: Sequence[str] = ()
) -> None:
    """Refuse a file that could not be written at the end, before long work begins.

    Also removes what killed processes of this machine left in its folder.

    Parameters
    ----------
    path
        The file to be written.
    force
        Whether it may replace one that is there.
    suffixes
        What its name may end with, in lower case; any by default.
    """
    target = Path(path)
    if suffixes and not target.name.lower().endswith(tuple(suffixes)):
        raise UsageError(
            f"{target}: got the suffix '{target.suffix}', expected {_either(suffixes)}; "
            f"try {target.with_suffix(suffixes[0]).name}"
        )
    refuse_to_overwrite(target, force=force)
    _require_folder(target)
    _check_room(target, target.parent)


def check_output_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that could not be made or written into, before long work begins."""
    target = Path(path).absolute()
    there = next(folder for folder in (target, *target.parents) if folder.exists())
    if not there.is_dir():
        raise UsageError(f"{target}: got a file at {there}, expected a folder; try another name")
    _check_room(target, there)
    sweep(target.parent)  # temporary folders stand beside what they become


def refuse_to_overwrite(target: Path, *, force: bool) -> None:
    """Refuse a folder, and without `force` a file that is already there."""
    if target.is_dir():
        raise UsageError(
            f"{target}: got a folder, expected the name of a file; try {target / 'name'}"
        )
    if not force and target.exists():
        raise UsageError(
            f"{target}: got a file that exists, expected a new name; "
            "try another one, or --force (in Python: force=True) to replace it"
        )


def refuse_to_replace_folder(target: Path, *, force: bool) -> None:
    """Refuse a file, and without `force` a folder that holds anything."""
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target}: got a file, expected a folder; try another name")
    if not force and target.is_dir() and any(target.iterdir()):
        raise UsageError(
            f"{target}: got a folder that is not empty, expected a new one; "
            "try another name, or --force (in Python: force=True) to replace it"
        )


@contextmanager
def working_folder(name: Literal["ltenet-app", "ltenet-adapt"]) -> Iterator[Path]:
    """Yield a new folder among the system's temporary ones that only this user can read.

    It goes when the block ends; that of a killed process goes when the next block begins.
    """
    place = Path(tempfile.gettempdir())
    sweep(place)
    folder = place / f"{name}.{process_tag()}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def process_tag() -> str:
    """Name this machine and process, for names of temporary files."""
    return f"ltenet-{zlib.crc32(platform.node().encode()):08x}-{os.getpid()}"


def sweep(folder: Path) -> None:
    """Remove what killed processes of this machine left in a folder: `process_tag` in its name."""
    machine = process_tag().split("-")[1]
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            found = _TEMPORARY.match(entry.name)
            if found is None or found[1] != machine or _is_running(int(found[2])):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def sweep_tree(folder: Path) -> None:
    """Do that in a folder and in all folders below it."""
    for place, _, _ in os.walk(folder):
        sweep(Path(place))


def _temporary_beside(target: Path) -> Path:
    name = f".{target.stem}.{process_tag()}-{secrets.token_hex(4)}{target.suffix}"
    return target.with_name(name)


def _require_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise UsageError(
            f"{target}: got a path into {target.parent}, which does not exist, expected an "
            f"existing folder; try mkdir -p {target.parent} first"
        )


def _check_room(target: Path, folder: Path) -> None:
    """Write a byte to a folder that exists, and ask how many more there is room for."""
    sweep(folder)
    probe = _temporary_beside(folder / "probe")
    try:
        probe.write_bytes(b"\0")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    if free < LEAST_ROOM:
        raise UsageError(
            f"{target}: got a disk with {free:,} bytes left, expected at least {LEAST_ROOM:,}; "
            "try to free some, or another disk"
        )


def _unwritable(target: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{target}: got a place that cannot be written to ({error.strerror or error}), expected "
        "a folder with room and with permission to write; try another one"
    )


def _to_disk(file: Path) -> None:
    """Have the content on the disk before the name: a power cut must not leave an empty file."""
    with contextlib.suppress(FileNotFoundError), file.open("rb+") as stream:
        os.fsync(stream.fileno())


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two folders in one step, where the system can (Linux: renameat2)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return int(rename(here, os.fsencode(first), here, os.fsencode(second), exchange)) == 0


def _exchange_in_steps(new: Path, old: Path) -> None:
    """Put a folder in the place of another; the old one is brought back if that fails."""
    # Not a temporary name: what is left of a kill between the two steps must not be swept away.
    aside = old.with_name(f".{old.name}.replaced-{secrets.token_hex(4)}")
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except OSError:
        os.rename(aside, old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
