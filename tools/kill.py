"""Kill verbs with SIGKILL: outputs are whole, old or new, and the next run ends as if undisturbed.

    python -m tools.kill [--rounds N] [--verb NAME] [--seed S] [--json]

Every second round aims at a rename: the process ends itself just before or just after the n-th one,
and the rounds are spread over all of them. The others end it at a random moment. Then each output
must be what it was before or what it is after an undisturbed run, byte for byte; those of verbs
that write as they go (train, batch, atlas) must be whole files. The same command, or `--resume`,
must lead to the undisturbed outputs and sweep up what was left. Exits 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

#: Settings of a training that takes seconds.
_SHORT = (
    "workers=0",
    "threads=1",
    "model.encoder.widths=[8, 12]",
    "model.encoder.dimension=16",
    "model.encoder.neighbors=6",
    "pairs.points=[64, 64]",
    "schedule.length=6",
    "schedule.warmup=2",
    "validation.pairs=2",
    "validation.every=2",
)
_ADAPT = (
    *_SHORT[:2],
    *_SHORT[5:],
    "schedule.unit=steps",
    "schedule.length=3",
    "schedule.warmup=1",
    "optim.batch_size=2",
)


class Verb(NamedTuple):
    """A verb to be killed.

    Attributes
    ----------
    name
        Of the verb.
    command, again
        Its arguments, and those that go on after a kill; in the folder that it works in.
    outputs
        Patterns of files that must be whole, old or new, all of the same generation.
    first
        Arguments of a run that makes the old outputs; None if there are none.
    steps
        Whether outputs appear one by one, as the work goes on.
    """

    name: str
    command: tuple[str, ...]
    again: Callable[[Path], tuple[str, ...]]
    outputs: tuple[str, ...]
    first: tuple[str, ...] | None
    steps: bool = False


class Aim(NamedTuple):
    """When to kill: at a rename, counted from 0, before or after it; or after some seconds."""

    rename: int | None = None
    after: bool = False
    seconds: float | None = None


def verbs() -> dict[str, Verb]:
    """Return the verbs and how they are called."""
    match = ("match", "a.ply", "b.ply", "-o", "map.npz", "--force", "--model", "human")
    match += ("--points", "60", "--refine", "none", "--orient", "none", "--threads", "1")
    match += ("--threshold", "0")  # what so few points say of themselves is no matter here
    transfer = ("transfer", "a.ply", "b.ply", "old.npz", "--what", "scalars")
    transfer += ("--values", "values.txt", "-o", "moved.txt", "--force")
    train = ("train", "tiny", "--name", "run", "--runs", ".", "--accelerator", "cpu")
    train += tuple(f"--set={change}" for change in _SHORT)
    adapt = ("adapt", "human", "a.ply", "b.ply", "-o", "mine", "--force")
    adapt += tuple(f"--set={change}" for change in _ADAPT)

    def resumed(folder: Path) -> tuple[str, ...]:
        if (folder / "run" / "last.ckpt").is_file():
            return ("train", "--resume", "run", "--accelerator", "cpu")
        return (*train, "--force")

    quick = match[6:]
    batch = ("batch", "shapes", "-o", "out", "--all-pairs", *quick)
    atlas = ("atlas", "shapes", "-o", "out", "--rounds", "1", *quick)

    def gone_on(folder: Path) -> tuple[str, ...]:
        return (*batch, "--resume") if (folder / "out" / "batch.json").is_file() else batch

    # Times differ, and logs and journals hold them.
    learned = ("mine/*.json", "mine/*.safetensors")
    tables = tuple(f"out/{name}" for name in ("manifest.csv", "shapes.csv", "batch.json"))
    listed = [
        Verb("match", match, lambda _: match, ("map.npz",), (*match, "--seed", "1")),
        Verb("transfer", transfer, lambda _: transfer, ("moved.txt",), None),
        Verb("train", train, resumed, ("run/best/*",), None, steps=True),
        Verb("adapt", adapt, lambda _: adapt, learned, (*adapt[:1], "animal", *adapt[2:])),
        Verb("batch", batch, gone_on, (*tables, "out/maps/*", "out/prepared/*"), None, steps=True),
        Verb("atlas", atlas, lambda _: atlas, ("out/*.*", "out/registered/*"), None, steps=True),
    ]
    return {verb.name: verb for verb in listed}


def inputs(folder: Path) -> None:
    """Write shapes, a map between two of them, values, and a folder of three."""
    from ltenet.bodies.body_pairs import own_generator
    from ltenet.correspondence import Correspondence
    from ltenet.io import save
    from ltenet.shape import Shape

    generator = own_generator("human")
    for number, name in enumerate("ab"):
        points = generator.draw(5, number).vertices[::50].astype(np.float64)
        save(Shape(points, name=name), folder / f"{name}.ply")
    (folder / "shapes").mkdir()
    for number in range(3):
        points = generator.draw(6, number).vertices[::50].astype(np.float64)
        save(Shape(points), folder / "shapes" / f"{number}.ply")
    Correspondence(np.arange(len(points)), len(points)).save(folder / "old.npz")
    np.savetxt(folder / "values.txt", np.arange(len(points), dtype=np.float64))


def run(arguments: tuple[str, ...], folder: Path, aim: Aim | None = None) -> tuple[int, int]:
    """Run the command line in a forked process; return its exit code and how often it renamed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        code = 1
        try:
            code = _child(arguments, folder, aim or Aim(), writing)
        finally:
            os._exit(code)
    os.close(writing)
    timer = None
    if aim is not None and aim.seconds is not None:
        timer = threading.Timer(aim.seconds, os.kill, (process, signal.SIGKILL))
        timer.start()
    with os.fdopen(reading, "rb") as stream:
        renames = len(stream.read())
    # Not reaped before the timer is off: the number cannot belong to another process.
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    if timer is not None:
        timer.cancel()
        timer.join()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), renames


