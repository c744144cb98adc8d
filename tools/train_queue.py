"""Train the weights behind the package and its tables, one run after another.

    python -m tools.train_queue              # go on where the queue stopped
    python -m tools.train_queue --list       # what is done, and how far the rest is
    python -m tools.train_queue --only 'paper-*' --threads 2

`QUEUE` below is the list. Runs live in `runs/NAME`. A finished run is skipped, and so is one whose
weights ship with the record of its training, or whose rows in `results/paper` are all measured;
`ltenet train` still trains it. One that was
interrupted, killed or cut off by a reboot goes on from its last checkpoint and, where its schedule
counts steps, ends with the very bytes it would have had anyway. Ctrl-C and SIGTERM let the current
step finish and save it. A run that fails is reported at the end, and the others still train.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple

from ltenet.evaluation.paper.measured import measured_runs
from ltenet.evaluation.paper.peer_plans import planned_peers
from ltenet.evaluation.paper.plans import PlannedRun, planned_runs
from ltenet.evaluation.paper.recipes import OUTLOOK as LATER
from ltenet.evaluation.paper.shipped import ShippedTraining, find_shipped
from ltenet.files import atomic_path
from ltenet.training.settings import load_config

ROOT = Path(__file__).parents[1]
#: Where the tables of the paper's experiments are kept.
TABLES = ROOT / "results" / "paper"
#: Written into the folder of a run once its command has succeeded.
FINISHED = "finished.json"
#: Seconds that a run whose queue was killed may take to finish its step.
PATIENCE = 180.0


@dataclass(frozen=True)
class Run:
    """One entry of the queue.

    Attributes
    ----------
    name
        Of the run and of its folder.
    preset
        Settings of `ltenet train` to begin with; None if `command` makes the run.
    settings
        Changes to them, as ``key=value``.
    start
        Weights to begin with; random ones if None. Those that ship carry the learning of runs whose
        machine was lost.
    command
        Words after `python -m` of a command that resumes by itself; "{folder}" is the run's.
    weights
        Where the finished weights are, inside the folder.
    """

    name: str
    preset: str | None = None
    settings: tuple[str, ...] = ()
    start: str | None = None
    command: tuple[str, ...] = ()
    weights: str = "best"

    def recipe(self) -> dict[str, object]:
        """Return what the run depends on; with another recipe a finished run goes on."""
        if self.preset is None:
            return {"command": list(self.command)}
        recipe: dict[str, object] = {"preset": self.preset, "settings": list(self.settings)}
        return recipe if self.start is None else {**recipe, "start": self.start}


def _steps(steps: int, *, warmup: int) -> tuple[str, ...]:
    """Return the settings of a schedule in steps."""
    return ("schedule.unit=steps", f"schedule.length={steps}", f"schedule.warmup={warmup}")


def paper_run(planned: PlannedRun) -> Run:
    """Return the run behind a row of the paper's tables."""
    recipe = planned.recipe
    return Run(planned.name, recipe.preset, recipe.settings(planned.seed))


#: Behind the paper's tables, in order of need; `ltenet paper NAME --continue` tests them.
PAPER = tuple(paper_run(planned) for planned in planned_runs())
#: What the paper leaves for later comes after everything else.
OUTLOOK = tuple(
    run for run in PAPER if run.name in {f"ablation-{name}" for name, _ in LATER.values()}
)
#: Its main comparison: equal steps, equal pairs, equal first weights.
MAIN, ABLATIONS = PAPER[:4], tuple(run for run in PAPER[4:] if run not in OUTLOOK)

#: Weights that are good already take smaller steps, and pairs that they have not seen: these are
#: found by the seed of a run and their number in it. Few held-back pairs do not tell which of them
#: are the best, so the last ones are kept, and compared on many pairs before they ship.
_ONWARD = ("optim.lr=5e-4", "precision=bf16", "seed=106", "validation.select=last")

