"""Run the benchmarks behind the published figures, one after another, into results/.

    python -m tools.run_benchmarks --data DIR --list
    python -m tools.run_benchmarks --data DIR --only 'faust-*' --workers 2
    python -m tools.run_benchmarks --data DIR --paper --continue
    python -m tools.run_benchmarks --refinement   # on generated shapes
    python -m tools.run_benchmarks --collections --only 'quality-*'
    python -m tools.run_benchmarks --speed        # on a machine that does nothing else
    python -m tools.results_page

Finished results are skipped, and every prediction and training is kept, so that the same call
continues after an interrupt. Failures are listed at the end; the others run. With --continue, the
paper's tables gain every row whose runs are finished (`python -m tools.train_queue`); the others
say how far theirs are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from ltenet.evaluation.bench.provenance import source_commit
from ltenet.evaluation.paper.experiments import EXPERIMENTS
from ltenet.files import atomic_path
from ltenet.method.model import available_weights

RESULTS = Path(__file__).parents[1] / "results"
#: Pairs of each set that are also matched turned at random, of whole meshes, and of partial shapes.
PART, FULL, PARTIAL = 30, 20, 100
#: Sets, and the weights that suit them.
SETS = {"faust": "human", "shrec19": "human", "tosca": "animal"}


class Bench(NamedTuple):
    """One command, and the file of its result."""

    name: str
    words: tuple[str, ...]


#: Time and memory: `python -m benchmarks.NAME`.
SPEED = tuple(Bench(name, ()) for name in ("compute", "shapes", "matching", "scale"))
#: What damaged inputs cost: `python -m benchmarks.robustness`.
ROBUSTNESS = (Bench("damages", ()),)
_ANIMALS = ("--what", "animal", "--weights", "animal")
_TABLE = ("benchmarks.refinement", "--table")
#: What refinement gains on generated shapes: modules and their options.
REFINEMENT = (
    Bench("methods", (*_TABLE, "methods")),
    Bench("soft", (*_TABLE, "soft")),
    Bench("repair", (*_TABLE, "repair", "--pairs", "4")),
    Bench("agreement-human", (*_TABLE, "agreement", "--pairs", "24")),
    Bench("agreement-animal", (*_TABLE, "agreement", "--pairs", "24", *_ANIMALS)),
    Bench("surface", ("benchmarks.surface",)),
    Bench("sharpening", ("benchmarks.sharpening",)),
    Bench("same-points-human", (*_TABLE, "same-points", "--pairs", "8")),
    Bench("same-points-human-256", (*_TABLE, "same-points", "--pairs", "5", "--points", "256")),
    Bench("same-points-animal", (*_TABLE, "same-points", "--pairs", "5", *_ANIMALS)),
)
#: What collections cost, how good their atlases are, and how far their maps agree.
COLLECTIONS = (
    *(
        Bench(part, ("benchmarks.collection", "--parts", part))
        for part in ("pairs", "growth", "workers", "atlas")
    ),
    Bench("quality-people", ("benchmarks.atlas_quality",)),
    Bench("quality-faust", ("benchmarks.atlas_quality", "--faust")),
    Bench("consistency-people", ("benchmarks.consistency",)),
    Bench("consistency-faust", ("benchmarks.consistency", "--faust")),
    Bench("consistency-clouds", ("benchmarks.consistency", "--clouds")),
)


def benches() -> list[Bench]:
    """All that need the evaluation data, the most important first."""
    found = []
    for refine in ("none", "coherent"):
        for sampling in ("shared", "independent"):
            found += [_own(name, model, sampling, refine) for name, model in SETS.items()]
    for sampling in ("shared", "independent"):
        for name, model in SETS.items():
            found.append(_own(name, f"{model}-unsupervised", sampling, "none"))
            # The paper's objective and DPC's alone, at equal steps, and a network that has not
            # learned, all of which were shown shapes as they come; then with our orientation step
            # in front of them.
            for kind in ("paper", "dpc", "untrained"):
                words = _own(name, _plain(f"{kind}-{model}"), sampling, "none").words
                found.append(Bench(f"{name}-{sampling}-{kind}-none", (*words, "--orient", "none")))
                words = _own(name, _plain(f"{kind}-{model}", "oriented"), sampling, "none").words
                found.append(Bench(f"{name}-{sampling}-{kind}-oriented", words))
    # By default the weights are chosen for each pair; apes and centaurs resemble people too.
    found.append(_own("tosca", "auto", "independent", "coherent"))
    # How much it costs that nobody knows which way the shapes face, on a part of the pairs.
    part = ("--pairs", str(PART))
    for rotate in ("none", "yaw", "any"):
        for name, model in SETS.items():
            words = (*_own(name, model, "shared", "coherent").words, "--rotate", rotate, *part)
            found.append(Bench(f"part-{name}-shared-{model}-coherent-{rotate}", words))
    # Meshes as users bring them, scored at every vertex.
    for name, model in SETS.items():
        words = (*_own(name, model, "full", "coherent").words, "--pairs", str(FULL))
        found.append(Bench(f"full-{name}-{model}", (*words, "--seeds", "0")))
    # Parts of bodies, onto whole bodies and onto other parts, beside whole ones of the same pairs.
    for name in ("generated-human", "faust", "tosca"):
        words = (name, "--sampling", "independent", "--rotate", "any", "--pairs", str(PARTIAL))
        words = (*words, "--seeds", "0", "--no-cycle")
        found.append(Bench(f"partial-{name}-whole", words))
        for kind in ("holes", "cut", "view", "limb"):
            found.append(Bench(f"partial-{name}-{kind}", (*words, "--partial", kind)))
        for kind in ("holes", "cut", "view"):
            both = (*words, "--partial", kind, "--both")
            found.append(Bench(f"partial-{name}-{kind}-both", both))
    # The remeshed FAUST as the mesh literature tests it, as it comes and rotated at random.
    peers = ("--method", "ltenet,fmaps")
    once = ("--seeds", "0")
    found.append(Bench("meshes-faust_r", ("faust_r", *once)))
    found.append(Bench("meshes-faust_r-any", ("faust_r", "--rotate", "any", *once)))
    found.append(Bench("meshes-faust_r-peers", ("faust_r", *peers, "--pairs", str(FULL), *once)))
    # Classes that no weights were trained on.
    found.append(Bench("meshes-shrec07", ("shrec07", *once)))
    others = ("--method", "ltenet,icp,cpd,fmaps", "--pairs", "48")
    found.append(Bench("meshes-shrec07-peers", ("shrec07", *others, *once)))
    return found


def _plain(run: str, folder: str = "settled") -> str:
    """Name the weights of a run of the paper's tables: as they ship, or as they are tested."""
    return run if run in available_weights() else f"runs/{run}/{folder}"


