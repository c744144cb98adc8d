"""Batches on Dask, with workers that die on the way."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ltenet.collections.batch import Engine, run_batch
from ltenet.collections.plan import plan_folder
from ltenet.errors import MissingError
from ltenet.matching.config import MatchConfig
from tests.collections.test_batch import contents


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_lost_worker_costs_nothing(
    people: Path, tmp_path: Path, quick: MatchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    from ltenet.collections.cluster import Cluster

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    plan = plan_folder(people, "all-pairs")
    run_batch(plan, tmp_path / "whole", quick)
    killed: list[int] = []
    entered = Cluster.__enter__

    def enter(self: Cluster) -> Cluster:
        cluster = entered(self)
        killed.append(next(iter(cluster._client.run(os.getpid).values())))
        return cluster

    monkeypatch.setattr(Cluster, "__enter__", enter)

    def tell(what: str, done: int, before: int, total: int) -> None:
        if what == "pairs" and done == 1:
            os.kill(killed[0], signal.SIGKILL)

    outcome = run_batch(plan, tmp_path / "out", quick, engine=Engine(workers=2), tell=tell)
    assert killed
    assert {record.state for record in outcome.pairs} == {"done"}
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_running_scheduler_is_used(people: Path, tmp_path: Path, quick: MatchConfig) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")
    plan = plan_folder(people, "sequence")
    run_batch(plan, tmp_path / "whole", quick)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as running:
        engine = Engine(scheduler=running.scheduler_address)
        run_batch(plan, tmp_path / "out", quick, engine=engine)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.filterwarnings("ignore")
def test_without_dask_the_pip_line_is_named(
    people: Path, tmp_path: Path, quick: MatchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingError, match=r"try pip install 'ltenet\[cluster\]'"):
        run_batch(
            plan_folder(people, "sequence"), tmp_path / "out", quick, engine=Engine(workers=2)
        )
