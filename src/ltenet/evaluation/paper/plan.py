"""What an experiment consists of: rows, each with weights that ship or a training of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ltenet.bodies.body_pairs import What
from ltenet.data.pairs import Sampling
from ltenet.evaluation.paper.recipes import PeerRecipe, Recipe

#: Which linear map is put between the embeddings: found from the truth of all points, or of a half
#: of them and tested on the other half, as it is or drawn to the identity.
LinearMap = Literal["all", "half", "half-ridge"]


class Setting(NamedTuple):
    """What is trained on and tested on.

    Attributes
    ----------
    benchmark
        The test set.
    paper
        How the paper calls training and test set.
    ours
        What we train and test on.
    also
        Further tests of the trained rows, the held-back shapes of training's own kind first.
    """

    benchmark: str
    paper: str
    ours: str
    also: tuple[str, ...] = ()


#: Settings by what is matched.
SETTINGS: dict[str, Setting] = {
    "human": Setting(
        "shrec19",
        "SURREAL/SHREC'19",
        "generated people, tested on SHREC'19",
        ("generated-human", "faust"),
    ),
    "animal": Setting(
        "tosca", "SMAL/TOSCA", "generated animals, tested on TOSCA", ("generated-animal",)
    ),
    "shrec": Setting("shrec19", "SHREC'19/SHREC'19", "SHREC'19, trained and tested on it"),
}
#: Settings that are trained on generated bodies.
GENERATED: tuple[What, ...] = ("human", "animal")
#: Pairs and sampling seeds that another method is tested on, at most, and pairs of one that takes
#: longer than this many seconds a pair.
PEER_PAIRS, PEER_SEEDS, SLOW_PAIRS, SLOW = 40, 2, 12, 10.0
#: Set of whole meshes for methods that want some, and pairs of it.
MESHES, MESH_PAIRS = "faust_r", 12
#: Label of the control: the first weights of the trainings, their BatchNorm statistics settled.
CONTROL = "untrained, statistics settled"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table, or one line of a figure.

    Attributes
    ----------
    label
        What it is called.
    setting
        What it is tested on.
    weights
        Weights that ship, a folder of them, or how to train them; None for methods without any.
    method, refine
        How shapes are matched.
    noise
        Standard deviation of noise on the source.
    linear
        Linear map between the embeddings, None for none.
    published
        Name of the paper's row beside it, None if there is none.
    oriented
        Whether the orientation networks that ship turn each shape upright first.
    peer
        Whether it is another method than ours, which fewer pairs and seeds are enough for.
    mesh
        Whether the method wants a mesh, and is tested on whole ones as well.
    """

    label: str
    setting: str
    weights: str | Recipe | PeerRecipe | None = None
    method: str = "embedding"
    refine: str | None = None
    noise: float = 0.0
    linear: LinearMap | None = None
    published: str | None = None
    oriented: bool = False
    peer: bool = False
    mesh: bool = False


@dataclass(frozen=True, kw_only=True)
class ExperimentPlan:
    """Rows of an experiment, and how they are shown.

    Attributes
    ----------
    rows
        In the order of the table.
    samplings
        How test points are drawn.
    also
        Whether trained rows get the further tests of their setting.
    plot
        Whether the accuracy curves are drawn.
    cost
        Whether error over seconds is drawn, every row a point.
    note
        What must be known to read the table, empty if nothing.
    """

    rows: tuple[Row, ...]
    samplings: tuple[Sampling, ...] = ("shared", "independent")
    also: bool = True
    plot: bool = False
    cost: bool = False
    note: str = ""
