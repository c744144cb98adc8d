"""Training settings as TOML: files, presets, and single settings from the command line.

TOML has no null: the string "none" stands for it. Missing settings take their defaults, unknown
ones are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ltenet.configuration import from_dict, to_dict
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.io.formats.documents import parse_toml
from ltenet.training.config import TrainingConfig

_NONE = "none"

#: Settings of older versions, by table and key, with the values that still mean what runs do today.
_RETIRED: dict[tuple[str, str], tuple[object, ...]] = {
    ("known", "mode"): ("similarity",),
    ("reconstruction", "sigma_start"): (_NONE,),
    ("reconstruction", "sigma_share"): (),  # had no effect without the other
    ("self_training.refinement", "aligned"): (False,),
}


def presets() -> tuple[str, ...]:
    """Names of the presets that the package ships."""
    folder = resources.files("ltenet.training") / "presets"
    return tuple(sorted(Path(entry.name).stem for entry in folder.iterdir()))


def load_config(source: str | Path, overrides: Sequence[str] = ()) -> TrainingConfig:
    """Read a preset by name or a TOML file, then apply ``key=value`` overrides.

    Parameters
    ----------
    source
        Name of a preset, or path of a file.
    overrides
        Such as ``optim.lr=1e-4``; values are written as in TOML, quotes may be left out.
    """
    if str(source) in presets():
        text = (resources.files("ltenet.training") / "presets" / f"{source}.toml").read_text(
            "utf-8"
        )
    else:
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MissingError(
                f"{source}: got neither a preset nor a readable file ({error}), expected one of "
                f"{', '.join(presets())} or a TOML file; try checking the spelling"
            ) from None
    return parse_config(text, overrides, where=str(source))


def parse_config(text: str, overrides: Sequence[str] = (), *, where: str) -> TrainingConfig:
    """Make a configuration from TOML text and overrides; `where` is its name in messages."""
    values = _without_retired(_parse(text, where=where), where=where)
    for override in overrides:
        _apply(values, override)
    return from_dict(TrainingConfig, _nulls(values), where=where)


def dump_config(config: TrainingConfig) -> str:
    """Write every setting as TOML, which `parse_config` reads back as the same configuration."""
    return "\n".join(_lines(to_dict(config), ())) + "\n"


def validated_alike(settings: str, others: str) -> bool:
    """Whether scores under these settings (TOML) compare: the same pairs, the same choice."""
    try:
        first, second = (parse_config(text, where="settings") for text in (settings, others))
    except InputError:
        return False  # an older version had settings that are gone
    same_pairs = first.pairs == second.pairs and first.seed == second.seed
    ours, theirs = first.validation, second.validation
    return same_pairs and (ours.pairs, ours.select) == (theirs.pairs, theirs.select)


def _parse(text: str, *, where: str) -> dict[str, Any]:
    return parse_toml(text, Path(where))


def _without_retired(values: dict[str, Any], *, where: str) -> dict[str, Any]:
    """Drop settings that older versions had, where runs still do what they asked for."""
    for (table, key), harmless in _RETIRED.items():
        settings: Any = values
        for name in table.split("."):
            settings = settings.get(name) if isinstance(settings, dict) else None
        if not isinstance(settings, dict) or key not in settings:
            continue
        found = settings.pop(key)
        if harmless and found not in harmless:
            raise InputError(
                f"{where}: got {table}.{key} {found!r}, expected a setting of this version; try "
                "the version of ltenet that wrote it"
            )
    return values


def _apply(values: dict[str, Any], override: str) -> None:
    """Set one ``path.to.key=value`` in nested tables."""
    path, separator, text = override.partition("=")
    *tables, key = path.strip().split(".")
    if not separator or not key:
        raise UsageError(
            f"--set {override}: got no value, expected key=value; try --set optim.lr=1e-4"
        )
    try:
        value = _parse(f"value = {text}", where="--set")["value"]
    except InputError:
        value = text.strip()  # a bare word
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise UsageError(
                f"--set {override}: got {table}, a single setting, expected a table before the "
                "dot; try checking the spelling"
            )
    values[key] = value


def _nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nulls(item) for key, item in value.items()}
    return None if value == _NONE else value


def _lines(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Lines of one table: its own settings first, then the tables inside it."""
    own = [f"{k} = {_text(v)}" for k, v in values.items() if not isinstance(v, Mapping)]
    lines = [*(["", f"[{'.'.join(path)}]"] if path and own else []), *own]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _lines(value, (*path, key))
    return lines


def _text(value: Any) -> str:
    if value is None:
        return f'"{_NONE}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float):
        return repr(value)  # the shortest digits that read back as the same number
    return json.dumps(value, ensure_ascii=False)  # whole numbers, booleans and text alike
