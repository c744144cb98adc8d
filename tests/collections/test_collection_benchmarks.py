"""The benchmarks of collections run, part by part, on a few small shapes."""

from __future__ import annotations

import json

import pytest

from benchmarks import atlas_quality, collection, consistency


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["pairs", "--shapes", "4", "--hubs", "1", "--single", "2"], "all_pairs_ratio"),
        (["growth", "--growth", "2", "3"], "growth_memory_ratio"),
        (["atlas", "--atlas-shapes", "4", "--atlas-workers", "0"], "atlas_seconds"),
    ],
)
def test_parts_of_the_benchmark(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--points", "200", "--atlas-points", "200", "--json"]
    collection.main(["--parts", *arguments, *small])
    found = json.loads(capsys.readouterr().out)
    assert found[expected] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workers_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    small = ["--points", "200", "--worker-shapes", "3", "--json"]
    collection.main(["--parts", "workers", *small])
    found = json.loads(capsys.readouterr().out)
    assert found["workers_ratio"] > 0
    assert found["worker_pairs"] == 3


@pytest.mark.slow
def test_consistency_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    consistency.main(["--shapes", "3", "--points", "200", "--hubs", "1", "--clouds", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["consistent"]["maps"] == found["hubs_1"]["maps"] == 3
    assert found["matched"]["error_percent"] > 0


@pytest.mark.slow
def test_quality_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pycpd", reason="the peer is not installed")
    arguments = ["--shapes", "4", "--points", "1024", "--rounds", "0", "--cpd-points", "100"]
    atlas_quality.main([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["ours"]["error_percent"] > 0
    assert found["cpd"]["error_percent"] > 0
    assert found["failed"] == 0
    assert len(found["truth"]["compactness"]) == len(found["ours"]["compactness"]) == 2
