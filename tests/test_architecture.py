"""The house: rooms, one-way imports (also by string), small files, and cheap importing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ltenet

PACKAGE = Path(ltenet.__file__).parent
TESTS = Path(__file__).parent

# Each room, or module of the ground floor, may import those above it and none below.
LAYERS = [
    "errors",
    "lazy",
    "memory",
    "configuration",
    "files",
    "geometry",
    "shape",
    "drawing",
    "io",
    "metrics",
    "correspondence",
    "method",
    "refinement",
    "bodies",
    "data",
    "matching",
    "training",
    "transferring",
    "collections",
    "evaluation",
    "viewer",
    "cli",
    "__main__",
]

# Imports that go up, each with its reason. Only lazy imports by string can be listed here.
UPWARD = {("correspondence", "viewer"): "a notebook displays a map by itself"}

GROUND_FLOOR = 10
LINES = 350

MODULE_PATH = re.compile(r"ltenet(?:\.[a-z_][a-z0-9_]*)+")


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> set[str]:
    """Dotted names that import statements bind, anywhere in a file."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "ltenet"}


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the constants that are bare expressions, which nothing can import."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def strings(tree: ast.Module) -> Iterator[str]:
    """Yield module paths that stand in strings: lazy tables, import_module, resources.files.

    "ltenet.a.b:Name" counts as its module, and of an f-string the part before its first field.
    """
    skipped = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and node.values:
            first = node.values[0]
            skipped |= {id(value) for value in node.values}
            text = first.value if isinstance(first, ast.Constant) else ""
            found = re.match(r"(ltenet(?:\.[a-z_][a-z0-9_]*)*)\.$", str(text))
            if found and len(node.values) > 1:
                yield found[1]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            module = node.value.partition(":")[0]
            if id(node) not in skipped and MODULE_PATH.fullmatch(module):
                yield module


def room_of(name: str) -> str | None:
    """Layer of a dotted name; None for names of the package itself, such as `__version__`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else None


def upward(names: set[str], layer: str) -> set[str]:
    rooms = {room for name in names if (room := room_of(name)) is not None}
    return {room for room in rooms if LAYERS.index(room) > LAYERS.index(layer)}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_imports_go_one_way(path: Path) -> None:
    layer, tree = layer_of(path), tree_of(path)
    assert layer in LAYERS, f"{layer} has no place in the house yet"
    by_string = upward(set(strings(tree)), layer)
    allowed = {room for room in by_string if (layer, room) in UPWARD}
    wrong = upward(imports(tree), layer) | (by_string - allowed)
    assert not wrong, f"{relative(path)} imports {wrong}, which stand below it"


@pytest.mark.parametrize("path", [PACKAGE / "__init__.py", *modules()], ids=relative)
def test_module_paths_in_strings_exist(path: Path) -> None:
    for name in strings(tree_of(path)):
        place = PACKAGE.joinpath(*name.split(".")[1:])
        assert place.is_dir() or place.with_suffix(".py").is_file(), f"{name} does not exist"


def test_upward_imports_are_in_use() -> None:
    found = {
        (layer_of(path), room)
        for path in modules()
        for room in upward(set(strings(tree_of(path))), layer_of(path))
    }
    assert found == set(UPWARD)


def test_imports_by_string_are_found() -> None:
    code = (
        '"""ltenet.docstring"""\nTABLE = {"a": "ltenet.cli.match", "b": "ltenet.io.ply:Reader"}\n'
    )
    code += 'm = import_module(f"ltenet.viewer.{name}")\nn = "ltenet", "see ltenet.io for more"\n'
    assert sorted(strings(ast.parse(code))) == [
        "ltenet.cli.match",
        "ltenet.io.ply",
        "ltenet.viewer",
    ]
    assert upward({"ltenet.cli.match", "ltenet.io.ply"}, "method") == {"cli"}


def test_every_layer_exists() -> None:
    assert {layer_of(path) for path in modules()} == set(LAYERS)


def test_the_ground_floor_is_small() -> None:
    ground = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(ground) <= GROUND_FLOOR, ground


def test_files_are_short() -> None:
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()
    }
    assert not {name: length for name, length in lengths.items() if length > LINES}


def test_tests_live_in_the_same_rooms() -> None:
    rooms = {path.name for path in TESTS.iterdir() if path.is_dir() and list(path.glob("test_*"))}
    assert rooms <= {*LAYERS, "tools"}
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert max(names.values()) == 1, names.most_common(3)


def python(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return result.stdout


@pytest.mark.parametrize("module", ["ltenet", "ltenet.io", "ltenet.shape", "ltenet.cli"])
def test_importing_is_cheap(module: str) -> None:
    heavy = "torch", "trimesh", "scipy", "matplotlib"
    loaded = python(f"import sys, {module}; print(*[m for m in {heavy} if m in sys.modules])")
    assert loaded.strip() == ""


def test_rooms_of_numpy_need_no_torch() -> None:
    """Workers that make training pairs start in half a second, not in three."""
    code = (
        "import sys, pkgutil, importlib\n"
        "import ltenet.matching.config\n"
        "for room in ('geometry', 'bodies', 'data'):\n"
        "    package = importlib.import_module(f'ltenet.{room}')\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "        if 'torch' in sys.modules: raise SystemExit(f'{module.name} imports torch')\n"
        "print('torch' in sys.modules)"
    )
    assert python(code).strip() == "False"


def test_public_names_are_loaded_on_first_use() -> None:
    code = "import ltenet; print(all(hasattr(ltenet, name) for name in ltenet.__all__))"
    assert python(code).strip() == "True"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ltenet.nothing


def test_dir_shows_the_public_names_only() -> None:
    assert dir(ltenet) == sorted([*ltenet.__all__, "__version__"])
