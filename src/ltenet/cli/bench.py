"""`ltenet bench`: how good a method is on a benchmark. The figures: docs/evaluation.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ltenet.cli.command import (
    Command,
    OptionalName,
    OptionalPath,
    OutputPath,
    Result,
    command_line,
)
from ltenet.cli.output import say
from ltenet.cli.progress import progress
from ltenet.cli.sources import data_folder
from ltenet.errors import UsageError
from ltenet.matching.config import Orient
from ltenet.refinement.options import Method

if TYPE_CHECKING:
    from ltenet.evaluation.bench.config import BenchConfig
    from ltenet.evaluation.bench.run import BenchRun

#: Points at which the error along the surface is measured between parts of whole meshes.
_GEODESIC = 200


@dataclass(frozen=True, kw_only=True)
class Bench(Command):
    """Measure a method on a benchmark with known correspondences.

    Every prediction is made once and kept; the same call after an interrupt goes on where it
    stopped, and changed options never meet old predictions.
    """

    benchmark: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="BENCHMARK")]]
    """shrec19, faust, tosca, faust_r, shrec07, ... (docs/evaluation.md has all), generated,
    generated-human, generated-animal, generated-thing, or a folder or manifest of your own."""
    data: OptionalPath = None
    """Folder of the benchmarks; LTENET_DATA by default."""
    method: Annotated[str, tyro.conf.arg(metavar="NAME")] = "ltenet"
    """Method, several with commas, or all, e.g. ltenet,fmaps; see docs/evaluation.md."""
    model: OptionalName = None
    """Weights, by name or folder; by default those that suit the shapes."""
    orient: Annotated[
        Orient | None, tyro.conf.arg(metavar="{auto,yaw,any,none}", help_behavior_hint="")
    ] = None
    """How shapes are turned before matching (method ltenet); see `ltenet match --help`."""
    refine: Annotated[Method | None, tyro.conf.arg(metavar="METHOD", help_behavior_hint="")] = None
    """How the map is refined (method ltenet): coherent, ot, linear, mutual, spectral or none."""
    option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another option of the method, e.g. --option iterations=50; may be repeated."""
    sampling: Annotated[
        Literal["shared", "independent", "full"] | None,
        tyro.conf.arg(metavar="{shared,independent,full}", help_behavior_hint=""),
    ] = None
    """The same points on both shapes as in papers, each shape drawn by itself, or whole meshes; by
    default shared, independent for parts, and full for sets of whole meshes (faust_r, ...)."""
    by: Literal["vertex", "area"] = "vertex"
    """What independent samples are drawn from."""
    points: int = 1024
    """Points drawn on each shape."""
    pairs: int | None = None
    """A random part of the pairs; all by default."""
    seeds: OptionalName = None
    """Sampling seeds, with commas; 0,1,2 by default, 0 for sets of whole meshes."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on the source, in the unit of the set."""
    rotate: Literal["none", "yaw", "any"] = "none"
    """Turn each shape by its own random rotation first."""
    partial: Annotated[
        Literal["cut", "holes", "view", "limb"] | None,
        tyro.conf.arg(metavar="{cut,holes,view,limb}", help_behavior_hint=""),
    ] = None
    """Match a part of the source onto the whole target: cut by a plane, with holes, in view of a
    camera, or one limb; see docs/partial.md."""
    both: bool = False
    """Match parts of both shapes."""
    strict: bool = False
    """Count distances below a tolerance only, not those equal to it."""
    geodesic: int | None = None
    """At how many points of each pair the error along the surface is measured; needs faces. By
    default 200 for parts of whole meshes, else none."""
    no_cycle: bool = False
    """Leave out the cycle error, which needs the map back and takes as long again."""
    workers: int = 0
    """Processes with one thread each; 0 works in this one with all threads."""
    cache: OptionalPath = None
    """Folder of predictions; LTENET_CACHE or the user's cache folder by default."""
    output: OutputPath = None
    """Folder for the result, the table of pairs, the curve and pictures."""
    force: bool = False
    """Replace a result that is in the folder."""

    def run(self) -> Result:
        """Predict, score, write."""
        from ltenet.evaluation.bench.comparison import compare, markdown_table
        from ltenet.evaluation.bench.report import check_free, write_comparison, write_report
        from ltenet.evaluation.bench.results import summarize
        from ltenet.files import check_output_folder

        command = command_line(self, "bench")
        methods = self._methods()
        configs = [self._config(method) for method in methods]
        check_output_folder(self._cache())
        if self.output is not None:
            check_output_folder(self.output)
            check_free(self.output, force=self.force)
        if len(configs) == 1:
            run = self._run(configs[0])
            data = summarize(run) | {"command": command}
            if self.output is not None:
                self._tell(
                    write_report(
                        run, self.output, cache=self._cache(), command=command, force=self.force
                    )
                )
            return Result(data, _text(data, markdown_table([data])))
        rows = compare(configs, self._run)
        for row in rows:
            if row.missing is not None:
                say(f"{row.method}: {row.missing}")
        results = [row.as_dict() for row in rows]
        if self.output is not None:
            self._tell(
                write_comparison(
                    rows, self.output, cache=self._cache(), command=command, force=self.force
                )
            )
        first = next((row for row in results if "missing" not in row), {})
        data = {
            "benchmark": self.benchmark,
            "sampling": configs[0].sampling,
            "command": command,
            "rows": results,
        }
        return Result(data, _text(first, markdown_table(results)))

    def _tell(self, left_out: list[str]) -> None:
        for text in left_out:
            say(text)

    def _methods(self) -> list[str]:
        from ltenet.evaluation.peers.table import PEERS

        return list(PEERS) if self.method == "all" else _words(self.method, "method")

    def _config(self, method: str) -> BenchConfig:
        from ltenet.evaluation.bench.benchmarks import protocol_of
        from ltenet.evaluation.bench.config import BenchConfig
        from ltenet.evaluation.peers.table import find_peer

        sampled = protocol_of(self.benchmark) == "samples"
        # With several methods, an option goes to those that have it.
        several = "," in self.method or self.method == "all"
        takes = find_peer(method).takes
        given = {"model": self.model, "orient": self.orient, "refine": self.refine}
        if several:
            given = {name: value for name, value in given.items() if name in takes}
        return BenchConfig(
            benchmark=self.benchmark,
            data=data_folder(self.data),
            method=method,
            options=tuple(read_option(text) for text in self.option),
            sampling=self.sampling or self._usual_sampling(sampled=sampled),
            by=self.by,
            points=self.points,
            pairs=self.pairs,
            seeds=read_seeds(self.seeds or ("0,1,2" if sampled else "0")),
            noise=self.noise,
            rotate=self.rotate,
            cycle=sampled and not self.no_cycle and self.partial is None,
            strict=self.strict,
            geodesic=self._geodesic(),
            partial=self.partial,
            both=self.both,
            **given,
        )

    def _usual_sampling(self, *, sampled: bool) -> Literal["shared", "independent", "full"]:
        if not sampled:
            return "full"
        return "shared" if self.partial is None else "independent"

    def _geodesic(self) -> int:
        if self.geodesic is not None:
            return self.geodesic
        return _GEODESIC if self.partial is not None and self.sampling == "full" else 0

    def _run(self, config: BenchConfig) -> BenchRun:
        from ltenet.evaluation.bench.run import run_bench

        def shown(items: Iterable[Any], total: int) -> Iterator[Any]:
            return progress(items, f"{config.benchmark} by {config.method}", total=total)

        return run_bench(config, cache=self._cache(), workers=self.workers, progress=shown)

    def _cache(self) -> Path:
        from ltenet.evaluation.bench.predictions import default_cache

        return self.cache if self.cache is not None else default_cache()


