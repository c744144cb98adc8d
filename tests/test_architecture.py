"""The house: imports go one way, and importing the package is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ltenet

PACKAGE = Path(ltenet.__file__).parent

# Each module may import those above it, none below. A folder counts as one module.
LAYERS = [
    "errors",
    "configuration",
    "files",
    "shape",
    "surface_graph",
    "formats",
    "io",
    "maps",
    "bitmap_font",
    "rasterizer",
    "rendering",
    "neighbors",
    "graph",
    "batchnorm",
    "edgeconv",
    "encoder",
    "transforms",
    "reconstruction",
    "divergence",
    "losses",
    "model",
    "orientation",
    "metrics",
    "transport",
    "deformation",
    "map_quality",
    "coherence",
    "assignment",
    "polishing",
    "data",
    "training",
    "soft_maps",
    "correspondence_files",
    "correspondence",
    "spectral",
    "preparation",
    "refinement",
    "dense",
    "confidence",
    "candidates",
    "matching",
    "transferring",
    "evaluation",
    "viewer",
    "cli",
    "__main__",
]


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    """Top-level parts of ltenet that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names}
    parts = {tuple(name.split(".")) for name in names if name.split(".")[0] == "ltenet"}
    return {part[1] for part in parts if len(part) > 1 and part[1] in LAYERS}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    layer = layer_of(path)
    assert layer in LAYERS, f"{layer} has no place in the house yet"
    below = {other for other in imported_layers(path) if LAYERS.index(other) > LAYERS.index(layer)}
    assert not below, f"{path.name} imports {below}, which stand below it"


def test_every_layer_exists() -> None:
    assert {layer_of(path) for path in modules()} == set(LAYERS)


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


def test_public_names_are_loaded_on_first_use() -> None:
    code = "import ltenet; print(all(hasattr(ltenet, name) for name in ltenet.__all__))"
    assert python(code).strip() == "True"
    assert set(ltenet.__all__) <= set(dir(ltenet))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ltenet.nothing


def test_data_needs_no_torch() -> None:
    """Workers that make training pairs start in half a second, not in three."""
    code = (
        "import sys, pkgutil, ltenet.data as d\n"
        "for m in pkgutil.walk_packages(d.__path__, 'ltenet.data.'): __import__(m.name)\n"
        "print('torch' in sys.modules)"
    )
    assert python(code).strip() == "False"
