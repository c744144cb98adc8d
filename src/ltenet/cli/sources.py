"""Which shapes a word on the command line stands for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ltenet.cli.progress import progress
from ltenet.errors import LTENetError, MissingError, UsageError

if TYPE_CHECKING:
    from ltenet.bodies.body_pairs import What
    from ltenet.data.generated_set import GeneratedSet
    from ltenet.data.shapeset import ShapeSet

GENERATORS: tuple[What, ...] = ("human", "animal", "thing")

#: Environment variable with the folder of the benchmarks.
DATA_VARIABLE = "LTENET_DATA"


def data_folder(given: Path | None) -> Path | None:
    """Folder of the benchmarks: the option, else the environment variable, else None."""
    if given is not None:
        return given
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else None


def open_source(
    what: str,
    *,
    data: Path | None,
    count: int,
    seed: int,
    template: str | None = None,
    category: str | None = None,
) -> ShapeSet:
    """Open generated shapes, a benchmark by name, or a folder or manifest of the user.

    `count`, `seed` and `template` are of generated shapes only; `category` is checked for all.
    """
    if what in GENERATORS:
        return generated(what, count, seed=seed, template=template, category=category)
    if template is not None:
        raise UsageError(
            f"got the template '{template}' for '{what}', expected it for generated shapes alone; "
            "try --category"
        )
    shapes = _open_named(what, data)
    if category is not None and category not in shapes.categories:
        raise UsageError(
            f"got the category '{category}', expected one of {', '.join(_unique(shapes))} for "
            f"'{what}'; try without it"
        )
    return shapes


def generated(
    what: str,
    count: int,
    *,
    seed: int,
    first: int = 0,
    template: str | None = None,
    category: str | None = None,
) -> GeneratedSet:
    """Draw bodies, with a bar on stderr."""
    from ltenet.data.generated_set import GeneratedSet

    return GeneratedSet(
        next(name for name in GENERATORS if name == what),
        count,
        seed=seed,
        first=first,
        template=template,
        category=category,
        progress=lambda numbers: progress(list(numbers), f"drawing {what}s"),
    )


def find_benchmark(name: str, folder: Path) -> ShapeSet:
    """Open a benchmark in the folder of all benchmarks: its archive, its subfolder, or itself."""
    from ltenet.data.readers import open_set

    if not (folder / f"{name}.npz").is_file() and (folder / name).is_dir():
        folder = folder / name
    return open_set(name, folder)


def found_benchmarks(folder: Path) -> dict[str, ShapeSet]:
    """Open every benchmark that is in the folder."""
    from ltenet.data.readers import READERS

    if not folder.is_dir():
        raise MissingError(
            f"{folder}: got no such folder, expected the one that holds the benchmarks; "
            f"try another --data or {DATA_VARIABLE}"
        )
    found = {}
    for name in READERS:
        # Only what carries the set's name: other readers may take each other's files.
        if not (folder / f"{name}.npz").is_file() and not (folder / name).is_dir():
            continue
        try:
            found[name] = find_benchmark(name, folder)
        except LTENetError:
            continue
    return found


def chosen(shapes: ShapeSet, category: str | None) -> list[int]:
    """Return the indices of the shapes of a category, or of all."""
    return [i for i, other in enumerate(shapes.categories) if category in (None, other)]


def _open_named(what: str, data: Path | None) -> ShapeSet:
    from ltenet.data.readers import READERS, open_set

    names = [name for name in READERS if name != "folder"]
    if what in names:
        folder = data_folder(data)
        if folder is None:
            raise MissingError(
                f"got '{what}', a benchmark that does not ship with ltenet, expected the folder "
                f"that holds its data; try --data DIR, or set {DATA_VARIABLE}"
            )
        return find_benchmark(what, folder)
    path = Path(what)
    if not path.exists() and path.name == what and not path.suffix:
        raise UsageError(
            f"got '{what}', expected a known set ({', '.join([*GENERATORS, *names])}), or a "
            "folder or manifest of your own; try `ltenet data list`"
        )
    return open_set(path)


def _unique(shapes: ShapeSet) -> Sequence[str]:
    return list(dict.fromkeys(shapes.categories))
