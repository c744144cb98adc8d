"""The benchmarks by name: public sets, generated shapes that nobody trained on, folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.body_pairs import What, body_kinds, own_generator
from ltenet.bodies.generated import GeneratedBody
from ltenet.data.generated_meshes import Body, GeneratedMeshes
from ltenet.data.readers import READERS, ProtocolName, open_set, set_folder
from ltenet.data.readers.common import checked_index
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.shape import Shape

#: Stream of the held-back test bodies. Training draws from even streams and validation from small
#: odd ones; see `TrainingPairs`.
_STREAM = 2_000_003
#: Test pairs of each generator.
_GENERATED_PAIRS = 100

#: Generated benchmarks, and the generators behind them.
GENERATED: dict[str, tuple[What, ...]] = {
    "generated": ("human", "animal"),
    "generated-human": ("human",),
    "generated-animal": ("animal",),
    "generated-thing": ("thing",),
}

#: The same as meshes with triangulations of their own.
REMESHED: dict[str, tuple[Body, ...]] = {
    "generated_r": ("human", "animal"),
    "generated_r-human": ("human",),
    "generated_r-animal": ("animal",),
}

#: Pairs that published figures are over.
_OFFICIAL = {"shrec19": 430, "tosca": 286, "faust_r": 400, "scape_r": 400}


class GeneratedBenchmark(ShapeSet):
    """Pairs of generated bodies that were held back from training and validation.

    Pair p consists of shapes 2 p and 2 p + 1, of one template and one species, drawn on demand.

    Parameters
    ----------
    name
        One of `GENERATED`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kinds: list[tuple[What, str, str]] = []
        for what in GENERATED[name]:
            kinds = body_kinds(own_generator(what, held_back=True))
            self._kinds += [(what, *kinds[pair % len(kinds)]) for pair in range(_GENERATED_PAIRS)]
        count = len(self._kinds)
        self.pairs = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
        self.names = tuple(f"{self._kinds[i // 2][2]}_{i:03d}" for i in range(2 * count))
        self.categories = tuple(self._kinds[i // 2][2] for i in range(2 * count))

    def shape(self, index: int) -> Shape:
        """Body number `index`."""
        what, template, _ = self._kinds[checked_index(self, index) // 2]
        return Shape(
            points=self._body(index).vertices.astype(np.float64),
            faces=own_generator(what, held_back=True).templates[template].faces.astype(np.int64),
            name=self.names[index],
        )

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity inside a template."""
        mirror, other = self.mirror(source), self.mirror(target)
        return identity_truth(len(mirror)) if mirror is other else None

    def mirror(self, index: int) -> NDArray[np.int32]:
        """(V,) left/right partner of each vertex of a shape."""
        what, template, _ = self._kinds[checked_index(self, index) // 2]
        return own_generator(what, held_back=True).templates[template].mirror

    def regions(self, index: int) -> Mapping[str, NDArray[np.bool_]]:
        """(V,) masks of the regions of a shape's template."""
        what, template, _ = self._kinds[checked_index(self, index) // 2]
        return own_generator(what, held_back=True).templates[template].regions

    def _body(self, index: int) -> GeneratedBody:
        what, template, category = self._kinds[index // 2]
        generator = own_generator(what, held_back=True)
        return generator.draw(_STREAM, index, template=template, category=category)


def open_benchmark(name: str, data: Path | None = None) -> ShapeSet:
    """Open a benchmark.

    Parameters
    ----------
    name
        A public set ("shrec19", "faust_r", "tosca", ...), "generated", "generated-human",
        "generated-animal", "generated-thing", people and animals remeshed ("generated_r", ...), or
        a folder or manifest of your own with known correspondences.
    data
        Folder of the public sets: it holds the archive or a subfolder of the set, or it is that
        subfolder.
    """
    if name in GENERATED:
        return GeneratedBenchmark(name)
    if name in REMESHED:
        return GeneratedMeshes(name, REMESHED[name], _STREAM)
    if name in READERS and name != "folder":
        if data is None:
            raise MissingError(
                f"got no data for '{name}', which does not ship with ltenet, expected the folder "
                "that holds it; try --data DIR, or set LTENET_DATA"
            )
        shapes = open_set(name, set_folder(name, data))
    elif Path(name).exists():
        shapes = open_set(Path(name))
    else:
        known = [*(key for key in READERS if key != "folder"), *GENERATED, *REMESHED]
        raise UsageError(
            f"got '{name}', expected one of {', '.join(known)} or a folder; try another spelling"
        )
    if len(shapes.pairs) == 0:
        raise InputError(
            f"{name}: got a set without pairs to test on, expected at least one; "
            "try adding two shapes of one category, or another set"
        )
    return shapes


def protocol_of(name: str) -> ProtocolName:
    """How a benchmark is tested: "samples", "listed" or "landmarks"."""
    if name in REMESHED:
        return "listed"
    return READERS[name].protocol if name in READERS else "samples"


def remark(shapes: ShapeSet, tested: int) -> str | None:
    """Return what must be said beside the figures of `tested` pairs of a set, None if nothing."""
    if shapes.name not in _OFFICIAL and tested < len(shapes.pairs):
        return f"{tested} of the {len(shapes.pairs)} pairs"
    return official_share(shapes.name, tested)


def official_share(name: str, tested: int) -> str | None:
    """Say how many of the official pairs of a public set were tested; None if all were."""
    official = _OFFICIAL.get(name)
    if official is None or tested == official:
        return None
    return f"{tested} of the {official} official pairs; published figures are over all of them"


def suited_weights(shapes: ShapeSet) -> str:
    """Weights that suit a set, for methods that cannot choose by themselves."""
    if set(shapes.categories) == {"human"}:
        return "human"
    if shapes.name in ("tosca", "smal", "smal_r", "generated-animal", "generated_r-animal"):
        return "animal"
    raise UsageError(
        f"{shapes.name}: got no weights and shapes of unknown kind, expected a name or a folder of "
        "weights; try --model human or --model animal"
    )
