"""`ltenet match`: which point of one shape is which point of the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import table
from ltenet.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Match(Command):
    """Match two shapes and write the map from the first to the second.

    Meshes or clouds, of any size, unit and position: ply, obj, off, stl, glb, gltf, xyz, pcd, npy,
    npz, txt, csv. Vertex order and count are kept.
    """

    source: tyro.conf.Positional[Path]
    """Shape that the map starts from."""
    target: tyro.conf.Positional[Path]
    """Shape that the map leads to."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=("-o",), metavar="PATH")] = None
    """File for the map: .npz keeps everything, .csv partners and scores, .txt, .map and .vts
    partners alone."""
    model: str = "auto"
    """Weights: human, animal, another name in the package, or a folder; auto takes the one whose
    map is most plausible."""
    points: str = "4096"
    """Points of each shape that are embedded, or "all" for every one in a single pass."""
    orient: Literal["auto", "yaw", "any", "none"] = "auto"
    """Turn each shape upright whatever way it came (auto, any), about the y axis alone, or not."""
    refine: Literal["coherent", "ot", "linear", "mutual", "spectral", "none"] = "coherent"
    """What improves the nearest neighbours."""
    threshold: float = 0.05
    """Points that are right with a lower probability stay unmatched; 0 matches all."""
    seed: int = 0
    """Which points are embedded, where not all are."""
    threads: int | None = None
    """Threads for the network; all cores by default."""
    index_base: Literal[0, 1] | None = None
    """What the numbers in a text file count from; the suffix says it otherwise."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """HTML file to look at the map."""
    png: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Picture of both shapes, coloured by the map."""
    force: bool = False
    """Replace files that exist."""

    def run(self) -> Result:
        """Load, match, write."""
        from ltenet.files import refuse_to_overwrite
        from ltenet.io import load
        from ltenet.matching import MatchConfig, Matcher

        for path in (self.output, self.report, self.png):
            if path is not None:  # before minutes of work, not after
                refuse_to_overwrite(path, force=self.force)
        config = MatchConfig(
            model=self.model,
            points=_count(self.points),
            orient=self.orient,
            refine=self.refine,
            threshold=self.threshold,
            seed=self.seed,
        )
        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
        source, target = load(self.source), load(self.target)
        with stages() as progress:
            matcher = Matcher(config, progress=progress)
            correspondence = matcher.match(source, target)
        if self.output is not None:
            correspondence.save(self.output, index_base=self.index_base, force=self.force)
        if self.report is not None:
            from ltenet.viewer import view
            from ltenet.viewer.textures import texture_of

            meshes = texture_of(self.source) or source, texture_of(self.target) or target
            view(*meshes, correspondence, save=self.report, force=self.force)
        if self.png is not None:
            from ltenet.rendering import write_png
            from ltenet.viewer.picture import picture

            image = picture(source, target, correspondence)
            write_png(self.png, image, force=self.force)
        return self._result(correspondence, matcher.seconds)

    def _result(self, correspondence: Any, seconds: dict[str, float]) -> Result:
        details = correspondence.details
        written = {
            name: str(path)
            for name, path in (("map", self.output), ("report", self.report), ("png", self.png))
            if path is not None
        }
        figures = {
            "source": str(self.source),
            "target": str(self.target),
            "points": [len(correspondence), correspondence.target_size],
            "matched": int(correspondence.matched.sum()),
            "mean_probability": float(correspondence.scores.mean()),
            "coverage": correspondence.coverage,
            "model": details["model"],
            "mirror_suspect": details["mirror_suspect"],
            "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
            "written": written,
        }
        rows = [
            ("points", f"{len(correspondence):,} onto {correspondence.target_size:,}"),
            ("matched", f"{figures['matched']:,} ({correspondence.matched.mean():.1%})"),
            ("probability", f"{figures['mean_probability']:.2f} on average"),
            ("coverage", f"{correspondence.coverage:.1%} of the target"),
            ("model", f"{details['model']} (energy {details['energy']:.2f})"),
            ("seconds", f"{sum(seconds.values()):.1f}"),
            *written.items(),
        ]
        if details["mirror_suspect"]:
            rows.insert(4, ("warning", "left and right may be exchanged"))
        return Result(figures, table(rows))


def _count(points: str) -> int | None:
    """Turn the text of --points into a number, None for all."""
    if points == "all":
        return None
    try:
        return int(points)
    except ValueError:
        raise UsageError(
            f"--points {points} came; a whole number or 'all' is needed; leave it out for 4096"
        ) from None


@contextmanager
def stages() -> Iterator[Callable[[str, float], None] | None]:
    """Show the stage that is running on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    labels = {
        "embed": "embedding both shapes",
        "refine": "refining the map",
        "carry": "carrying it to every vertex",
        "confidence": "estimating confidence",
    }
    with Console(stderr=True).status("reading weights") as status:
        yield lambda stage, share: status.update(labels.get(stage, stage))


COMMAND = Match
