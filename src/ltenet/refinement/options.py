"""Refinement methods by name, and the options of each; importable without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from ltenet.errors import InputError

Method = Literal["coherent", "ot", "linear", "mutual", "spectral", "none"]
OneToOne = bool | Literal["auto"]


@dataclass(frozen=True, kw_only=True)
class BendingConfig:
    """How one shape is bent onto another; lengths assume a root-mean-square radius of 0.5.

    Attributes
    ----------
    temperature
        Divisor of the cosine similarities; use that of training.
    start_sigma, end_sigma
        Positional bandwidth of the first and the last step.
    coarse_steps, fine_steps
        Steps on farthest-point samples, then on all points.
    coarse_points
        Size of these samples, at most.
    shortlist
        Nearest target points among which the fine steps choose.
    balance
        From 0, where each source point decides alone, to just below 1, where every piece of the
        target surface must receive its share. Values in between allow partial overlap.
    sweeps
        Corrections of these shares in each step; they carry over to the next step.
    outlier
        A point is left out if all its scores fall below minus this value: every partner would cost
        too much similarity or lie too far away.
    nodes
        Control nodes of the deformation.
    stiffness, rigidity
        Weight of the bending energy, in units of sigma squared, and how firmly lengths are kept;
        see `deformation`.
    rounds
        Alternations between rotations and positions in each step.
    """

    temperature: float = 0.05
    start_sigma: float = 0.15
    end_sigma: float = 0.02
    coarse_steps: int = 12
    fine_steps: int = 4
    coarse_points: int = 384
    shortlist: int = 16
    balance: float = 0.9
    sweeps: int = 4
    outlier: float = 4.0
    nodes: int = 100
    stiffness: float = 100.0
    rigidity: float = 0.1
    rounds: int = 3

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            may_be_zero = item.name in ("fine_steps", "balance", "rigidity", "sweeps")
            fine = math.isfinite(value) and (value > 0 or (may_be_zero and value == 0))
            if not fine or (item.name == "balance" and value >= 1):
                raise InputError(
                    f"coherent refinement: got {item.name}={value}, expected a positive number, "
                    "and 0 <= balance < 1; try the default"
                )
        if self.end_sigma > self.start_sigma:
            raise InputError(
                f"coherent refinement: got sigma rising from {self.start_sigma} to "
                f"{self.end_sigma}, expected it to fall; try exchanging the two"
            )


@dataclass(frozen=True, kw_only=True)
class Coherent:
    """Bend both shapes onto each other and take the consensus of the maps.

    Attributes
    ----------
    bending
        One setting of the deformation; by default several stiffnesses are combined.
    one_to_one
        True if both shapes hold the same points, which makes the map an exact assignment; "auto"
        tests this for shapes of equal size.
    sharpen
        Whether the eigenfunctions of meshes sharpen the map; see `sharpening`.
    """

    bending: BendingConfig | None = None
    one_to_one: OneToOne = "auto"
    sharpen: bool = True

    def __post_init__(self) -> None:
        _check_one_to_one(self.one_to_one)


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Entropic optimal transport of the features.

    Attributes
    ----------
    one_to_one
        As for `Coherent`.
    temperature
        Entropic regularisation, in units of cosine similarity.
    reach
        Price of violating the marginals, see `sinkhorn`; None keeps them exactly.
    dustbin
        Cosine similarity below which a point prefers to stay unmatched, for shapes that overlap in
        part; None matches every point.
    """

    one_to_one: OneToOne = "auto"
    temperature: float = 0.02
    reach: float | None = 0.03
    dustbin: float | None = None

    def __post_init__(self) -> None:
        _check_one_to_one(self.one_to_one)
        _check_positive("temperature", self.temperature)
        if self.reach is not None:
            _check_positive("reach", self.reach)
        if self.dustbin is not None and not -1 <= self.dustbin <= 1:
            raise InputError(
                f"refinement: got dustbin={self.dustbin}, expected a cosine from -1 to 1; "
                "try None to match every point"
            )


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Match after a linear map between the embeddings, fitted to the current matches."""


@dataclass(frozen=True, kw_only=True)
class Mutual:
    """Keep mutual nearest neighbours and interpolate between them.

    Attributes
    ----------
    fill
        Whether the other points receive a partner; False leaves them unmatched.
    """

    fill: bool = True


@dataclass(frozen=True, kw_only=True)
class Spectral:
    """ZoomOut [Melzi et al. 2019]; needs the extra `spectral`."""


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The paper's test phase: the target point with the most similar feature."""


Options = Coherent | Transport | Linear | Mutual | Spectral | Nearest


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(
            f"refinement: got {name}={value}, expected a positive number; try the default"
        )


def _check_one_to_one(value: object) -> None:
    if value not in ("auto", True, False):
        raise InputError(
            f"refinement: got one_to_one={value!r}, expected 'auto', True or False; try 'auto'"
        )
