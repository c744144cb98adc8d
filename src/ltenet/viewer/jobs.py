"""The app's queue: one pair at a time, in a process that can be stopped at any time."""

from __future__ import annotations

import json
import queue
import secrets
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ltenet.errors import UsageError
from ltenet.viewer.helpers import Helper
from ltenet.viewer.limits import memory_limit
from ltenet.viewer.work import DOWNLOADS, Order, serve_orders

#: Most waiting jobs, most bytes of their files, and most finished jobs that are kept.
WAITING_LIMIT = 50
WAITING_BYTES = 4 * 2**30
KEPT_LIMIT = 12

State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass
class Job:
    """One pair in the queue.

    Attributes
    ----------
    id
        Random name, also of its folder.
    order
        What to do.
    state
        Where it is.
    stages
        Progress of each stage, from 0 to 1, in the order in which they started.
    message
        Why it failed.
    bytes
        Size of both files.
    """

    id: str
    order: Order
    state: State = "queued"
    stages: dict[str, float] = field(default_factory=dict)
    message: str = ""
    bytes: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def described(self) -> dict[str, Any]:
        """Return what the page shows."""
        offered = self.order.output / "offered.json"
        names = json.loads(offered.read_text(encoding="utf-8")) if self.state == "done" else []
        stages = list(self.stages.items())  # a copy: the job thread may add one meanwhile
        return {
            "id": self.id,
            "state": self.state,
            "source": self.order.source_name,
            "target": self.order.target_name,
            "pairs": self.order.pairs,
            "stages": [{"name": name, "share": share} for name, share in stages],
            "message": self.message,
            "downloads": [{"name": name, "title": DOWNLOADS[name]} for name in names],
        }


class Jobs:
    """All jobs, and the thread that runs them.

    Parameters
    ----------
    folder
        Parent of the folders of all jobs.
    memory
        Memory limit of a pair in bytes; None for a share of the machine's.
    """

    def __init__(self, folder: Path, *, memory: int | None = None) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._worker = _Worker(serve_orders, memory_limit() if memory is None else memory)
        self._thread = threading.Thread(target=self._work_off, name="ltenet-jobs", daemon=True)
        self._thread.start()

    def add(
        self,
        source: Path,
        target: Path,
        *,
        source_name: str,
        target_name: str,
        model: str,
        effort: str,
        pairs: tuple[tuple[int, int], ...] = (),
    ) -> Job:
        """Queue a pair."""
        with self._lock:
            queued = [job for job in self._jobs.values() if job.state == "queued"]
            waiting = len(queued)
            held = sum(path.stat().st_size for path in (source, target))
            held += sum(job.bytes for job in queued)
            if waiting >= WAITING_LIMIT or (queued and held > WAITING_BYTES):
                raise UsageError(
                    f"got another pair while {waiting} are waiting, expected fewer; try again when "
                    "one is done, or cancel one"
                )
            self._forget_old_ones()
            name = secrets.token_hex(8)
            output = self._folder / name
            output.mkdir()
            order = Order(source, target, source_name, target_name, model, effort, output, pairs)
            job = Job(name, order, bytes=sum(path.stat().st_size for path in (source, target)))
            self._jobs[name] = job
        self._queue.put(job)
        return job

    def get(self, name: str) -> Job | None:
        """Return the job with this name, or None."""
        return self._jobs.get(name)

    def all(self) -> list[Job]:
        """Return all jobs, oldest first."""
        return list(self._jobs.values())

    def cancel(self, job: Job) -> None:
        """Cancel a job, waiting or running."""
        job.stopped.set()
        with self._lock:
            if job.state == "queued":
                self._finish(job, "cancelled")

    def close(self) -> None:
        """Cancel all jobs and end the thread."""
        for job in self.all():
            job.stopped.set()
        self._queue.put(None)
        self._thread.join(timeout=10)
        self._worker.stop()

    def _work_off(self) -> None:
        self._worker.start()  # so that the first user does not wait for torch
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.stopped.is_set():
                    if job.state == "queued":
                        self._finish(job, "cancelled")
                    continue
                job.state = "running"
            state, message = self._worker.work(job)
            with self._lock:
                job.message = message
                self._finish(job, state)

    def _finish(self, job: Job, state: State) -> None:
        job.order.source.unlink(missing_ok=True)
        job.order.target.unlink(missing_ok=True)
        if state != "done":
            shutil.rmtree(job.order.output, ignore_errors=True)
        job.state = state

    def _forget_old_ones(self) -> None:
        finished = [job for job in self._jobs.values() if job.state not in ("queued", "running")]
        for job in finished[: max(0, len(finished) - KEPT_LIMIT + 1)]:
            shutil.rmtree(job.order.output, ignore_errors=True)
            del self._jobs[job.id]


class _Worker(Helper):
    """The worker process; it is reused for the next job, and replaced after a cancelled one."""

    def work(self, job: Job) -> tuple[State, str]:
        """Run a job in the process and record its stages."""
        try:
            connection = self.start()
            connection.send(job.order)
            while True:
                if job.stopped.is_set():
                    self.stop()
                    return "cancelled", ""
                if not connection.poll(0.1):
                    continue
                match connection.recv():
                    case ("stage", name, share):
                        # Some stages run once for each shape and start again.
                        job.stages[name] = float(share)
                    case ("done",):
                        return "done", ""
                    case ("failed", message):
                        return "failed", str(message)
                    case ("exhausted", message):
                        self.stop()
                        return "failed", str(message)
        except (EOFError, OSError):
            self.stop()
            if job.stopped.is_set():
                return "cancelled", ""
            return "failed", "the worker has ended, perhaps for lack of memory; try smaller shapes"