def _own(name: str, model: str, sampling: str, refine: str) -> Bench:
    words = (name, "--model", model, "--sampling", sampling, "--refine", refine, "--no-cycle")
    return Bench(f"{name}-{sampling}-{model}-{refine}", words)


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description="Run the benchmarks behind the figures.")
    parser.add_argument("--data", type=Path, help="folder of the sets; LTENET_DATA by default")
    parser.add_argument("--only", default="*", help="pattern of names")
    parser.add_argument("--pairs", type=int, help="a random part of the pairs")
    parser.add_argument("--seeds", default="0,1,2", help="sampling seeds")
    parser.add_argument("--workers", type=int, default=0, help="processes")
    parser.add_argument("--paper", action="store_true", help="the paper's experiments instead")
    parser.add_argument("--refinement", action="store_true", help="gains on generated shapes")
    parser.add_argument("--collections", action="store_true", help="batches and atlases instead")
    parser.add_argument("--robustness", action="store_true", help="damaged inputs instead")
    parser.add_argument("--dpc", help="weights of DPC that join there, from `ltenet import-dpc`")
    parser.add_argument("--speed", action="store_true", help="time and memory instead")
    parser.add_argument(
        "--continue", dest="again", action="store_true", help="test finished runs, train none"
    )
    parser.add_argument("--steps", type=int, help="of every training of the paper's experiments")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    parser.add_argument("--list", action="store_true", help="only list them, and whether done")
    options = parser.parse_args()
    options.results = _short(options.results)  # commands are kept with the results
    failed = []
    for name, folder, words in _chosen(options):
        path = folder / f"{name}.json"
        print(f"{'done' if path.exists() else 'to do'}: {name}: {' '.join(words)}", flush=True)
        if (path.exists() and not options.again) or options.list:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", *words]
        finished = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if finished.returncode == 130:
            raise SystemExit(130)
        if finished.returncode:
            failed.append(name)
        elif not path.exists():  # `ltenet paper` has written it
            result = json.loads(finished.stdout)
            if "command" not in result:
                command_line = f"python -m {' '.join(words)}"
                result = {"command": command_line, "commit": source_commit()} | result
            compact = json.dumps(result) + "\n"  # curves are long
            with atomic_path(path) as temporary:
                temporary.write_text(compact, encoding="utf-8", newline="\n")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _chosen(options: argparse.Namespace) -> list[tuple[str, Path, list[str]]]:
    """Names, folders and words of the commands to run."""
    data = [] if options.data is None else ["--data", str(options.data)]
    common = [*data, "--workers", str(options.workers), "--json"]
    seeds = ["--seeds", options.seeds]
    pairs = [] if options.pairs is None else ["--pairs", str(options.pairs)]
    if options.speed:
        folder = options.results / "speed"
        found = [(name, folder, [f"benchmarks.{name}", "--json"]) for name, _ in SPEED]
        found[-1][2].extend(["--plot", str(folder / "scale.png")])
    elif options.robustness:
        folder = options.results / "robustness"
        dpc = [] if options.dpc is None else ["--dpc", options.dpc]
        table = ["benchmarks.robustness", "--json", "--plot", str(folder / "damages.png"), *dpc]
        found = [(name, folder, [*table, *pairs]) for name, _ in ROBUSTNESS]
    elif options.refinement or options.collections:
        kind, chosen = (
            ("refinement", REFINEMENT) if options.refinement else ("collections", COLLECTIONS)
        )
        folder = options.results / kind
        found = [(name, folder, [*words, "--json"]) for name, words in chosen]
    elif options.paper:
        folder = options.results / "paper"
        steps = [] if options.steps is None else ["--steps", str(options.steps)]
        again = ["--continue"] if options.again else []
        more = ["-o", str(folder), *again, *steps, *pairs, *seeds, *common]
        found = [(name, folder, ["ltenet", "paper", name, *more]) for name in EXPERIMENTS]
    else:
        folder = options.results / "bench"
        found = [
            # Some have numbers of pairs and seeds of their own.
            (
                name,
                folder,
                [
                    "ltenet",
                    "bench",
                    *words,
                    *_unless(pairs, words),
                    *_unless(seeds, words),
                    *common,
                ],
            )
            for name, words in benches()
        ]
    return [item for item in found if fnmatch(item[0], options.only)]


def _short(path: Path) -> Path:
    """Name a place below this folder without the way to this folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _unless(option: list[str], words: tuple[str, ...]) -> list[str]:
    """Leave an option out where it is among the words already."""
    return [] if option and option[0] in words else option


if __name__ == "__main__":
    main()
