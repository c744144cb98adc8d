"""`ltenet match`: which point of one shape is which point of the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from ltenet.cli.bench import read_option
from ltenet.cli.command import (
    Command,
    IndexBase,
    OptionalPath,
    OutputPath,
    Result,
    SourcePath,
    TargetPath,
)
from ltenet.cli.output import say, table
from ltenet.cli.progress import stages
from ltenet.errors import UsageError
from ltenet.matching.config import MatchConfig

if TYPE_CHECKING:
    from ltenet.correspondence import Correspondence
    from ltenet.shape import Shape

Threads = Annotated[int | None, tyro.conf.arg(metavar="INT")]


@dataclass(frozen=True, kw_only=True)
class Match(Command):
    """Match two shapes and write the map from SOURCE to TARGET.

    Meshes or clouds, of any size, unit and position: ply, obj, off, stl, glb, gltf, xyz, pcd, npy,
    npz, txt, csv. Vertex order and count are kept.

    Examples
    --------
      ltenet match scan.ply template.obj -o map.npz
      ltenet match cat.off horse.off -o map.npz --model animal --report map.html
      ltenet match left.ply right.ply -o map.txt --png map.png --points 1024
      ltenet match left.ply right.ply -o map.npz --pairs known.csv
      ltenet match table.ply desk.ply -o map.npz --other turned.npz
      ltenet match left.ply right.ply -o map.npz --method tps-rpm
    """

    source: SourcePath
    """Shape that the map starts from."""
    target: TargetPath
    """Shape that the map leads to."""
    output: OutputPath = None
    """File for the map: .npz keeps everything, .csv partners and scores, .txt, .map and .vts
    partners alone."""
    other: OptionalPath = None
    """File for the other map, where sides or ends of the shapes cannot be told apart and another
    map is about as plausible; not written otherwise."""
    report: OptionalPath = None
    """HTML file to look at the map."""
    png: OptionalPath = None
    """Picture of both shapes, coloured by the map."""
    index_base: IndexBase = None
    """What the numbers in a text file count from; by default as the suffix says."""
    method: Annotated[str, tyro.conf.arg(metavar="NAME")] = "ltenet"
    """Match by another method, e.g. cpd, tps-rpm, fmaps; docs/peers.md lists them. Learned ones
    need --model with a folder of their weights."""
    option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An option of that other method, e.g. --option points=1024; may be repeated."""
    threads: Threads = None
    """Threads for the network; all cores by default."""
    pairs: Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="PATH [PATH]", help_behavior_hint="")
    ] = ()
    """Partners that you know, 1 to 50: they steer the match and are met. A table with two columns,
    numbers of points from 0, or six, positions on SOURCE and TARGET; or two files of landmarks,
    those of SOURCE first, in which partners have equal names."""
    force: bool = False
    """Replace files that exist."""
    matching: MatchConfig = field(default_factory=MatchConfig)

    def run(self) -> Result:
        """Load, match, write."""
        self._check()
        from ltenet.io import load

        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
        with stages("read") as progress:
            source = load(self.source)
            progress("read", 0.5)
            target = load(self.target)
            progress("load", 0.0)
            (correspondence, other), seconds = self._matched(source, target, progress)
            self._write(source, target, correspondence, progress)
            if other is not None and self.other is not None:
                other.save(self.other, index_base=self.index_base, force=self.force)
        if other is None and self.other is not None:
            say(f"no other map is about as plausible: {self.other} is not written")
        return self._result(correspondence, other, seconds)

    def _matched(
        self, source: Shape, target: Shape, progress: Callable[[str, float], None]
    ) -> tuple[tuple[Correspondence, Correspondence | None], dict[str, float]]:
        """Match by the method that was asked for: the map, the other one, seconds of stages."""
        if self.method == "ltenet":
            from ltenet.matching.known_pairs import read_known_pairs
            from ltenet.matching.matcher import Matcher

            pairs = read_known_pairs(self.pairs, source, target) if self.pairs else None
            matcher = Matcher(self.matching, progress=progress)
            if self.other is None:
                return (matcher.match(source, target, pairs=pairs), None), matcher.seconds
            return matcher.match_both(source, target, pairs=pairs), matcher.seconds
        from ltenet.evaluation.peers.one_pair import match_by

        progress("match", 0.0)
        found, seconds = match_by(self.method, source, target, self._peer_options())
        return (found, None), seconds

    def _peer_options(self) -> dict[str, Any]:
        """Return the options of another method; those of our own pipeline do not reach it."""
        from ltenet.evaluation.peers.table import find_peer

        takes, usual = find_peer(self.method).takes, MatchConfig()
        options = dict(read_option(text) for text in self.option)
        for item in fields(MatchConfig):
            value = getattr(self.matching, item.name)
            if value == getattr(usual, item.name):
                continue
            if item.name not in takes:
                raise UsageError(
                    f"got --{item.name} {value} with --method {self.method}, expected options of "
                    "that method; try --option NAME=VALUE"
                )
            options[item.name] = value
        return options

    def _write(
        self,
        source: Shape,
        target: Shape,
        correspondence: Correspondence,
        progress: Callable[[str, float], None],
    ) -> None:
        wanted = sum(path is not None for path in (self.output, self.report, self.png))
        done = 0.0
        progress("write", done)
        if self.output is not None:
            correspondence.save(self.output, index_base=self.index_base, force=self.force)
            progress("write", done := done + 1 / wanted)
        if self.report is not None:
            from ltenet.viewer import view
            from ltenet.viewer.textures import texture_of

            meshes = texture_of(self.source) or source, texture_of(self.target) or target
            view(*meshes, correspondence, save=self.report, force=self.force)
            progress("write", done := done + 1 / wanted)
        if self.png is not None:
            from ltenet.drawing.rendering import write_png
            from ltenet.viewer.picture import picture

            image = picture(source, target, correspondence)
            write_png(self.png, image, force=self.force)
            progress("write", 1.0)

    def _check(self) -> None:
        """Refuse what could not be written or used, before the first second of work."""
        from ltenet.files import check_output
        from ltenet.io.correspondences import SUFFIXES

        if self.method != "ltenet":
            self._peer_options()
            for given, name in ((self.pairs, "pairs"), (self.other, "other")):
                if given:
                    raise UsageError(
                        f"got --{name} with --method {self.method}, expected ltenet: other methods "
                        "cannot be steered and make one map; try without one of the two"
                    )
        elif self.option:
            raise UsageError(
                f"got --option {self.option[0]} without --method, expected it for other methods; "
                "try `ltenet match --help` for our own options"
            )
        for path in (self.output, self.other):
            if path is None:
                continue
            check_output(path, force=self.force, suffixes=SUFFIXES)
            if self.index_base == 1 and path.suffix.lower() == ".npz":
                raise UsageError(
                    "got --index-base 1 for .npz, expected a text format, as .npz counts from 0; "
                    "try -o map.txt"
                )
        if self.report is not None:
            check_output(self.report, force=self.force, suffixes=(".html", ".htm"))
        if self.png is not None:
            check_output(self.png, force=self.force, suffixes=(".png",))
        if self.output is None and self.report is None and self.png is None:
            say(
                "the map will not be saved: add -o map.npz to keep it, or --report map.html to see "
                "it"
            )
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"got --threads {self.threads}, expected at least 1; try 1")

    def _result(
        self,
        correspondence: Correspondence,
        other: Correspondence | None,
        seconds: dict[str, float],
    ) -> Result:
        from ltenet.matching.summary import summarize

        summary, details = summarize(correspondence), correspondence.details
        written = {
            name: str(path)
            for name, path in (
                ("map", self.output),
                ("other", None if other is None else self.other),
                ("report", self.report),
                ("png", self.png),
            )
            if path is not None
        }
        figures = {
            **summary._asdict(),
            "source": str(self.source),
            "target": str(self.target),
            "points": [len(correspondence), correspondence.target_size],
            "method": self.method,
            "other_probability": details.get("other_probability"),
            "energy": details.get("energy"),
            "orientation_reversed": details.get("orientation_reversed"),
            "outliers": details.get("outliers"),
            "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
            "written": written,
        }
        rows = [
            ("points", f"{len(correspondence):,} onto {correspondence.target_size:,}"),
            ("matched", f"{int(correspondence.matched.sum()):,}"),
            *([("energy", f"{details['energy']:.2f}")] if "energy" in details else []),
            *([("method", self.method)] if self.method != "ltenet" else []),
            ("seconds", f"{sum(seconds.values()):.1f}"),
            *written.items(),
        ]
        return Result(figures, summary.headline + "\n\n" + table(rows))


COMMAND = Match
