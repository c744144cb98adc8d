"""The benchmarks by name: public sets, generated shapes that nobody trained on, folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.data.body_pairs import What, own_generator
from ltenet.data.generated import GeneratedBody
from ltenet.data.readers import READERS, open_set
from ltenet.data.readers.common import checked_index
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.shape import Shape

#: Streams of bodies from which held-back test shapes come. Training draws from even streams and
#: validation from small odd ones; see `TrainingPairs`.
_STREAM = 2_000_003
#: Test pairs of each generator.
_GENERATED_PAIRS = 100

#: Generated benchmarks, and the generators behind them.
GENERATED: dict[str, tuple[What, ...]] = {
    "generated": ("human", "animal"),
    "generated-human": ("human",),
    "generated-animal": ("animal",),
}

#: What to say beside every figure of a set that is not the published one.
_WHOLE = {"shrec19": 430, "tosca": 286}


class GeneratedBenchmark(ShapeSet):
    """Pairs of generated bodies that were held back from training and validation.

    Pair p consists of shapes 2 p and 2 p + 1, of one template and one species; they are drawn when
    they are asked for.

    Parameters
    ----------
    name
        One of `GENERATED`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kinds: list[tuple[What, str, str]] = []
        for what in GENERATED[name]:
            generator = own_generator(what)
            kinds = [(what, t, kind) for t in generator.templates for kind in generator.species(t)]
            self._kinds += [kinds[pair % len(kinds)] for pair in range(_GENERATED_PAIRS)]
        count = len(self._kinds)
        self.pairs = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
        self.names = tuple(f"{self._kinds[i // 2][2]}_{i:03d}" for i in range(2 * count))
        self.categories = tuple(self._kinds[i // 2][2] for i in range(2 * count))

    def shape(self, index: int) -> Shape:
        """Body number `index`."""
        what, template, _ = self._kinds[checked_index(self, index) // 2]
        return Shape(
            points=self._body(index).vertices.astype(np.float64),
            faces=own_generator(what).templates[template].faces.astype(np.int64),
            name=self.names[index],
        )

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity inside a template."""
        mirror, other = self.mirror(source), self.mirror(target)
        return identity_truth(len(mirror)) if mirror is other else None

    def mirror(self, index: int) -> NDArray[np.int32]:
        """(V,) left/right partner of each vertex of a shape."""
        what, template, _ = self._kinds[checked_index(self, index) // 2]
        return own_generator(what).templates[template].mirror

    def _body(self, index: int) -> GeneratedBody:
        what, template, category = self._kinds[index // 2]
        return own_generator(what).draw(_STREAM, index, template=template, category=category)


def open_benchmark(name: str, data: Path | None = None) -> ShapeSet:
    """Open a benchmark.

    Parameters
    ----------
    name
        A public set ("shrec19", "faust", "tosca", "scape", ...), "generated", "generated-human",
        "generated-animal", or a folder or manifest of your own with known correspondences.
    data
        Folder of the public sets: of the archive, of a subfolder of the set's name, or the set's.
    """
    if name in GENERATED:
        return GeneratedBenchmark(name)
    if name in READERS and name != "folder":
        if data is None:
            raise MissingError(
                f"'{name}' does not ship with ltenet; the folder that holds its data is needed; "
                "name it with --data or in LTENET_DATA"
            )
        inside = data / name
        own = inside if inside.is_dir() and not (data / f"{name}.npz").is_file() else data
        shapes = open_set(name, own)
    elif Path(name).exists():
        shapes = open_set(Path(name))
    else:
        known = [*(key for key in READERS if key != "folder"), *GENERATED]
        raise UsageError(
            f"'{name}' is neither a benchmark nor a folder; one of {', '.join(known)}, or a folder "
            "of your own, is needed; check the spelling"
        )
    if len(shapes.pairs) == 0:
        raise InputError(
            f"{name}: the set has no pairs to test on; at least one is needed; "
            "put two shapes of one category into it, or choose another set"
        )
    return shapes


def remark(shapes: ShapeSet) -> str | None:
    """Return what must be said beside the figures of a set, None if nothing."""
    whole = _WHOLE.get(shapes.name)
    if whole is None or len(shapes.pairs) == whole:
        return None
    return (
        f"{len(shapes.pairs)} of the {whole} official pairs, with {len(shapes)} shapes: close to "
        "the published figures but not the same"
    )


def suited_weights(shapes: ShapeSet) -> str:
    """Weights that suit a set, for methods that cannot choose by themselves."""
    if set(shapes.categories) == {"human"}:
        return "human"
    if shapes.name in ("tosca", "smal", "generated-animal"):
        return "animal"
    raise UsageError(
        f"{shapes.name}: no weights were named and what its shapes are is not known; a name or a "
        "folder of weights is needed; give --model human or --model animal"
    )
