"""What a prediction depends on, as hashes: shapes, weights, code, packages.

A prediction is filed under the hash of all of these, so that a change of set, sampling or
options never meets an old prediction.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import ltenet
from ltenet import __version__
from ltenet.matching.networks import ALIGNER
from ltenet.method.model import available_weights, find_weights
from ltenet.shape import Shape

#: Packages whose numerics a prediction may depend on.
_PACKAGES = ("numpy", "scipy", "torch", "pot", "pycpd", "pyfmaps", "robust-laplacian")
#: A string that names a module, alone or before the name of something in it.
_NAMED = re.compile(r"^(ltenet(?:\.\w+)+)(?::\w+)?$")


def prediction_key(method: Mapping[str, Any], source: Shape, target: Shape) -> str:
    """Hash (hexadecimal) under which a method's map from source to target is filed.

    Parameters
    ----------
    method
        What `method_record` returned.
    source, target
        The shapes as the method gets them.
    """
    digest = hashlib.sha256(json.dumps(method, sort_keys=True).encode())
    for shape in (source, target):
        digest.update(b"points %d " % len(shape))
        digest.update(np.ascontiguousarray(shape.points, dtype="<f8").tobytes())
        if shape.faces is not None:
            digest.update(b"faces %d " % len(shape.faces))
            digest.update(np.ascontiguousarray(shape.faces, dtype="<i8").tobytes())
    return digest.hexdigest()


def method_record(name: str, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that determines a prediction except the shapes, as plain values."""
    record = {
        "method": name,
        "options": {key: _plain(value) for key, value in sorted(options.items())},
        "version": __version__,
        "code": code_hash(module),
        "packages": package_versions(),
    }
    if "model" in options:
        record["weights"] = weights_hash(str(options["model"]))
    return record


@cache
def weights_hash(model: str) -> str:
    """Hash of weights by name or folder; of all that ship for "auto", which chooses.

    Those that tell how shapes lie count with every model, and every file but Markdown.
    """
    shipped = available_weights()
    names = shipped if model == "auto" else (model, *(n for n in shipped if n == ALIGNER))
    digest = hashlib.sha256()
    for name in names:
        for file in sorted(find_weights(name).iterdir()):
            if file.is_file() and file.suffix != ".md":
                digest.update(f"{file.name} {file_hash(file)} ".encode())
    return digest.hexdigest()[:16]


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages behind predictions, as far as they are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def source_commit() -> str | None:
    """Commit that the code was run from, None where it is not in a git checkout of its own.

    The suffix "-changed" marks uncommitted changes of the package.
    """
    package = Path(ltenet.__file__).parent
    if not (package.parents[1] / ".git").exists():  # some other project that we are installed in
        return None

    def git(*words: str) -> str:
        found = subprocess.run(
            ["git", "-C", str(package), *words], check=True, capture_output=True, text=True
        )
        return found.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


@cache
def code_hash(module: str) -> str:
    """Hash of the code of a module and of all of this package that it imports.

    Imports by name count too: a string such as "ltenet.method.model:LTENet". Comments, docstrings
    and layout do not.
    """
    if _module_file(module) is None:
        raise ValueError(f"got '{module}', expected a module of ltenet; check the table of peers")
    digest, todo = hashlib.sha256(), [module]
    code: dict[str, ast.Module] = {}
    while todo:
        name = todo.pop()
        path = _module_file(name)
        if name not in code and path is not None:
            code[name] = ast.parse(path.read_text(encoding="utf-8"))
            todo += _imports(code[name])
    for name in sorted(code):
        digest.update(f"{name} {ast.dump(_without_docstrings(code[name]))}".encode())
    return digest.hexdigest()[:16]


def _module_file(name: str) -> Path | None:
    """File of a module of this package; None if there is no such module."""
    root = Path(ltenet.__file__).parent
    place = root.joinpath(*name.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def _imports(code: ast.Module) -> list[str]:
    """Names inside this package that a module imports, anywhere in it, also by string."""
    names = []
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += _NAMED.findall(node.value)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("ltenet.")]


def _without_docstrings(code: ast.Module) -> ast.Module:
    for node in ast.walk(code):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            body[:1] = [ast.Pass()]  # type: ignore[index]
    return code


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)
