"""`ltenet transfer`: what a map is good for. Each use with an example: docs/transfer.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import tyro

from ltenet.cli.command import (
    Command,
    IndexBase,
    MapPath,
    OptionalPath,
    Result,
    SourcePath,
    TargetPath,
)
from ltenet.cli.output import say, table
from ltenet.cli.progress import stages
from ltenet.errors import InputError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ltenet.correspondence import Correspondence
    from ltenet.io.textures import TexturedMesh
    from ltenet.shape import Shape


@dataclass(frozen=True, kw_only=True)
class Transfer(Command):
    """Carry something from SOURCE onto TARGET along a map, or back with --reverse.

    Colours of points are mixed, labels voted on, scalars mixed. Landmarks go to places between
    points. The picture of an .obj or .glb becomes one on the receiver if that has texture
    coordinates and the output is .obj or .glb, else colours of points. With deformation the shape
    itself is bent onto the other and keeps its points, faces and texture.

    Examples
    --------
      ltenet transfer scan.ply template.obj map.npz --what colors -o colored.ply
      ltenet transfer scan.ply template.obj map.npz --what landmarks --values lm.csv -o out.csv
      ltenet transfer scan.ply template.obj map.npz --what scalars --values skin.npy -o skin.npy
        --reverse
    """

    source: SourcePath
    """Shape that the map starts from."""
    target: TargetPath
    """Shape that the map leads to."""
    map: MapPath
    """The map from SOURCE to TARGET: .npz, .csv, .txt, .map or .vts. May also come first."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="PATH")]
    """File to write: a shape (.ply, .obj, .npz, ...), for scalars also .npy, .csv and .txt, for
    landmarks .csv, .tps, .mrk.json or .fcsv, with a texture .obj or .glb."""
    what: Literal["colors", "labels", "scalars", "landmarks", "texture", "deformation"]
    """What to carry."""
    reverse: bool = False
    """Carry from TARGET back onto SOURCE."""
    direction: Literal["to-target", "to-source"] = "to-target"
    """Older spelling: to-source is the same as --reverse."""
    values: OptionalPath = None
    """File with scalars or labels (.npy, .csv, .txt; a row per point), or with landmarks."""
    fill: float = 0.05
    """Points that the map does not reach take over from near ones, up to this share of the
    diameter; colours and labels that are still missing are the receiver's own, if it has any, and
    scalars come from neighbours. 0 leaves gaps."""
    filled: OptionalPath = None
    """File that tells which points are filled, 1 or 0 for each: .npy, .csv or .txt. A shape as
    .ply or .npz is marked anyway."""
    mesh_system: Annotated[
        Literal["LPS", "RAS"] | None, tyro.conf.arg(metavar="{LPS,RAS}", help_behavior_hint="")
    ] = None
    """Axes of both shapes, if landmarks of 3D Slicer may have others; by default the same."""
    index_base: IndexBase = None
    """What the numbers in a text map count from; by default as the suffix says."""
    force: bool = False
    """Replace files that exist."""

    def run(self) -> Result:
        """Load, carry, write."""
        from ltenet.correspondence import Correspondence
        from ltenet.io import load

        self._check()
        paths = self._ordered()
        with stages("read") as progress:
            source = load(paths.source)
            progress("read", 0.4)
            target = load(paths.target)
            progress("read", 0.8)
            correspondence = Correspondence.load(
                paths.map, source=source, target=target, index_base=self.index_base
            )
        giver, receiver = (source, target) if self._forward else (target, source)
        carry = {
            "colors": self._colors,
            "labels": self._labels,
            "scalars": self._scalars,
            "landmarks": self._landmarks,
            "texture": self._texture,
            "deformation": self._deformation,
        }[self.what]
        figures: dict[str, Any] = {
            "what": self.what,
            "from": str(self._paths[0]),
            "onto": str(self._paths[1]),
            "matched": round(float(correspondence.matched.mean()), 4),
            **carry(correspondence, giver, receiver),
        }
        rows = [(name, _readable(name, value)) for name, value in figures.items()]
        return Result(figures, table(rows))

    def _check(self) -> None:
        """Refuse what could not be written or read, before the first second of work."""
        from ltenet.files import check_output

        check_output(self.output, force=self.force, suffixes=_suffixes(self.what))
        if self.filled is not None:
            if self.what in ("landmarks", "texture"):
                raise UsageError(
                    f"got --filled with --what {self.what}, expected what can be filled; try colors"
                )
            check_output(self.filled, force=self.force, suffixes=(".npy", ".csv", ".txt"))
        if self.values is None and self.what in ("scalars", "landmarks"):
            raise UsageError(
                f"got --what {self.what} without --values, expected a file with them; "
                "try --values FILE"
            )
        if self.values is not None and self.what in ("colors", "texture", "deformation"):
            raise UsageError(
                f"got --values with --what {self.what}, which come with the shape, expected "
                "scalars, labels or landmarks; try without --values"
            )

    def _ordered(self) -> Paths:
        """Tell shapes and map apart: the map used to stand first."""
        from ltenet.io.correspondences import is_map

        if is_map(self.source) and not is_map(self.map):
            return Paths(self.target, self.map, self.source)
        return Paths(self.source, self.target, self.map)

    @property
    def _forward(self) -> bool:
        return self.direction == "to-target" and not self.reverse

    @property
    def _paths(self) -> tuple[Path, Path]:
        """Files of giver and receiver."""
        source, target, _ = self._ordered()
        return (source, target) if self._forward else (target, source)

    @property
    def _way(self) -> Any:
        return {"direction": "push" if self._forward else "pull", "fill": self.fill}

    def _colors(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.transferring.transfer import transfer_marked

        colored = transfer_marked(corr, giver, onto=receiver, what="colors", **self._way)
        return self._saved(*colored)

    def _labels(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.io.values import write_values
        from ltenet.transferring.transfer import transfer_marked

        given: Any = giver if self.values is None else self._rows(giver)
        carried = transfer_marked(corr, given, onto=receiver, what="labels", **self._way)
        if self.output.suffix.lower() in (".ply", ".npz"):
            return self._saved(*carried)
        labelled: Any = carried.result
        write_values(labelled.labels, receiver, self.output, force=self.force)
        marked = self._marked(carried.filled, held=False)
        return {"points": len(receiver), **marked, "files": [str(self.output)]}

    def _scalars(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.io.values import write_values
        from ltenet.transferring.transfer import transfer

        values = transfer(corr, self._rows(giver), onto=receiver, what="scalars", **self._way)
        figures: dict[str, Any] = {"points": len(values)}
        if self.fill > 0:
            from ltenet.transferring.filling import fill_from_neighbors

            values, taken = fill_from_neighbors(values, receiver)
            figures["filled_from_neighbors"] = self._marked(taken, held=True)["filled"]
        write_values(values, receiver, self.output, force=self.force)
        return {**figures, "files": [str(self.output)]}

    def _rows(self, giver: Shape) -> Any:
        """Read --values, one row for each point of the giver."""
        from ltenet.io.values import read_values

        assert self.values is not None
        rows = read_values(self.values)
        if len(rows) != len(giver):
            other = "without" if self.reverse else "with"
            raise InputError(
                f"{self.values}: got {len(rows)} rows, expected one for each of the {len(giver)} "
                f"points of {self._paths[0]}; try it {other} --reverse, or check the file"
            )
        return rows

    def _landmarks(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.io.landmarks import read_landmarks, write_landmarks
        from ltenet.transferring.transfer import transfer

        assert self.values is not None
        landmarks = read_landmarks(self.values, giver)
        own = landmarks.system
        if self.mesh_system is not None:
            landmarks = landmarks.converted(self.mesh_system)
        carried = transfer(corr, landmarks, onto=receiver, what="landmarks", **self._way)
        if own is not None:
            carried = carried.converted(own)
        write_landmarks(carried, self.output, force=self.force)
        lost = [
            name
            for name, point in zip(carried.names, carried.points.tolist(), strict=True)
            if point[0] != point[0]
        ]
        return {"landmarks": len(carried), "lost": lost, "files": [str(self.output)]}

    def _texture(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.io.textures import read_textured
        from ltenet.transferring.transfer import transfer

        mesh = read_textured(self._paths[0])
        onto: Shape | TexturedMesh | None = None
        if self.output.suffix.lower() in (".obj", ".glb"):
            onto = read_textured(self._paths[1])
        if onto is None and self.output.suffix.lower() == ".glb":
            raise UsageError(
                f"{self.output}: got {self._paths[1]} without texture coordinates, expected some "
                "for .glb; try .ply or .obj, for colours of points"
            )
        if onto is None:
            say(f"{self._paths[1]}: no texture coordinates are used: points get colours")
        with stages("carry") as progress:
            painted = transfer(
                corr,
                mesh or giver,
                onto=onto or receiver,
                what="texture",
                progress=progress,
                **self._way,
            )
        became = "colours of points" if onto is None else "picture"
        return {"became": became, **self._saved(painted)}

    def _deformation(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.io.textures import read_textured
        from ltenet.transferring.folds import folded_faces
        from ltenet.transferring.surface import Surface
        from ltenet.transferring.transfer import transfer_marked

        textured = None
        if self.output.suffix.lower() in (".obj", ".glb"):
            textured = read_textured(self._paths[0])
        if textured is None and self.output.suffix.lower() == ".glb":
            raise UsageError(
                f"{self.output}: got {self._paths[0]} without a texture, expected one to keep for "
                ".glb; try .ply or .obj"
            )
        with stages("carry") as progress:
            carried = transfer_marked(
                corr,
                textured or giver,
                onto=receiver,
                what="deformation",
                progress=progress,
                **self._way,
            )
        bent: Any = carried.result
        shape: Shape = bent if textured is None else bent.shape
        away = Surface(receiver).nearest(shape.points).distances / receiver.diameter  # (N,)
        shown = away if carried.filled is None or carried.filled.all() else away[~carried.filled]
        figures: dict[str, Any] = {"mean_distance": round(float(shown.mean()), 6)}
        if shape.faces is not None:
            folded = folded_faces(giver.points, shape.points, shape.faces)
            figures["folded_faces"] = round(float(folded.mean()), 6)
        return figures | self._saved(bent, carried.filled)

    def _saved(self, result: Any, filled: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """Write a shape or a textured mesh, with marks where points are filled."""
        from ltenet.io.textures import write_textured
        from ltenet.shape import Shape
        from ltenet.transferring.marking import save_marked

        if isinstance(result, Shape):
            held = save_marked(result, filled, self.output, force=self.force)
            points, files = len(result), [str(self.output)]
        else:
            held, points = False, len(result.shape)
            files = [str(file) for file in write_textured(result, self.output, force=self.force)]
        return {"points": points, **self._marked(filled, held=held), "files": files}

    def _marked(self, filled: NDArray[np.bool_] | None, *, held: bool) -> dict[str, Any]:
        """Write and count the marks; `held` says whether the output has them as well."""
        if filled is None:
            return {}
        if self.filled is not None:
            from ltenet.transferring.marking import write_marks

            write_marks(filled, self.filled, force=self.force)
        elif filled.any() and not held:
            say(f"{self.output}: cannot mark which points are filled; try --filled filled.npy")
        return {"filled": int(filled.sum())}


class Paths(NamedTuple):
    """Both shapes and the map, in whichever order they were given."""

    source: Path
    target: Path
    map: Path


def _suffixes(what: str) -> tuple[str, ...]:
    """Suffixes of the files that can hold what is carried."""
    from ltenet.io.landmarks import SUFFIXES
    from ltenet.io.values import WRITABLE

    return {
        "colors": (".ply", ".obj", ".off", ".npz", ".xyz", ".txt", ".csv"),
        "labels": (".ply", ".npz", ".npy", ".csv", ".txt"),
        "scalars": tuple(WRITABLE),
        "landmarks": (*SUFFIXES, ".json"),
        "texture": (".obj", ".glb", ".ply", ".off", ".npz"),
        "deformation": (".ply", ".obj", ".glb", ".off", ".npz", ".npy", ".xyz"),
    }[what]


def _readable(name: str, value: Any) -> Any:
    """Turn lists into words and shares into per cent."""
    if name == "filled":
        return f"{value:,} of the points, of which the map tells nothing" if value else "none"
    if name == "filled_from_neighbors":
        return f"{value:,} of the points{'; --fill 0 leaves them empty' if value else ''}"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    of = {"matched": "of the points", "mean_distance": "of the diameter", "folded_faces": ""}
    return f"{100 * value:.3g} % {of[name]}".rstrip() if name in of else value


COMMAND = Transfer
