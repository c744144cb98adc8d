"""Test methods that want a mesh on whole ones, beside the samples of the tables."""

from __future__ import annotations

from typing import Any

from ltenet.errors import MissingError, PartialFailure
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.results import summarize
from ltenet.evaluation.bench.run import run_bench
from ltenet.evaluation.paper.config import PaperConfig, Tell
from ltenet.evaluation.paper.plan import MESH_PAIRS, MESHES, Row


def on_meshes(row: Row, weights: Any, config: PaperConfig, tell: Tell) -> dict[str, Any] | None:
    """Geodesic error on whole meshes; None where there are none."""
    bench = BenchConfig(
        benchmark=MESHES,
        data=config.data,
        method=row.method,
        model=weights,
        sampling="full",
        pairs=min(MESH_PAIRS, config.pairs or MESH_PAIRS),
        seeds=config.seeds[:1],
        cycle=False,
    )
    try:
        whole = summarize(run_bench(bench, cache=config.cache, workers=config.workers))
    except (MissingError, PartialFailure) as error:
        tell(f"{row.label}: not tested on {MESHES}: {error}")
        return None
    kept = ("pairs", "geodesic", "seconds_per_pair", "memory_mb")
    return {"benchmark": MESHES, **{name: whole[name] for name in kept}}
