"""How good a shape model from our correspondence is, beside one from the true registration.

    python -m benchmarks.atlas_quality --json                 # 40 generated people
    python -m benchmarks.atlas_quality --json --faust         # the 100 registrations of FAUST

Every mesh is written with its vertices in an order of its own, and `ltenet atlas` registers them.
The same first template goes to every shape by CPD, and by the truth. Of each registration: the mean
distance from the true place, and compactness, generalisation and specificity of its model.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.bodies.body_pairs import own_generator
from ltenet.cli.sources import DATA_VARIABLE
from ltenet.collections.atlas import Atlas, build_atlas
from ltenet.collections.plan import plan_folder
from ltenet.collections.shape_model import generalized_procrustes, quality
from ltenet.evaluation.peers.coordinates import CPD
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io import save
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape

#: Modes that are compared, and the number of them that the summary names.
_MODES, _NAMED = 20, (1, 5, 10, 20)
_MEASURES = ("compactness", "generalisation", "specificity")


class Registered(NamedTuple):
    """A set of meshes in one true vertex order.

    Attributes
    ----------
    vertices
        (n, V, 3)
    faces
        (F, 3)
    """

    vertices: FloatArray
    faces: IntArray


def generated_people(count: int, seed: int) -> Registered:
    """Draw people from the generator, each in a pose of its own."""
    generator = own_generator("human")
    drawn = [generator.draw(seed, index).vertices.astype(np.float64) for index in range(count)]
    return Registered(np.stack(drawn), generator.templates["human"].faces.astype(np.int64))


def add_faust(parser: argparse.ArgumentParser) -> None:
    """Add the option that takes FAUST instead of generated people."""
    parser.add_argument(
        "--faust",
        type=Path,
        nargs="?",
        const=os.environ.get(DATA_VARIABLE, "."),
        metavar="DIR",
        help=f"FAUST, from the folder with faust.npz; {DATA_VARIABLE}, or this one, by default",
    )


def faust(folder: Path, count: int) -> Registered:
    """Read the first registrations of FAUST from `faust.npz`."""
    with np.load(folder / "faust.npz") as archive:
        vertices = archive["verts"][:count].astype(np.float64)
        return Registered(vertices, archive["faces"].astype(np.int64))


def shuffled(given: Registered, folder: Path) -> list[IntArray]:
    """Write every mesh with its vertices in a random order; return these orders, (V,) each."""
    folder.mkdir(parents=True)
    orders = []
    for number, vertices in enumerate(given.vertices):
        order = np.random.default_rng(number).permutation(len(vertices))  # (V,)
        place = np.argsort(order)  # (V,)
        save(Shape(vertices[order], place[given.faces]), folder / f"s{number:04d}.ply")
        orders.append(order)
    return orders


def compare(given: Registered, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Build the atlas, register by the truth and by CPD, and measure all of them."""
    orders = shuffled(given, folder / "shapes")
    plan = plan_folder(folder / "shapes", "sequence")
    config = MatchConfig(model=options.model, points=options.points)
    start = time.perf_counter()
    atlas = build_atlas(
        plan.specimens,
        options.keep or folder / "atlas",
        config,
        rounds=options.rounds,
        tell=_tell,
    )
    seconds = time.perf_counter() - start
    order = orders[_number(atlas.first)]  # (V,)
    rows = [_number(one.name) for one in atlas.registered]
    truth = given.vertices[rows][:, order]  # (n, V, 3)
    sizes = np.array([Shape(shape).diameter for shape in truth])  # (n,)
    registrations = {"ours": np.stack([one.points for one in atlas.registered])}
    if not options.no_cpd:
        registrations["cpd"] = by_cpd(given, _number(atlas.first), rows, options.cpd_points)[
            :, order
        ]
    found: dict[str, Any] = {
        "set": "faust" if options.faust else "people",
        "shapes": len(given.vertices),
        "vertices": given.vertices.shape[1],
        "failed": len(atlas.failed),
        "rounds": options.rounds,
        "atlas_seconds": round(seconds, 1),
        "truth": model_figures(truth),
    }
    for name, points in registrations.items():
        away = np.linalg.norm(points - truth, axis=2).mean(axis=1) / sizes  # (n,)
        figures = model_figures(points)
        found[name] = {
            "error_percent": round(100 * float(away.mean()), 3),
            "worst_error_percent": round(100 * float(away.max()), 3),
            **figures,
            "ratio": ratios(figures, found["truth"]),
        }
    found["to_mean"] = to_mean(atlas, truth)
    deviations = [abs(found["ours"]["ratio"][measure] - 1) for measure in _MEASURES]
    found["within_percent"] = round(100 * max(deviations), 1)
    return found


