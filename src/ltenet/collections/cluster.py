"""A batch on Dask: workers on this machine, or those of a running scheduler.

Dask schedules, retries what a lost worker was doing on another one, and shows its dashboard. The
workers share a file system with this process, through which prepared shapes and maps go; what
travels is names and records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ltenet.collections.plan import Specimen
from ltenet.collections.records import Timed
from ltenet.collections.work import match_pairs, prepare_shapes
from ltenet.errors import LTENetError, MissingError
from ltenet.matching.config import MatchConfig

#: Tasks for each worker, so that none waits long for the last one to end; and the most pairs of a
#: task, which is what a lost worker loses at most.
_TASKS, _LARGEST = 8, 16
#: How often a task may lose its worker.
_RETRIES = 3


class Cluster:
    """Runs the work of a batch on Dask; a context manager.

    Parameters
    ----------
    folder, config
        Of the batch.
    workers
        Processes to start on this machine, with one thread each, if no scheduler is given.
    scheduler
        Address of a running scheduler.
    """

    def __init__(
        self, folder: Path, config: MatchConfig, *, workers: int, scheduler: str | None
    ) -> None:
        self._folder, self._config = folder.absolute(), config
        self._workers, self._scheduler = workers, scheduler
        self._local: Any = None

    def __enter__(self) -> Cluster:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise MissingError(
                "got --workers or --scheduler without Dask, expected it to be installed; "
                "try pip install 'ltenet[cluster]'"
            ) from None
        if self._scheduler is None:
            self._local = LocalCluster(
                n_workers=self._workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
            )
        try:
            self._client = Client(self._scheduler or self._local, timeout=30)
        except OSError as error:
            raise MissingError(
                f"got no answer from the scheduler at {self._scheduler} ({error}), expected a "
                "running one; try `dask scheduler`, and the address that it prints"
            ) from None
        self._client.run(_one_thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The client first: one that outlives its cluster waits for it in vain.
        self._client.close()
        if self._local is not None:
            self._local.close()

    def prepare(self, specimens: Sequence[Specimen]) -> Iterator[int]:
        """Prepare shapes; yield how many each time some are ready."""
        yield from self._run(prepare_shapes, [[self._sent(one)] for one in specimens])

    def match(self, pairs: Sequence[tuple[Specimen, Specimen]]) -> Iterator[Timed]:
        """Match pairs; yield each record as soon as it is there."""
        count = len(self._client.scheduler_info()["workers"]) or 1
        size = max(1, min(_LARGEST, len(pairs) // (_TASKS * count)))
        sent = [(self._sent(source), self._sent(target)) for source, target in pairs]
        blocks = [sent[start : start + size] for start in range(0, len(sent), size)]
        for records in self._run(match_pairs, blocks):
            yield from records

    def _run(self, work: Any, blocks: list[Any]) -> Iterator[Any]:
        from distributed import as_completed

        futures = [
            self._client.submit(
                work, self._folder, self._config, block, pure=False, retries=_RETRIES
            )
            for block in blocks
        ]
        for future in as_completed(futures):
            try:
                yield future.result()
            except LTENetError:
                raise
            except Exception as error:
                raise MissingError(
                    f"got '{type(error).__name__}: {error}' from a worker, expected its results; "
                    "try again with --resume, or fewer workers if memory is short"
                ) from error

    def _sent(self, specimen: Specimen) -> Specimen:
        """Return a specimen with a path that every worker understands."""
        if self._scheduler is None:
            return specimen
        return specimen._replace(path=specimen.path.absolute())


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
