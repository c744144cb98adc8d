"""`ltenet batch`: match a whole collection. Guide: docs/collections.md."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import say, table
from ltenet.errors import PartialFailure, UsageError
from ltenet.matching.config import MatchConfig

if TYPE_CHECKING:
    from ltenet.collections.batch import Outcome
    from ltenet.collections.plan import Plan, Shard

#: Seconds between two lines of progress where stderr is a file.
_PAUSE = 30.0


@dataclass(frozen=True, kw_only=True)
class Batch(Command):
    """Match many pairs of shapes: every shape is read, oriented and embedded once.

    The folder OUT holds maps/SOURCE__TARGET.npz, manifest.csv with a row for each pair, shapes.csv
    with a row for each file, times.csv, and the prepared shapes. A pair that fails does not stop
    the others; the exit code is then 5. What was stopped goes on with --resume.

    Examples
    --------
      ltenet batch scans/ -o out --all-pairs
      ltenet batch scans/ -o out --all-pairs --hubs 3
      ltenet batch scans/ -o out --to a.ply b.ply --landmarks a.csv b.csv
      ltenet batch pairs.csv -o out --workers 2
      ltenet batch scans/ -o out --all-pairs --shard 3/8
      ltenet batch scans/ -o out --all-pairs --merge
    """

    shapes: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR|PAIRS.csv")]]
    """Folder of shapes, or a table with the columns source and target."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="OUT")]
    """Folder for maps and tables."""
    all_pairs: bool = False
    """Match each unordered pair once, from the earlier name to the later."""
    hubs: int = 0
    """With --all-pairs: match this many shapes to all others, and lead every pair through them.
    Its map goes to OUT/consistent."""
    to: Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="TEMPLATE...", help_behavior_hint="")
    ] = ()
    """Match each shape to each of these."""
    sequence: bool = False
    """Match each shape to the next in natural order."""
    landmarks: Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="FILE...", help_behavior_hint="")
    ] = ()
    """Landmarks of the templates, one file each: they are carried to every shape and joined."""
    landmark_format: Literal["csv", "tps", "mrk.json", "fcsv"] = "csv"
    """Format of the landmarks that are written."""
    consistent: bool = False
    """Also write maps that agree round every cycle, to OUT/consistent."""
    shard: Annotated[str | None, tyro.conf.arg(metavar="I/N", help_behavior_hint="")] = None
    """Do part I of N only; the parts share nothing but the folder."""
    merge: bool = False
    """Join the records of all shards into one manifest."""
    workers: int = 0
    """Dask workers to start on this machine, with one thread each; 0 works without Dask."""
    scheduler: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Running Dask scheduler to use instead."""
    prepare_only: bool = False
    """Prepare the shapes and stop, so that later shards find them."""
    resume: bool = False
    """Go on with a batch that is in OUT already."""
    threads: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Threads of this process; all cores by default. Workers have one each."""
    force: bool = False
    """Match every pair again."""
    matching: MatchConfig = field(default_factory=MatchConfig)

    def run(self) -> Result:
        """Plan, match, record."""
        self._check()
        from ltenet.collections.batch import Engine, merge, run_batch

        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
        plan, shard = self._plan(), self._shard()
        start = time.perf_counter()
        if self.merge:
            outcome = merge(plan, self.output, self.matching)
        else:
            outcome = run_batch(
                plan,
                self.output,
                self.matching,
                shard=shard,
                engine=Engine(self.workers, self.scheduler),
                resume=self.resume,
                force=self.force,
                prepare_only=self.prepare_only,
                tell=Pace(),
            )
        written = {"manifest": str(outcome.manifest)}
        if self.landmarks and shard is None and not self.prepare_only:
            from ltenet.collections.joining import spread_landmarks

            suffix = f".{self.landmark_format}"
            joined = spread_landmarks(
                plan, self.output, outcome.pairs, self.landmarks, suffix=suffix
            )
            written["landmarks"] = str(joined)
        cycles: dict[str, Any] = {}
        if self.consistent or (self.hubs and shard is None and not self.prepare_only):
            cycles = self._consistent(plan, outcome)
            written["consistent"] = str(self.output / "consistent")
        return self._result(outcome, written, cycles, time.perf_counter() - start)

    def _consistent(self, plan: Plan, outcome: Outcome) -> dict[str, Any]:
        """Write the maps that agree round every cycle; return what to tell about them."""
        from ltenet.collections.consistency import make_consistent

        every = bool(self.hubs)
        found = make_consistent(plan, self.output, outcome.pairs, every=every, tell=Pace())
        known = {"cycle_error_before": found.before, "cycle_error_after": found.after}
        return {
            **{name: None if one is None else round(one.mean, 6) for name, one in known.items()},
            "consistent_pairs": found.pairs,
            "unreached": list(found.unreached),
        }

    def _check(self) -> None:
        """Refuse options that contradict each other, before any work."""
        chosen = sum((self.all_pairs, bool(self.to), self.sequence))
        listed = self.shapes.suffix.lower() == ".csv" and not self.shapes.is_dir()
        if chosen > 1 or (listed and chosen):
            raise UsageError(
                "got more than one choice of pairs, expected one of --all-pairs, --to, --sequence "
                "or a table of pairs; try one of them"
            )
        if not listed and chosen == 0:
            raise UsageError(
                f"{self.shapes}: got a folder without a choice of pairs, expected --all-pairs, "
                "--to TEMPLATE... or --sequence; try --all-pairs"
            )
        if sum((self.shard is not None, self.workers > 0, self.scheduler is not None)) > 1:
            raise UsageError(
                "got more than one way to share the work, expected one of --shard, --workers and "
                "--scheduler; try --workers 2"
            )
        if self.merge and (self.shard or self.workers or self.scheduler or self.prepare_only):
            raise UsageError(
                "got --merge with options of work, expected it alone: it joins what is done; "
                "try it without them"
            )
        if self.workers < 0 or (self.threads is not None and self.threads < 1):
            raise UsageError(
                f"got --workers {self.workers} and --threads {self.threads}, expected at least 0 "
                "and 1; try --workers 2"
            )
        if self.consistent and (self.shard is not None or self.prepare_only or self.to):
            raise UsageError(
                "got --consistent with --shard, --prepare-only or --to, expected all pairs in one "
                "place; try it with --all-pairs, or with --merge after the shards"
            )
        if self.hubs < 0 or (self.hubs and not self.all_pairs):
            raise UsageError(
                f"got --hubs {self.hubs}, expected at least 1, with --all-pairs; try --hubs 3"
            )
        if self.landmarks and len(self.landmarks) != len(self.to):
            raise UsageError(
                f"got {len(self.landmarks)} files of landmarks for {len(self.to)} templates, "
                "expected one for each; try --to A B --landmarks A.csv B.csv"
            )

    def _plan(self) -> Plan:
        from ltenet.collections.plan import plan_folder, plan_table

        if not (self.all_pairs or self.to or self.sequence):
            return plan_table(self.shapes)
        mode: Any = "all-pairs" if self.all_pairs else "to" if self.to else "sequence"
        if self.hubs:
            mode = "hubs"
        return plan_folder(self.shapes, mode, templates=self.to, skip=self.output, hubs=self.hubs)

    def _shard(self) -> Shard | None:
        from ltenet.collections.plan import parse_shard

        return None if self.shard is None else parse_shard(self.shard)

    def _result(
        self,
        outcome: Outcome,
        written: dict[str, str],
        cycles: dict[str, Any],
        seconds: float,
    ) -> Result:
        states: Counter[str] = Counter(record.state for record in outcome.pairs)
        verdicts = Counter(record.verdict for record in outcome.pairs if record.verdict)
        bad = [record for record in outcome.pairs if record.state != "done"]
        notes = {
            record.name: record.note or record.error
            for record in outcome.shapes
            if record.note or record.error
        }
        figures = {
            "pairs": len(outcome.pairs),
            "states": dict(states),
            "verdicts": dict(verdicts),
            "computed": outcome.computed,
            **cycles,
            "seconds": round(seconds, 3),
            "failures": [
                {"source": one.source, "target": one.target, "error": one.error} for one in bad
            ],
            "shapes": notes,
            "written": written,
        }
        rows: list[tuple[object, ...]] = [
            ("pairs", f"{len(outcome.pairs):,}, {outcome.computed:,} of them matched now"),
            ("states", _counted(states)),
            ("verdicts", _counted(verdicts)),
            ("seconds", f"{seconds:.1f}"),
            *((name.replace("_", " "), _told(name, value)) for name, value in cycles.items()),
            *written.items(),
            *notes.items(),
        ]
        failure = None
        if bad:
            first = bad[0]
            failure = PartialFailure(
                f"got {len(bad)} of {len(outcome.pairs)} pairs without a map, expected one for "
                f"each; first {first.source} to {first.target}: {first.error}; try the column "
                f"error of {outcome.manifest}"
            )
        return Result(figures, table(rows), failure)


