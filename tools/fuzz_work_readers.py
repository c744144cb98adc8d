"""Readers of runs, collections and what steers a match, with valid files to start from."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz_data_readers import npz_bytes
from tools.fuzz_seeds import SHAPE, Reader, Seed, written


def _runs() -> list[Seed]:
    from ltenet.training.settings import dump_config, load_config

    records = [
        {"kind": "train", "step": 1, "minutes": 0.5, "pairs_per_second": 3.0, "total": 0.7},
        {"kind": "train", "step": 2, "minutes": 0.6, "pairs_per_second": 3.0, "total": 0.6},
        {"kind": "validation/independent", "step": 2, "error": 0.3, "accuracy_5": 40.0,
         "cycle": 0.2},
    ]  # fmt: skip
    log = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    config = dump_config(load_config("tiny")).encode()
    last = json.dumps(records[-1]).encode()
    return [
        Seed("log.jsonl", log, "text", {"config.toml": config}, "."),
        Seed("log.jsonl", last, "json", {"config.toml": config}, "."),
    ]


def _read_run(folder: Path) -> Any:
    from ltenet.training.runs import RunFolder
    from ltenet.training.summary import sparkline, summarize_run

    summary = summarize_run(RunFolder(folder))
    return [sparkline(curve.values) for curve in summary.curves.values()]


def _tables() -> list[Seed]:
    return [
        Seed("pairs.csv", b"source,target\na.ply,b.ply\nb.ply,c.ply\n", "text", {}),
        Seed("groups.csv", b"name,group\na,one\nb,two\n", "text", {}),
    ]


def _read_table(path: Path) -> Any:
    from ltenet.collections.atlas_files import read_groups
    from ltenet.collections.plan import plan_table

    return plan_table(path) if path.name == "pairs.csv" else read_groups(path)


def _journals() -> list[Seed]:
    from ltenet.collections.records import PairRecord

    line = {**PairRecord("a", "b", "done", map="a-b.npz", key="0")._asdict(), "seconds": 1.0}
    content = json.dumps(line).encode() + b"\n"
    return [
        Seed("1-of-1.jsonl", content * 2, "text", {}, "."),
        Seed("1-of-1.jsonl", content, "json", {}, "."),
    ]


def _read_journal(folder: Path) -> Any:
    from ltenet.collections.records import read_journals

    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "journal").symlink_to(folder.resolve())
        return read_journals(Path(place))


def _known_pairs() -> list[Seed]:
    marks = b"name,index\nnose,0\ntail,3\n"
    return [
        Seed("known.csv", b"source,target\n0,1\n2,3\n", "text", {}),
        Seed("known.txt", b"0 0 0 1 0 0\n0 1 0 0 0 1.5\n", "text", {}),
        Seed("known.npy", written("a.npy", lambda path: np.save(path, [[0, 1]])), "npy", {}),
        Seed("marks.csv", marks, "text", {"other.csv": marks}),
    ]


def _read_known_pairs(path: Path) -> Any:
    from ltenet.matching.known_pairs import read_known_pairs

    paths = [path, path.with_name("other.csv")] if path.name == "marks.csv" else [path]
    return read_known_pairs(paths, SHAPE, SHAPE)


def _batches() -> list[Seed]:
    import ltenet.collections.batch  # torch takes more memory than a reader may

    assert ltenet.collections.batch
    record = {"version": "0.1.0", "options": {"model": "human", "points": 60}, "digest": "0a"}
    return [Seed("batch.json", json.dumps(record).encode(), "json", {})]


def _read_batch(path: Path) -> Any:
    from ltenet.collections.batch import _read

    return _read(path)


def _atlases() -> list[Seed]:
    shapes = np.random.default_rng(0).normal(size=(3, 4, 3))
    arrays = {
        "mean": SHAPE.points,
        "faces": SHAPE.faces,
        "center": SHAPE.points,
        "modes": shapes[:2],
        "variances": np.array([2.0, 1.0]),
        "scores": np.ones((3, 2)),
    }
    return [Seed("atlas.npz", npz_bytes(**arrays), "npz", {}, ".")]


def _read_atlas(folder: Path) -> Any:
    from ltenet.collections.atlas_files import read_model

    mean, model = read_model(folder)
    return model.project(mean.points[None])


def _orientations() -> list[Seed]:
    from ltenet.method.model import find_weights

    content = (find_weights("human") / "orientation.safetensors").read_bytes()
    return [Seed("orientation.safetensors", content, "safetensors", {}, ".")]


def _read_orientation(folder: Path) -> Any:
    from ltenet.matching.orientation import Orienter

    return Orienter.from_pretrained(folder)


WORK_READERS: dict[str, Reader] = {
    "orientation": Reader(_read_orientation, _orientations),
    "run": Reader(_read_run, _runs),
    "table": Reader(_read_table, _tables),
    "journal": Reader(_read_journal, _journals),
    "batch": Reader(_read_batch, _batches),
    "known-pairs": Reader(_read_known_pairs, _known_pairs),
    "atlas": Reader(_read_atlas, _atlases),
}
