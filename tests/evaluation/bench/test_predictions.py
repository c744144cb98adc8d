"""Methods by name, what predictions depend on, and the files that hold them."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from known_shapes import shuffled

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.evaluation.bench import provenance
from ltenet.evaluation.bench.predictions import PredictionCache, default_cache
from ltenet.evaluation.bench.provenance import (
    code_hash,
    method_record,
    package_versions,
    prediction_key,
    weights_hash,
)
from ltenet.evaluation.peers.table import PEERS, find_peer, make_peer
from ltenet.method.model import find_weights
from ltenet.shape import Shape

#: Ours, one that takes meshes only, and those that need trained weights, which have their own test.
ELSEWHERE = ("ltenet", "embedding", "fmaps-oriented", *(n for n in PEERS if PEERS[n].learning))


@pytest.mark.parametrize("name", [name for name in PEERS if name not in ELSEWHERE])
def test_every_peer_has_the_signature(lump: Shape, name: str) -> None:
    source = Shape(lump.points[::4])
    target, _ = shuffled(source)
    options = {"cpd": {"iterations": 5}, "fmaps": {"last_modes": 40}}.get(name, {})
    if name.startswith(("density", "chamfer", "lm-icp")):
        options = {"levels": 1, "iterations": 3}
    if "rpm" in name:
        options = {"rounds": 1} if name == "rpm-l2e" else {"cooling": 0.3}
    try:
        method = make_peer(name, options)
    except MissingError as error:
        pytest.skip(str(error))
    found = method(source, target)
    assert isinstance(found, Correspondence)
    assert found.matched.all()
    assert (len(found), found.target_size) == (len(source), len(target))


@pytest.mark.parametrize("name", ["ltenet", "embedding"])
def test_our_methods_have_the_signature(body: Shape, name: str) -> None:
    target, place = shuffled(body)
    found = make_peer(name, {"model": "human"})(body, target)
    assert found.matched.all()
    # A copy in the same pose is easy; only the order of the points is another.
    assert (found.indices == place).mean() > 0.9


@pytest.mark.parametrize("name", PEERS)
def test_every_named_class_exists(name: str) -> None:
    """The table names code by strings, and predictions are filed under the hash of that code."""
    module, _, kind = PEERS[name].place.partition(":")
    assert callable(getattr(import_module(module), kind))
    assert PEERS[name].module == module
    assert re.fullmatch("[0-9a-f]{16}", code_hash(module))


def test_code_of_a_module_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"got 'ltenet\.gone', expected a module of ltenet"):
        code_hash("ltenet.gone")


def test_code_follows_imports_by_name() -> None:
    code = ast.parse('table = {"a": "ltenet.method.model:LTENet", "b": "see ltenet.shape first"}')
    assert provenance._imports(code) == ["ltenet.method.model"]


def test_methods_that_do_not_exist() -> None:
    with pytest.raises(UsageError, match=r"got the method 'best', expected one of ltenet, .*; try"):
        find_peer("best")
    with pytest.raises(
        UsageError, match=r"icp: got the options .*speed.*, expected options of that"
    ):
        make_peer("icp", {"speed": 3})


@pytest.mark.parametrize(
    ("name", "module", "line"),
    [
        ("cpd", "pycpd", r"got no pycpd, .*; try `pip install 'ltenet\[base"),
        ("transport", "ot", r"got no POT, .*`pip install 'ltenet\[baselines\]'`"),
        ("fmaps", "pyFM.functional", r"got no pyfmaps, .*'ltenet\[spectral\]'`"),
    ],
)
def test_a_missing_package_is_named_when_the_method_is_made(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, line: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingError, match=line):
        make_peer(name)


def test_keys_tell_shapes_methods_and_options_apart(body: Shape, lump: Shape) -> None:
    record = method_record("icp", "ltenet.evaluation.peers.coordinates", {"iterations": 5})
    key = prediction_key(record, body, lump)
    assert key == prediction_key(record, Shape(body.points, name="renamed"), lump)
    moved = body.points.copy()
    moved[7, 1] += 1e-12
    swapped = Shape(lump.points, faces=lump.faces[:, [1, 2, 0]])
    more = method_record("icp", "ltenet.evaluation.peers.coordinates", {"iterations": 6})
    other = method_record("nearest", "ltenet.evaluation.peers.coordinates", {"iterations": 5})
    others = [
        prediction_key(record, Shape(moved), lump),
        prediction_key(record, body, Shape(lump.points)),
        prediction_key(record, body, swapped),
        prediction_key(record, lump, body),
        prediction_key(more, body, lump),
        prediction_key(other, body, lump),
    ]
    assert len({key, *others}) == 7


def test_weights_are_told_apart_by_what_is_in_them(tmp_path: Path) -> None:
    copy = tmp_path / "mine"
    shutil.copytree(find_weights("human"), copy)
    assert weights_hash(str(copy)) == weights_hash("human")
    assert weights_hash("human") != weights_hash("animal")
    assert weights_hash("auto") not in (weights_hash("human"), weights_hash("animal"))
    (copy / "README.md").write_text("another card")
    weights_hash.cache_clear()
    assert weights_hash(str(copy)) == weights_hash("human")
    config = copy / "config.json"
    config.write_text(config.read_text() + " ")
    weights_hash.cache_clear()
    assert weights_hash(str(copy)) != weights_hash("human")


def test_code_is_told_apart_by_what_it_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def hashed(method: str, shape: str = "x = 1\n") -> str:
        (tmp_path / "method.py").write_text(method)
        (tmp_path / "shape.py").write_text(shape)
        code_hash.cache_clear()
        return code_hash("ltenet.method")

    monkeypatch.setattr("ltenet.__file__", str(tmp_path / "__init__.py"))
    code = (
        '"""Doc."""\n\n\ndef f():\n    """Doc."""\n    from ltenet.shape import x\n\n    return x\n'
    )
    first = hashed(code)
    assert hashed(code.replace("Doc.", "Other words.") + "# a comment\n") == first
    assert hashed(code.replace("return x", "return -x")) != first
    assert hashed(code, "x = 2\n") != first  # what it imports, even inside a function
    code_hash.cache_clear()


def test_records_name_versions() -> None:
    record = method_record("embedding", "ltenet.evaluation.peers.embedding", {"model": "human"})
    assert record["packages"]["numpy"] == np.__version__
    assert record["weights"] == weights_hash("human")
    assert "torch" in package_versions()


def matching(indices: list[int], **more: object) -> Callable[[], Callable[..., Correspondence]]:
    return lambda: lambda source, target: Correspondence(np.array(indices), len(target), **more)


def test_predictions_are_made_once(tmp_path: Path) -> None:
    cache = PredictionCache(tmp_path / "deep" / "cache")
    one, two = Shape(np.eye(3)), Shape(2 * np.eye(3))
    weights = np.array([[0.25, 0.75], [1.0, 0.0], [1.5, -0.5]])
    neighbors = np.array([[0, 1], [1, 2], [2, 0]])
    scores = np.array([0.5, 1.0, 0.25])
    method = matching([1, 1, 2], neighbors=neighbors, weights=weights, scores=scores)
    first = cache.get(method, {"method": "a"}, one, two)
    np.testing.assert_array_equal(first.map.indices, [1, 1, 2])
    np.testing.assert_allclose(first.map.weights, weights)
    np.testing.assert_array_equal(first.map.neighbors, neighbors)
    np.testing.assert_array_equal(first.map.scores, scores)
    assert first.seconds >= 0

    again = cache.get(matching([0, 0, 0]), {"method": "a"}, one, two)
    np.testing.assert_array_equal(again.map.indices, [1, 1, 2])
    assert again.seconds == first.seconds
    other = cache.get(matching([0, 0, 0]), {"method": "b"}, one, two)
    np.testing.assert_array_equal(other.map.indices, [0, 0, 0])
    assert len(list(cache.folder.rglob("*"))) == len(list(cache.folder.rglob("*.npz"))) + 2


def test_damaged_files_are_made_again(tmp_path: Path) -> None:
    cache, shape = PredictionCache(tmp_path), Shape(np.eye(3))
    cache.get(matching([0, 1, 2]), {}, shape, shape)
    (file,) = tmp_path.rglob("*.npz")
    file.write_bytes(file.read_bytes()[:50])
    found = cache.get(matching([2, 1, 0]), {}, shape, shape)
    assert found.map.indices.tolist() == [2, 1, 0]
    np.savez(file, indices=np.array([0, 1]), seconds=np.array(1.0))  # of another size
    assert cache.get(matching([1, 1, 1]), {}, shape, shape).map.indices.tolist() == [1, 1, 1]


def test_no_point_is_left_out(tmp_path: Path) -> None:
    cache, shape = PredictionCache(tmp_path), Shape(np.eye(3))
    neighbors, weights = np.array([[0, 1], [1, 2], [2, 0]]), np.array([[0.3, 0.7]] * 3)
    soft = matching([0, -1, 2], neighbors=neighbors, weights=weights)
    assert cache.get(soft, {"soft": 1}, shape, shape).map.indices.tolist() == [0, 2, 2]
    with pytest.raises(InputError, match=r"got 1 of 3 points without .*; try a threshold"):
        cache.get(matching([0, -1, 2]), {}, shape, shape)
    with pytest.raises(InputError, match=r"got a map of 2 onto 3 points, expected 3 onto 3; try"):
        cache.get(matching([0, 1]), {}, shape, shape)


def test_where_predictions_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"
    monkeypatch.delenv("LTENET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "ltenet" / "predictions"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache().parts[-3:] == (".cache", "ltenet", "predictions")