def _told(name: str, value: Any) -> str:
    if value is None:
        return "unknown: no cycle of three shapes"
    if name.startswith("cycle_error"):
        return f"{100 * value:.3g} % of the diameter"
    return ", ".join(value) or "none" if isinstance(value, list) else f"{value:,}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())) or "none"


class Pace:
    """Says how far a batch is, at what rate, and how long the rest takes."""

    def __init__(self) -> None:
        self._what, self._start, self._said = "", 0.0, 0.0

    def __call__(self, what: str, done: int, before: int, total: int) -> None:
        """Tell that `done` of `total` are done, `before` of them by an earlier run."""
        now = time.monotonic()
        if what != self._what:
            # The first one ends with this call, so it does not count.
            self._what, self._start, self._said = what, now, 0.0
            before = done
        terminal = sys.stderr.isatty()
        if now - self._said < (0.2 if terminal else _PAUSE) and done < total:
            return
        self._said = now
        line = pace_line(what, done, total, done - before - 1, now - self._start)
        if terminal:
            sys.stderr.write(f"\r\x1b[K{line}" + ("\n" if done == total else ""))
            sys.stderr.flush()
        else:
            say(line)


def pace_line(what: str, done: int, total: int, counted: int, seconds: float) -> str:
    """Word the progress: `counted` took `seconds`; the rate is left out until it is known."""
    line = f"{done:,} of {total:,} {what}"
    if counted <= 0 or seconds <= 0:
        return line
    rate = counted / seconds
    left = (total - done) / rate
    return f"{line}, {rate:.3g} a second, {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


COMMAND = Batch
