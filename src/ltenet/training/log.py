"""The log of a run: `log.jsonl` always, TensorBoard events if TensorBoard is installed."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ltenet.files import atomic_path
from ltenet.training.runs import RunFolder

_logger = logging.getLogger(__name__)


class RunLog:
    """Appends records to the log of a run; use it as a context.

    Parameters
    ----------
    run
        Whose log.
    step
        Steps already done. Later records belong to steps that were lost when the run was killed
        and will be repeated; they are removed.
    """

    def __init__(self, run: RunFolder, *, step: int = 0) -> None:
        kept = [record for record in run.read_log() if record["step"] <= step]
        with atomic_path(run.log, force=True) as path:
            path.write_text("".join(map(_line, kept)), encoding="utf-8")
        self._file = run.log.open("a", encoding="utf-8")
        self._events = _event_writer(run, step)

    def write(self, kind: str, step: int, values: Mapping[str, float | str]) -> None:
        """Append one record: its kind, its step and its values."""
        self._file.write(_line({"kind": kind, "step": step, **values}))
        self._file.flush()
        for name, value in values.items():
            if self._events is not None and not isinstance(value, str):
                self._events.add_scalar(f"{kind}/{name}", value, step)

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if self._events is not None:
            self._events.close()


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _event_writer(run: RunFolder, step: int) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages that tensorboard imports
            from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        _logger.warning(
            "TensorBoard is not installed, so no events are written; log.jsonl has the same "
            "figures; install it with `pip install 'ltenet[train]'`"
        )
        return None
    return SummaryWriter(str(run.path), purge_step=step + 1 if step else None)
