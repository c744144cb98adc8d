"""`ltenet view`: look at a map. What the report shows: docs/viewer.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltenet.cli.command import (
    Command,
    IndexBase,
    MapPath,
    OptionalName,
    OptionalPath,
    OutputPath,
    Result,
    SourcePath,
    TargetPath,
)
from ltenet.cli.output import table
from ltenet.cli.progress import stages
from ltenet.errors import UsageError

if TYPE_CHECKING:
    from ltenet.correspondence import Correspondence
    from ltenet.shape import Shape


@dataclass(frozen=True, kw_only=True)
class View(Command):
    """Write a report in one HTML file that shows two shapes and the map between them.

    It opens in any browser, without a network: linked 3-D views, partners under the pointer,
    confidence, errors if the truth is given, and a morph from source to target.

    Examples
    --------
      ltenet view scan.ply template.obj map.npz -o report.html
      ltenet view scan.ply template.obj map.npz --png pair.png --truth truth.txt
    """

    source: SourcePath
    """Shape that the map starts from."""
    target: TargetPath
    """Shape that the map leads to."""
    map: MapPath
    """The map: .npz of `ltenet match`, or .csv, .txt, .map or .vts."""
    output: OutputPath = None
    """HTML file to write."""
    png: OptionalPath = None
    """Picture of the coloured pair to write, drawn without a browser."""
    truth: OptionalPath = None
    """The true map, for errors and the accuracy curve."""
    title: OptionalName = None
    """What stands at the head of the report; the names of the shapes by default."""
    index_base: IndexBase = None
    """What the numbers in text maps count from; by default as the suffix says."""
    force: bool = False
    """Replace files that exist."""

    def run(self) -> Result:
        """Load, describe, write."""
        from ltenet.drawing.rendering import write_png
        from ltenet.files import check_output
        from ltenet.io import load
        from ltenet.matching.summary import summarize
        from ltenet.viewer.figures import measure
        from ltenet.viewer.picture import picture
        from ltenet.viewer.report import view
        from ltenet.viewer.textures import texture_of

        if self.output is None and self.png is None:
            raise UsageError("got no file to write, expected --output or --png; try -o report.html")
        for path, suffixes in ((self.output, (".html", ".htm")), (self.png, (".png",))):
            if path is not None:
                check_output(path, force=self.force, suffixes=suffixes)
        with stages("read") as progress:
            source = load(self.source)
            progress("read", 0.3)
            target = load(self.target)
            progress("read", 0.6)
            correspondence = self._map(self.map, source, target)
            truth = None if self.truth is None else self._map(self.truth, source, target)
        summary = summarize(correspondence)
        figures: dict[str, Any] = {"source": str(self.source), "target": str(self.target)}
        if truth is not None:
            measured = measure(correspondence, truth.indices, target)
            figures |= {
                "within_1_percent": round(measured.within(0.01), 4),
                "within_5_percent": round(measured.within(0.05), 4),
                "auc": round(measured.auc, 4),
            }
        with stages("write") as progress:
            if self.output is not None:
                meshes = texture_of(self.source) or source, texture_of(self.target) or target
                progress("write", 0.2)
                view(
                    *meshes,
                    correspondence,
                    save=self.output,
                    truth=truth,
                    title=self.title,
                    force=self.force,
                )
                figures |= {"report": str(self.output), "bytes": self.output.stat().st_size}
            if self.png is not None:
                progress("write", 0.6)
                write_png(self.png, picture(source, target, correspondence), force=self.force)
                figures["picture"] = str(self.png)
        text = summary.headline + "\n\n" + table(list(figures.items()))
        return Result({**summary._asdict(), **figures}, text)

    def _map(self, path: Path, source: Shape, target: Shape) -> Correspondence:
        from ltenet.correspondence import Correspondence

        return Correspondence.load(path, source=source, target=target, index_base=self.index_base)


COMMAND = View
