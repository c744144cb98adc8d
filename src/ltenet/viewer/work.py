"""The app's worker process: read two files, match them, write what the page shows."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, LTENetError
from ltenet.io import save
from ltenet.io.textures import TexturedMesh
from ltenet.shape import Shape
from ltenet.viewer.colors import color_frame, position_colors
from ltenet.viewer.limits import limit_memory, ran_out_of_memory
from ltenet.viewer.page import inert_json, report_html
from ltenet.viewer.reading import read_upload
from ltenet.viewer.report import scene_of, shape_of

#: Points of each shape that are embedded, by effort.
EFFORTS = {"fine": 4096, "quick": 1024}

Tell = Callable[[str, float], None]

#: Files that a finished job offers, with their titles on the page.
DOWNLOADS = {
    "map.npz": "Map with everything (.npz)",
    "map.txt": "Map as numbers (.txt)",
    "other.npz": "The other map that may be right (.npz)",
    "source_colored.ply": "Source, coloured by the map (.ply)",
    "target_colored.ply": "Target, coloured (.ply)",
    "source_wrapped.ply": "Source, wrapped onto the target (.ply)",
    "target_wrapped.ply": "Target, wrapped onto the source (.ply)",
    "report.html": "Report (.html)",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """One pair to match.

    Attributes
    ----------
    source, target
        The uploaded files.
    source_name, target_name
        Their names on the page.
    model
        Weights, or "auto".
    effort
        One of `EFFORTS`.
    output
        Folder for the results.
    pairs
        Known pairs, as numbers of a source and of a target point.
    """

    source: Path
    target: Path
    source_name: str
    target_name: str
    model: str
    effort: str
    output: Path
    pairs: tuple[tuple[int, int], ...] = ()


def serve_orders(connection: Connection, memory: int) -> None:
    """Process orders from the pipe until it closes; main function of the worker process.

    Answers are ("stage", name, share), and at the end ("done",), ("failed", message) or, where the
    process had better be replaced, ("exhausted", message). `memory` is what it may take, in bytes.
    """
    limit_memory(memory)
    import torch  # noqa: F401 - loaded before the first order arrives

    connection.send(("ready",))
    while True:
        try:
            order = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            work(order, lambda stage, share: connection.send(("stage", stage, share)))
            answer: tuple[str, ...] = ("done",)
        except KeyboardInterrupt:
            return
        except Exception as error:
            if ran_out_of_memory(error):
                answer = (
                    "exhausted",
                    f"got a pair that takes more than {memory / 2**30:.1f} GB of memory, expected "
                    "less, the limit of the app on this machine; try fewer points",
                )
            elif isinstance(error, LTENetError):
                answer = ("failed", str(error))
            else:
                logger.exception("the app's worker")
                answer = ("failed", f"unexpected {type(error).__name__}: {error}")
        try:
            connection.send(answer)
        except OSError:  # the app was killed
            return


def work(order: Order, tell: Tell) -> None:
    """Match one pair and write the results."""
    from ltenet.matching.config import MatchConfig
    from ltenet.matching.matcher import Matcher

    tell("read", 0.0)
    source = read_upload(order.source, order.source_name)
    tell("read", 0.5)
    target = read_upload(order.target, order.target_name)
    tell("read", 1.0)
    matcher = Matcher(MatchConfig(model=order.model, points=EFFORTS[order.effort]), progress=tell)
    correspondence, other = matcher.match_both(
        shape_of(source), shape_of(target), pairs=order.pairs or None
    )
    if other is not None:
        other.save(order.output / "other.npz", force=True)
    write_results(source, target, correspondence, order.output, tell)


def write_results(
    source_mesh: Shape | TexturedMesh,
    target_mesh: Shape | TexturedMesh,
    correspondence: Correspondence,
    folder: Path,
    tell: Tell,
) -> None:
    """Write the scene and `DOWNLOADS`; wrapped meshes only if the map allows them."""
    from ltenet.transferring.marking import save_marked
    from ltenet.transferring.transfer import transfer_marked

    tell("write", 0.0)
    source, target = shape_of(source_mesh), shape_of(target_mesh)
    scene = scene_of(source_mesh, target_mesh, correspondence)
    (folder / "scene.json").write_text(inert_json(scene.description), encoding="utf-8")
    (folder / "scene.bin").write_bytes(scene.arrays.blob)
    (folder / "report.html").write_text(report_html(scene), encoding="utf-8", newline="\n")
    correspondence.save(folder / "map.npz", force=True)
    correspondence.save(folder / "map.txt", force=True)
    frame = color_frame(target.points)
    carried = position_colors(correspondence.positions(target), frame)  # (N, 3)
    own = position_colors(target.points, frame)  # (M, 3)
    save(replace(source, colors=carried), folder / "source_colored.ply", force=True)
    save(replace(target, colors=own), folder / "target_colored.ply", force=True)
    tell("write", 1.0)
    tell("wrap", 0.0)
    for number, (name, moved, onto) in enumerate(
        (("source", source, target), ("target", target, source))
    ):
        try:
            wrapped = transfer_marked(
                correspondence,
                moved,
                what="deformation",
                onto=onto,
                direction="push" if name == "source" else "pull",
                progress=_half(tell, number / 2),
            )
        except InputError as error:
            logger.warning("%s: not wrapped: %s", name, error)
            continue
        if isinstance(wrapped.result, Shape):
            path = folder / f"{name}_wrapped.ply"
            save_marked(wrapped.result, wrapped.filled, path, force=True)
    tell("wrap", 1.0)
    offered = [name for name in DOWNLOADS if (folder / name).is_file()]
    (folder / "offered.json").write_text(json.dumps(offered), encoding="utf-8")


def _half(tell: Tell, before: float) -> Tell:
    """Tell how far wrapping is, of which this is the half after `before`."""
    return lambda _, share: tell("wrap", before + share / 2)
