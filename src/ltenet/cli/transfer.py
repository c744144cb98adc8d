"""`ltenet transfer`: what a map is good for. Each use with an example: docs/transfer.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import table
from ltenet.errors import InputError, UsageError

if TYPE_CHECKING:
    from ltenet.correspondence import Correspondence
    from ltenet.shape import Shape
    from ltenet.transferring.textured import TexturedMesh

OptionalPath = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]


@dataclass(frozen=True, kw_only=True)
class Transfer(Command):
    """Carry something from SOURCE onto TARGET along a map, or back with --direction to-source.

    Colours of points are mixed, labels voted on, scalars mixed. Landmarks go to places between
    points. The picture of an .obj or .glb becomes one on the receiver if that has texture
    coordinates and the output is .obj or .glb, else colours of points. With deformation the shape
    itself is bent onto the other and keeps its points, faces and texture.
    """

    map: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="MAP")]]
    """The map from SOURCE to TARGET: .npz, .csv, .txt, .map or .vts."""
    source: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="SOURCE")]]
    """Shape that the map starts from."""
    target: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="TARGET")]]
    """Shape that the map leads to."""
    output: Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="PATH")]
    """File to write: a shape (.ply, .obj, .npz, ...), for scalars also .npy, .csv and .txt, for
    landmarks .csv, .mrk.json or .fcsv, with a texture .obj or .glb."""
    what: Literal["colors", "labels", "scalars", "landmarks", "texture", "deformation"]
    """What to carry."""
    direction: Literal["to-target", "to-source"] = "to-target"
    """From SOURCE onto TARGET, which is usual, or from TARGET back onto SOURCE."""
    values: OptionalPath = None
    """File with scalars or labels (.npy, .csv, .txt; a row per point), or with landmarks."""
    fill: float = 0.05
    """Points that the map does not reach take over from near ones, up to this share of the
    diameter."""
    mesh_system: Literal["LPS", "RAS"] | None = None
    """Axes of both shapes, if landmarks of 3D Slicer may have others; by default the same."""
    index_base: int | None = None
    """What a text map counts from, 0 or 1; by default as the suffix says."""
    force: bool = False
    """Replace files that are already there."""

    def run(self) -> Result:
        """Load, carry, write."""
        from ltenet.correspondence import Correspondence
        from ltenet.files import refuse_to_overwrite
        from ltenet.io import load

        refuse_to_overwrite(self.output, force=self.force)
        if self.values is None and self.what in ("scalars", "landmarks"):
            raise UsageError(
                f"--what {self.what} came without --values; a file with them is needed; "
                "name it with --values FILE"
            )
        if self.values is not None and self.what in ("colors", "texture", "deformation"):
            raise UsageError(
                f"--values came with --what {self.what}, which come with the shape; leave it out, "
                "or choose scalars, labels or landmarks"
            )
        source, target = load(self.source), load(self.target)
        correspondence = Correspondence.load(
            self.map, source=source, target=target, index_base=self.index_base
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

    @property
    def _forward(self) -> bool:
        return self.direction == "to-target"

    @property
    def _paths(self) -> tuple[Path, Path]:
        """Files of giver and receiver."""
        return (self.source, self.target) if self._forward else (self.target, self.source)

    @property
    def _way(self) -> Any:
        return {"direction": "push" if self._forward else "pull", "fill": self.fill}

    def _colors(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.transferring.transfer import transfer

        self._needs(".ply", ".obj", ".off", ".npz", ".xyz", ".txt", ".csv")
        return self._saved(transfer(corr, giver, onto=receiver, what="colors", **self._way))

    def _labels(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.transferring.transfer import transfer
        from ltenet.transferring.value_files import read_values, write_values

        self._needs(".ply", ".npz", ".npy", ".csv", ".txt")
        given: Any = giver if self.values is None else read_values(self.values)
        labelled = transfer(corr, given, onto=receiver, what="labels", **self._way)
        if self.output.suffix.lower() in (".ply", ".npz"):
            return self._saved(labelled)
        assert labelled.labels is not None
        write_values(labelled.labels, labelled, self.output, force=self.force)
        return {"points": len(labelled), "files": [str(self.output)]}

    def _scalars(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.transferring.transfer import transfer
        from ltenet.transferring.value_files import WRITABLE, read_values, write_values

        self._needs(*WRITABLE)
        assert self.values is not None
        given = read_values(self.values)
        if len(given) != len(giver):
            raise InputError(
                f"{self.values}: {len(given)} rows came; one for each of the {len(giver)} points "
                f"of {self._paths[0]} is needed; check the file and --direction"
            )
        values = transfer(corr, given, onto=receiver, what="scalars", **self._way)
        write_values(values, receiver, self.output, force=self.force)
        return {"points": len(values), "files": [str(self.output)]}

    def _landmarks(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.transferring.landmark_files import SUFFIXES, read_landmarks, write_landmarks
        from ltenet.transferring.transfer import transfer

        if not self.output.name.lower().endswith((*SUFFIXES, ".json")):
            self._needs(*SUFFIXES)
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
        from ltenet.transferring.textured import read_textured
        from ltenet.transferring.transfer import transfer

        self._needs(".obj", ".glb", ".ply", ".off", ".npz")
        mesh = read_textured(self._paths[0])
        onto: Shape | TexturedMesh | None = None
        if self.output.suffix.lower() in (".obj", ".glb"):
            onto = read_textured(self._paths[1])
        if onto is None and self.output.suffix.lower() == ".glb":
            raise UsageError(
                f"{self.output}: {self._paths[1]} has no texture coordinates; .ply or .obj is "
                "needed, for colours of points; choose one"
            )
        painted = transfer(corr, mesh or giver, onto=onto or receiver, what="texture", **self._way)
        return self._saved(painted)

    def _deformation(self, corr: Correspondence, giver: Shape, receiver: Shape) -> dict[str, Any]:
        from ltenet.shape import Shape
        from ltenet.transferring.folds import folded_faces
        from ltenet.transferring.surface import Surface
        from ltenet.transferring.textured import read_textured
        from ltenet.transferring.transfer import transfer

        self._needs(".ply", ".obj", ".glb", ".off", ".npz", ".npy", ".xyz")
        textured = None
        if self.output.suffix.lower() in (".obj", ".glb"):
            textured = read_textured(self._paths[0])
        if textured is None and self.output.suffix.lower() == ".glb":
            raise UsageError(
                f"{self.output}: {self._paths[0]} has no texture to keep; .ply or .obj is needed; "
                "choose one"
            )
        bent = transfer(corr, textured or giver, onto=receiver, what="deformation", **self._way)
        shape = bent if isinstance(bent, Shape) else bent.shape
        away = Surface(receiver).nearest(shape.points).distances / receiver.diameter  # (N,)
        figures: dict[str, Any] = {"mean_distance": round(float(away.mean()), 6)}
        if shape.faces is not None:
            folded = folded_faces(giver.points, shape.points, shape.faces)
            figures["folded_faces"] = round(float(folded.mean()), 6)
        return figures | self._saved(bent)

    def _saved(self, result: Shape | TexturedMesh) -> dict[str, Any]:
        from ltenet.io import save
        from ltenet.shape import Shape
        from ltenet.transferring.textured import write_textured

        if isinstance(result, Shape):
            save(result, self.output, force=self.force)
            return {"points": len(result), "files": [str(self.output)]}
        files = write_textured(result, self.output, force=self.force)
        return {"points": len(result.shape), "files": [str(file) for file in files]}

    def _needs(self, *suffixes: str) -> None:
        if self.output.suffix.lower() not in suffixes:
            raise UsageError(
                f"{self.output}: '{self.output.suffix}' cannot hold {self.what}; one of "
                f"{', '.join(suffixes)} is needed; rename the output"
            )


def _readable(name: str, value: Any) -> Any:
    """Turn lists into words and shares into per cent."""
    if isinstance(value, list):
        return ", ".join(value) or "none"
    of = {"matched": "of the points", "mean_distance": "of the diameter", "folded_faces": ""}
    return f"{100 * value:.3g} % {of[name]}".rstrip() if name in of else value


COMMAND = Transfer