#: Weights for shapes of any class.
ANY = Run("any", "any", (*_steps(3000, warmup=100), *_ONWARD), start="any")
#: Other learned systems, equal minutes each: their steps differ too much in cost to be counted.
OTHERS: tuple[Run, ...] = tuple(
    Run(recipe.run_name(seed), recipe.preset, recipe.settings(seed))
    for recipe in planned_peers()
    for seed in recipe.seeds
)

QUEUE: tuple[Run, ...] = (
    Run(
        "orientation",
        command=(
            *("tools.train_orientation", "{folder}", "--steps", "3000"),
            *("--start", str(ROOT / "src" / "ltenet" / "weights" / "human")),
        ),
        weights="orientation.safetensors",
    ),
    Run(
        "pieces",
        command=(
            *("tools.train_orientation", "{folder}", "--of", "pieces", "--steps", "1200"),
            *("--start", str(ROOT / "src" / "ltenet" / "weights" / "human")),
        ),
        weights="orientation.safetensors",
    ),
    # Short enough to end within hours: a rate that has not fallen yet leaves poorer weights.
    Run("human", "human", (*_steps(2000, warmup=60), *_ONWARD), start="human"),
    Run("animal", "animal", (*_steps(2000, warmup=60), *_ONWARD), start="animal"),
    *MAIN,
    *ABLATIONS,
    Run(
        "reconstruction",
        command=(
            *("ltenet", "paper", "reconstruction", "--force"),
            *("-o", "{folder}", "--runs", "{folder}/.."),
        ),
        weights="reconstruction.json",
    ),
    ANY,
    *OTHERS,
    *OUTLOOK,
)