def _child(arguments: tuple[str, ...], folder: Path, aim: Aim, told: int) -> int:
    from ltenet import cli, files

    os.chdir(folder)
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    tempfile.tempdir = str(temporary)  # what is left there is looked for, too
    quiet = os.open(folder.parent / f"{folder.name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    count = 0

    def aimed(function: Callable[..., object]) -> Callable[..., object]:
        def renaming(*arguments: object, **options: object) -> object:
            nonlocal count
            here, count = count == aim.rename, count + 1
            os.write(told, b".")
            if here and not aim.after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments, **options)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return renaming

    os.replace = aimed(os.replace)  # type: ignore[assignment]
    os.rename = aimed(os.rename)  # type: ignore[assignment]
    files._exchanged = aimed(files._exchanged)  # type: ignore[assignment]
    return cli.main(list(arguments))


def contents(folder: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    """Bytes of the files that match; those of unfinished outputs are hidden, and do not."""
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if path.is_file() and not path.name.startswith(".")
    }


def damage(folder: Path, names: Iterable[str]) -> str | None:
    """Find the first file that is not whole."""
    from safetensors import safe_open

    from ltenet.io import load

    for path in (folder / name for name in names):
        try:
            if path.suffix == ".npz":
                with zipfile.ZipFile(path) as archive:
                    assert archive.testzip() is None
            elif path.suffix == ".ply":
                load(path)
            elif path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                with safe_open(path, "np") as tensors:
                    assert list(tensors.keys())
            elif path.suffix in (".csv", ".md", ".html"):
                assert path.read_text(encoding="utf-8").endswith("\n")
        except Exception as error:  # whatever the half of a file leads to
            return f"{path.name} is not whole ({type(error).__name__}: {error})"
    return None


def aims(rounds: int, renames: int, seconds: float, random: Random) -> list[Aim]:
    """Choose when to kill: around renames, spread over all of them, and at random, in turn."""
    moments = [
        Aim(rename=number, after=after) for number in range(renames) for after in (False, True)
    ]
    aimed = (rounds + 1) // 2
    found = []
    for number in range(aimed):
        chosen = number if aimed >= len(moments) else number * len(moments) // aimed
        found += [moments[chosen % len(moments)], Aim(seconds=random.uniform(0, seconds))]
    return found[:rounds]


def kill(verb: Verb, rounds: int, base: Path, random: Random) -> dict[str, object]:
    """Kill a verb in many ways; return how often, and what went wrong."""
    before, undisturbed = base / "before", base / "undisturbed"
    before.mkdir(parents=True)
    inputs(before)
    if verb.first is not None:
        assert run(verb.first, before)[0] == 0
    shutil.copytree(before, undisturbed)
    start = time.perf_counter()
    code, renames = run(verb.command, undisturbed)
    seconds = time.perf_counter() - start
    if code != 0:
        told = (base / "undisturbed.log").read_text(errors="replace")[-300:]
        return {"rounds": 0, "killed": 0, "faults": [f"undisturbed: exit code {code}: {told}"]}
    old, new = contents(before, verb.outputs), contents(undisturbed, verb.outputs)
    faults, killed = [], 0
    for number, aim in enumerate(aims(rounds, renames, seconds, random)):
        folder = base / f"round{number}"
        shutil.copytree(before, folder)
        code = run(verb.command, folder, aim)[0]
        killed += code == -signal.SIGKILL
        found = contents(folder, verb.outputs)
        if not verb.steps and found not in (old, new):
            faults.append(f"{aim}: outputs are neither old nor new")
        broken = damage(folder, found)
        if broken is not None:
            faults.append(f"{aim}: {broken}")
        code = run(verb.again(folder), folder)[0]
        if code != 0:
            told = (base / f"{folder.name}.log").read_text(errors="replace")[-300:]
            faults.append(f"{aim}: the next run ends with {code}: {told}")
        elif contents(folder, verb.outputs) != new:
            faults.append(f"{aim}: the next run leads elsewhere")
        left = [path.name for path in folder.rglob("*ltenet-*")]
        if left:
            faults.append(f"{aim}: left behind: {', '.join(left)}")
        shutil.rmtree(folder)
    return {"rounds": rounds, "renames": renames, "killed": killed, "faults": faults}


def main(argv: list[str] | None = None) -> int:
    """Kill every verb, or one; print what happened."""
    parser = argparse.ArgumentParser(prog="python -m tools.kill", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--verb", choices=list(verbs()))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    import torch

    torch.set_num_threads(1)  # a forked process cannot use the threads of its parent
    told = {}
    with tempfile.TemporaryDirectory() as base:
        for name, verb in verbs().items():
            if chosen.verb in (None, name):
                told[name] = kill(verb, chosen.rounds, Path(base) / name, Random(chosen.seed))
                if not chosen.json:
                    print(name, told[name])
    if chosen.json:
        print(json.dumps(told, indent=2))
    return int(any(one["faults"] for one in told.values()))


if __name__ == "__main__":
    sys.exit(main())
