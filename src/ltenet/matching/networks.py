"""The networks behind a name or folder of weights, read once."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ltenet.matching.orientation import FILE, Orienter
from ltenet.method.model import LTENet, find_weights

#: Weights that need no frame: they tell how two shapes lie against each other, for all the others.
ALIGNER = "aligner"


class Networks(NamedTuple):
    """What the name of some weights stands for.

    Attributes
    ----------
    name
        Without the path.
    folder
        Where the weights are.
    model
        The embedding.
    orienter
        Finds the frame of a shape, or, of weights that are `relative`, that of a piece of a body;
        None if the weights have none. Weights with the same networks share one object, so that each
        shape is looked at once.
    aligns_only
        Whether they only tell how one shape lies against the other, and match nothing.
    """

    name: str
    folder: Path
    model: LTENet
    orienter: Orienter | None
    aligns_only: bool = False

    @property
    def frameless(self) -> bool:
        """Whether the embedding is the same for every orientation of a shape."""
        return self.model.config.encoder.inputs != "coordinates"

    @property
    def relative(self) -> bool:
        """Whether the embedding compares shapes that lie alike, in whichever frame."""
        return self.model.config.frame == "common"


@lru_cache(maxsize=4)
def read_networks(name: str) -> Networks:
    """Read weights by name or folder, with the orientation networks that belong to them."""
    folder = find_weights(name)
    path = folder / FILE
    orienter = None
    if path.is_file():
        orienter = _read_orienter(folder, sha256(path.read_bytes()).hexdigest())
    return Networks(Path(name).name, folder, LTENet.from_pretrained(name), orienter)


def read_aligner() -> Networks:
    """Read the weights that tell how shapes lie against each other."""
    return read_networks(ALIGNER)._replace(aligns_only=True)


#: By the digests of their files; two are enough: shipped weights of bodies share one.
_ORIENTERS: dict[str, Orienter | None] = {}


def _read_orienter(folder: Path, digest: str) -> Orienter | None:
    if digest not in _ORIENTERS:
        while len(_ORIENTERS) > 1:
            del _ORIENTERS[next(iter(_ORIENTERS))]
        _ORIENTERS[digest] = Orienter.from_pretrained(folder)
    return _ORIENTERS[digest]