class State(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    done
        Whether nothing is left to train.
    step, minutes
        Those of its last checkpoint, or of the training behind weights that ship.
    ships
        Folder of the weights that ship, for a run that is done because of them.
    measured
        Whether it is done because no table waits for it any more.
    """

    done: bool
    step: int
    minutes: float | None
    ships: Path | None = None
    measured: bool = False


def state_of(run: Run, runs: Path, tables: Path = TABLES) -> State:
    """Read how far a run is."""
    folder = runs / run.name
    finished = folder / FINISHED
    done = finished.is_file() and json.loads(finished.read_text("utf-8")) == run.recipe()
    found = None if done else shipped(run)
    if found is not None:
        return State(True, found.record.steps, found.record.minutes, found.weights)
    if not done and run.name in measured_runs(tables):
        return State(True, 0, None, measured=True)
    checkpoint = folder / "last.ckpt"
    if not checkpoint.is_file():
        return State(done, 0, None)
    import torch

    content = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
    seconds = content.get("seconds")
    return State(done, int(content["step"]), None if seconds is None else seconds / 60)


def shipped(run: Run) -> ShippedTraining | None:
    """Return the weights that ship of this very run; None if there are none."""
    if run.preset is None or run.start is not None:  # settings alone do not tell what it learned
        return None
    return find_shipped(load_config(run.preset, [*run.settings, f'name="{run.name}"']))


def command_of(run: Run, runs: Path, *, threads: int, checkpoint_minutes: float) -> list[str]:
    """Return the command that starts a run, or goes on with it."""
    folder = runs / run.name
    python = [sys.executable, "-m"]
    if run.preset is None:
        return python + [word.format(folder=folder) for word in run.command]
    settings = (
        *run.settings,
        f"threads={threads}",
        f"checkpoint_minutes={checkpoint_minutes:g}",
    )
    changes = [word for setting in settings for word in ("--set", setting)]
    if (folder / "last.ckpt").is_file():
        return [*python, "ltenet", "train", "--resume", str(folder), *changes]
    # Whatever was begun without a first checkpoint begins again.
    force = ["--force"] if (folder / "config.toml").is_file() else []
    start = [] if run.start is None else ["--start", run.start]
    words = [run.preset, "--name", run.name, "--runs", str(runs), *start, *force, *changes]
    return [*python, "ltenet", "train", *words]


def train(
    queue: Sequence[Run], runs: Path, *, threads: int = 1, checkpoint_minutes: float = 2.0
) -> list[str]:
    """Train what is not done, in order; return the names of the runs that failed."""
    failed = []
    runs.mkdir(parents=True, exist_ok=True)
    with _alone(runs) as lock, _stop_signals() as stop:
        for run in queue:
            if stop.asked:
                raise KeyboardInterrupt
            if state_of(run, runs).done:
                continue
            command = command_of(run, runs, threads=threads, checkpoint_minutes=checkpoint_minutes)
            _tell(f"{run.name}: {' '.join(command[1:])}")
            stop.child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(threads),
                preexec_fn=_end_with_parent,
                pass_fds=(lock.fileno(),),  # as long as the run lives, no other queue starts
                start_new_session=True,  # Ctrl-C comes through this process, once
            )
            code = stop.child.wait()
            stop.child = None
            if stop.asked:
                raise KeyboardInterrupt
            if code != 0:
                failed.append(run.name)
                continue
            (runs / run.name).mkdir(exist_ok=True)
            with atomic_path(runs / run.name / FINISHED, force=True) as path:
                path.write_text(json.dumps(run.recipe(), indent=2) + "\n", encoding="utf-8")
            _tell(f"{run.name}: done, weights in {runs / run.name / run.weights}")
    return failed


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, **dict.fromkeys(names, str(threads)), "PYTHONPATH": path}


def _end_with_parent() -> None:
    """Ask Linux for SIGTERM should the queue be killed: the run saves its step and ends."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


class _Stop:
    """The run at work, and whether it was asked to stop."""

    child: subprocess.Popen[bytes] | None = None
    asked = False


@contextmanager
def _stop_signals() -> Iterator[_Stop]:
    """Pass the first SIGINT or SIGTERM on to the run, which saves its step; the second kills it."""
    stop = _Stop()

    def forward(number: int, frame: FrameType | None) -> None:
        if stop.child is not None:
            stop.child.send_signal(signal.SIGKILL if stop.asked else signal.SIGTERM)
        stop.asked = True

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _alone(runs: Path) -> Iterator[IO[str]]:
    """Hold the folder's lock; wait for a run whose queue was killed to save its last step."""
    with (runs / ".queue.lock").open("w", encoding="utf-8") as lock:
        patient_until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > patient_until:
                    raise SystemExit(
                        f"{runs}: got a folder that another queue trains in, expected a free one; "
                        "try again when it has ended, or choose another with --runs"
                    ) from None
                time.sleep(0.5)
        yield lock


def table(queue: Sequence[Run], runs: Path) -> str:
    """One line for each run: whether it is done, its step, its minutes, its weights."""
    lines = [f"{'run':24} {'state':8} {'step':>6} {'minutes':>8}  weights"]
    for run in queue:
        state = state_of(run, runs)
        done = "measured" if state.measured else "done" if state.ships is None else "ships"
        word = done if state.done else "started" if state.step else "to do"
        minutes = "" if state.minutes is None else f"{state.minutes:.1f}"
        weights = state.ships or runs / run.name / run.weights
        lines.append(f"{run.name:24} {word:8} {state.step:6} {minutes:>8}  {weights}")
    return "\n".join(lines)


def main() -> None:
    """Train the queue, or list it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="show the state of every run")
    parser.add_argument("--only", default="*", help="pattern of names")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="folder of the runs")
    parser.add_argument(
        "--checkpoint-minutes", type=float, default=2.0, help="time between checkpoints"
    )
    options = parser.parse_args()
    queue = [run for run in QUEUE if fnmatch(run.name, options.only)]
    if not queue:
        names = ", ".join(run.name for run in QUEUE)
        parser.error(
            f"--only: got {options.only!r}, expected a pattern of names; try one of {names}"
        )
    runs = options.runs.resolve()
    if options.list:
        print(table(queue, runs))
        return
    try:
        failed = train(
            queue, runs, threads=options.threads, checkpoint_minutes=options.checkpoint_minutes
        )
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
