"""Files that appear whole or not at all, and never in place of another without `force`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ltenet.errors import UsageError


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
    if not target.parent.is_dir():
        raise UsageError(
            f"{target}: there is no folder {target.parent}; an existing folder is needed; "
            "create it or choose another"
        )
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield temporary
        # Somebody else may have written the same file while the block was running.
        refuse_to_overwrite(target, force=force)
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError(
            f"{target}: cannot be written ({error.strerror or error}); a folder with room and "
            "with permission to write is needed; choose another"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def refuse_to_overwrite(target: Path, *, force: bool) -> None:
    """Raise where `atomic_path` would: ask before long work, not after it."""
    if target.is_dir():
        raise UsageError(
            f"{target}: this is a folder; the name of a file is needed; add one to the path"
        )
    if not force and target.exists():
        raise UsageError(
            f"{target}: the file exists; a new name is needed; "
            "choose one, or allow overwriting with force"
        )