COMMAND = Bench


def _text(result: dict[str, Any], table: str) -> str:
    """Table with what must be known to read it."""
    if not result:
        return table
    drawn = "whole meshes" if result["sampling"] == "full" else f"{result['sampling']} samples"
    if result["partial"] is not None:
        drawn += f", {result['partial']} to {result['partial'] if result['both'] else 'whole'}"
    told = [
        f"{result['benchmark']}, {result['pairs']} pairs, {drawn}, seeds "
        f"{', '.join(map(str, result['seeds']))}; figures of the {result['scored']} prediction"
    ]
    if result["remark"]:
        told.append(result["remark"])
    if "oracle" in result:
        oracle = result["oracle"]
        told.append(
            f"oracle, the nearest drawn point: acc 1 % {oracle['acc']['0.01']['mean']:.1f}, "
            f"err {oracle['err_percent']['mean']:.2f} % of dmax"
        )
    if "classes" in result:
        from ltenet.evaluation.bench.comparison import class_table

        table = f"{table}\nClasses, {result['method']}, % of the diameter:\n\n{class_table(result)}"
    return "\n".join([*told, "", table])


def read_seeds(text: str) -> tuple[int, ...]:
    """Read sampling seeds, whole numbers with commas."""
    try:
        return tuple(int(word) for word in _words(text, "seeds"))
    except ValueError:
        raise UsageError(
            f"got --seeds {text}, expected whole numbers with commas; try --seeds 0,1,2"
        ) from None


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(
            f"got --{option} '{text}', expected words with commas between them; "
            "try it without empty ones"
        )
    return words


def read_option(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; the value is a number if it looks like one."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"got --option {text}, expected NAME=VALUE; try --option iterations=50")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
