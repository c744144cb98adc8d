"""What an experiment consists of: rows, each with weights that ship or a training of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ltenet.data.body_pairs import What
from ltenet.data.pairs import Sampling

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
    """

    benchmark: str
    paper: str
    ours: str


#: Settings by what is matched.
SETTINGS: dict[What, Setting] = {
    "human": Setting("shrec19", "SURREAL/SHREC'19", "generated people, tested on SHREC'19"),
    "animal": Setting("tosca", "SMAL/TOSCA", "generated animals, tested on TOSCA"),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training run of a row.

    Attributes
    ----------
    name
        Of the run, without its length.
    preset
        Settings it starts from.
    what
        Which bodies it is shown.
    changes
        Settings that are changed, as ``key=value``.
    trained
        False for the random weights that a training would begin with.
    """

    name: str
    preset: Literal["paper", "dpc"]
    what: What
    changes: tuple[str, ...] = ()
    trained: bool = True


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
    """

    label: str
    setting: What
    weights: str | Recipe | None = None
    method: str = "embedding"
    refine: str | None = None
    noise: float = 0.0
    linear: LinearMap | None = None
    published: str | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Rows of an experiment, and how they are shown.

    Attributes
    ----------
    rows
        In the order of the table.
    samplings
        How test points are drawn.
    plot
        Whether the accuracy curves are drawn.
    note
        What must be known to read the table, empty if nothing.
    """

    rows: tuple[Row, ...]
    samplings: tuple[Sampling, ...] = ("shared", "independent")
    plot: bool = False
    note: str = ""