def by_cpd(given: Registered, first: int, rows: Sequence[int], points: int) -> FloatArray:
    """Move one mesh onto others by CPD of some of its points: (n, V, 3)."""
    register = CPD(points=points)
    template = Shape(given.vertices[first], given.faces)
    moved = []
    for number, row in enumerate(rows, 1):
        target = Shape(given.vertices[row], given.faces)
        moved.append(register(template, target).positions(target))  # (V, 3)
        _tell("registrations by CPD", number, 0, len(rows))
    return np.stack(moved)


def model_figures(points: FloatArray) -> dict[str, Any]:
    """Compactness, generalisation and specificity of (n, V, 3) registrations, by modes."""
    aligned = generalized_procrustes(points).aligned
    return {
        name: [float(f"{value:.5g}") for value in values]
        for name, values in quality(aligned, modes=_MODES)._asdict().items()
    }


def ratios(figures: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    """Mean over the modes of each measure over the truth's."""
    return {
        name: round(float(np.mean(np.divide(figures[name], truth[name]))), 4) for name in _MEASURES
    }


def to_mean(atlas: Atlas, truth: FloatArray) -> dict[str, float]:
    """How far the mean is from the true mean after alignment, in percent of its diameter."""
    other = generalized_procrustes(truth).mean  # (V, 3)
    both = generalized_procrustes(np.stack([atlas.mean.points, other])).aligned  # (2, V, 3)
    away = np.linalg.norm(both[0] - both[1], axis=1) / Shape(both[1]).diameter  # (V,)
    return {"mean_percent": round(100 * float(away.mean()), 3)}


def _number(name: str) -> int:
    return int(name[1:])


def _tell(what: str, done: int, before: int, total: int) -> None:
    sys.stderr.write(f"\r\x1b[K{done} of {total} {what}" + ("\n" if done == total else ""))
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, help="40 people, or all 100 of FAUST, by default")
    add_faust(parser)
    parser.add_argument("--model", default="human", help="weights")
    parser.add_argument("--points", type=int, default=4096, help="embedded points of each shape")
    parser.add_argument("--rounds", type=int, default=2, help="how often the mean is the template")
    parser.add_argument("--seed", type=int, default=40, help="of the generated people")
    parser.add_argument("--cpd-points", type=int, default=1024, help="points that CPD compares")
    parser.add_argument("--no-cpd", action="store_true", help="leave CPD out")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder of the atlas, to go on")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    given = (
        faust(options.faust, options.shapes or 100)
        if options.faust
        else generated_people(options.shapes or 40, options.seed)
    )
    with tempfile.TemporaryDirectory() as folder:
        found = compare(given, Path(folder), options)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'':16}{'truth':>12}{'ours':>12}{'cpd':>12}")
    for measure in _MEASURES:
        for modes in (k for k in _NAMED if k <= len(found["truth"][measure])):
            cells = [
                f"{found[name][measure][modes - 1]:12.4g}"
                for name in ("truth", "ours", "cpd")
                if name in found
            ]
            print(f"{measure + ' ' + str(modes):16}{''.join(cells)}")
    for name in ("ours", "cpd"):
        if name in found:
            print(f"{name}: error {found[name]['error_percent']} %, ratios {found[name]['ratio']}")


if __name__ == "__main__":
    main()
