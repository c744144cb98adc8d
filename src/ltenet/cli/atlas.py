"""`ltenet atlas`: the mean of a collection, its modes, and where groups differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ltenet.cli.batch import Pace
from ltenet.cli.command import Command, OptionalPath, Result
from ltenet.cli.output import table
from ltenet.errors import PartialFailure, UsageError
from ltenet.matching.config import MatchConfig


@dataclass(frozen=True, kw_only=True)
class MakeAtlas(Command):
    """Register all shapes of a folder to their mean, and describe how they vary.

    The folder OUT holds mean.ply, registered/NAME.ply with one vertex order, atlas.npz with mean,
    modes, scores and variance per vertex, model.json with compactness, generalisation and
    specificity, and specimens.csv. A stopped run goes on where it was when it is started again.

    Examples
    --------
      ltenet atlas skulls/ -o atlas
      ltenet atlas skulls/ -o atlas --landmarks mean.csv --groups sex.csv
      ltenet atlas new-skulls/ -o atlas --add
    """

    shapes: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]]
    """Folder of shapes of one kind."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="OUT")]
    """Folder for the atlas."""
    landmarks: OptionalPath = None
    """Landmarks on OUT/mean.ply, carried to every shape; a .csv may name points by number."""
    landmark_format: Literal["csv", "tps", "mrk.json", "fcsv"] = "csv"
    """Format of the landmarks that are written."""
    groups: OptionalPath = None
    """Table with the columns name and group: tests at each vertex where the groups differ."""
    add: bool = False
    """Project the shapes of DIR into the atlas in OUT, which stays as it is."""
    rounds: int = 2
    """How many specimens become templates after the first."""
    keep_size: bool = False
    """Keep differences of size, for shapes in one unit."""
    workers: int = 0
    """Dask workers on this machine, with one thread each; 0 works without Dask."""
    threads: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Threads of this process; all cores by default."""
    matching: MatchConfig = field(default_factory=MatchConfig)

    def run(self) -> Result:
        """Register, analyse, write."""
        if self.rounds < 0 or self.workers < 0 or (self.threads or 1) < 1:
            raise UsageError(
                f"got --rounds {self.rounds}, --workers {self.workers} and --threads "
                f"{self.threads}, expected none below 0, 0 and 1; try the defaults"
            )
        if self.add and (self.landmarks or self.groups):
            raise UsageError(
                "got --add with --landmarks or --groups, expected it alone; try them without --add"
            )
        from ltenet.files import check_output_folder

        check_output_folder(self.output)
        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
        return self._added() if self.add else self._built()

    def _built(self) -> Result:
        from ltenet.collections.atlas import build_atlas
        from ltenet.collections.atlas_files import (
            analyse,
            compare_groups,
            read_groups,
            spread_to_all,
            write_atlas,
        )
        from ltenet.collections.batch import Engine, why_left_out
        from ltenet.collections.plan import plan_folder
        from ltenet.io import load
        from ltenet.io.landmarks import read_landmarks

        groups = None if self.groups is None else read_groups(self.groups)
        plan = plan_folder(self.shapes, "sequence", skip=self.output)
        self.output.mkdir(parents=True, exist_ok=True)
        atlas = build_atlas(
            plan.specimens,
            self.output,
            self.matching,
            rounds=self.rounds,
            scale=not self.keep_size,
            engine=Engine(self.workers),
            tell=Pace(),
        )
        left_out = tuple((path.name, why_left_out(path)) for path in plan.left_out)
        atlas = atlas._replace(notes=(*atlas.notes, *left_out))
        statistics = analyse(atlas)
        written = write_atlas(atlas, statistics, self.output)
        figures: dict[str, Any] = {
            "specimens": len(atlas.registered),
            "vertices": len(atlas.mean),
            "modes": len(statistics.model.modes),
            "explained": [round(float(share), 4) for share in statistics.model.explained[:10]],
            "outliers": list(statistics.outliers),
            "failed": dict(atlas.failed),
            "notes": dict(atlas.notes),
        }
        if self.landmarks is not None:
            landmarks = read_landmarks(self.landmarks, atlas.mean)
            shapes = {one.name: load(one.path) for one in plan.specimens if _named(one, atlas)}
            suffix = f".{self.landmark_format}"
            written += spread_to_all(atlas, landmarks, shapes, self.output, suffix=suffix)
        if groups is not None:
            found = compare_groups(atlas, groups, self.output)
            figures["groups"] = {
                "names": list(found.names),
                "p": found.overall,
                "vertices_family_wise": int((found.family_wise < 0.05).sum()),
                "vertices_discovery": int((found.discovery < 0.05).sum()),
            }
            written.append(self.output / "groups")
        from ltenet.files import atomic_path
        from ltenet.viewer.atlas_page import atlas_html

        page = atlas_html(atlas, statistics, title=self.shapes.resolve().name)
        with atomic_path(self.output / "report.html", force=True) as temporary:
            temporary.write_text(page, encoding="utf-8", newline="\n")
        written.append(self.output / "report.html")
        figures["written"] = [str(path) for path in written]
        return self._result(figures, atlas.failed)

    def _added(self) -> Result:
        from ltenet.collections.atlas import finish
        from ltenet.collections.atlas_files import ADDED, project, read_model
        from ltenet.collections.batch import Engine
        from ltenet.collections.plan import plan_folder
        from ltenet.collections.votes import gather, read_templates

        mean, model = read_model(self.output)
        plan = plan_folder(self.shapes, "sequence", skip=self.output, least=1)
        templates = read_templates(self.output, mean)
        votes, failed = gather(
            templates,
            plan.specimens,
            self.output,
            self.matching,
            engine=Engine(self.workers),
            tell=Pace(),
        )
        registered = finish(templates[0], plan.specimens, votes, self.output, tell=Pace())
        found = project(registered, mean, model, self.output, scale=not self.keep_size)
        figures = {
            "added": {
                one.name: {
                    "mahalanobis": round(one.mahalanobis, 3),
                    "residual": round(one.residual, 6),
                }
                for one in found
            },
            "failed": dict(failed),
            "written": [str(self.output / ADDED)],
        }
        return self._result(figures, failed)

    def _result(self, figures: dict[str, Any], failed: Any) -> Result:
        failure = None
        if failed:
            name, error = failed[0]
            failure = PartialFailure(
                f"got {len(failed)} shapes that could not be registered, expected all; first "
                f"{name}: {error}; try leaving them out"
            )
        rows = [(name, _readable(value)) for name, value in figures.items()]
        return Result(figures, table(rows), failure)


def _named(specimen: Any, atlas: Any) -> bool:
    return any(one.name == specimen.name for one in atlas.registered)


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_readable(inner)}" for name, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value


COMMAND = MakeAtlas
