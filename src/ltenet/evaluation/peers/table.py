"""Every matching method by name, ours first, under one signature.

`PEERS` says where the code of a method is; nothing is imported before a method is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from ltenet.correspondence import Correspondence
from ltenet.errors import UsageError
from ltenet.shape import Shape


class PairMatcher(Protocol):
    """Matches two shapes; every source point gets a partner."""

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""


class Peer(NamedTuple):
    """One method.

    Attributes
    ----------
    place
        "module:Class". The class takes the options as keywords; its instances are `PairMatcher`.
    summary
        What it does, in a few words.
    takes
        Which options of a benchmark it has: some of "model", "orient", "refine" and "seed".
    fixed
        Options that the name of the method implies.
    """

    place: str
    summary: str
    takes: tuple[str, ...] = ()
    fixed: Mapping[str, str] = {}

    @property
    def module(self) -> str:
        """Module that holds the code."""
        return self.place.partition(":")[0]


_ROOM = "ltenet.evaluation.peers"
_DENSITIES = {"kc": "kernel correlation", "l2": "L2 distance (GMMReg)", "cs": "Cauchy-Schwarz"}
_DEFORMATIONS = {"rigid": "rigid", "affine": "affine", "tps": "thin-plate"}

#: Methods by name.
PEERS: dict[str, Peer] = {
    "ltenet": Peer(
        f"{_ROOM}.pipeline:Pipeline",
        "the whole pipeline: orientation, embedding, refinement",
        takes=("model", "orient", "refine", "seed"),
    ),
    "embedding": Peer(
        f"{_ROOM}.embedding:NearestFeature",
        "nearest feature, the paper's test phase",
        takes=("model",),
    ),
    "nearest": Peer(f"{_ROOM}.coordinates:NearestPoint", "nearest point after centring"),
    "icp": Peer(f"{_ROOM}.coordinates:ICP", "iterative closest point, rigid"),
    "cpd": Peer(f"{_ROOM}.coordinates:CPD", "coherent point drift, non-rigid (pycpd)"),
    "transport": Peer(f"{_ROOM}.coordinates:Transport", "optimal transport of coordinates (POT)"),
    "fmaps": Peer(
        f"{_ROOM}.functional_maps:FunctionalMaps", "functional maps, WKS and ZoomOut (pyfmaps)"
    ),
    **{
        kind: Peer(
            f"{_ROOM}.descriptors:NearestDescriptor", f"nearest {long}", fixed={"kind": kind}
        )
        for kind, long in (
            ("hks", "heat kernel signature"),
            ("wks", "wave kernel signature"),
            ("gps", "global point signature"),
        )
    },
    **{
        f"density-{density}-{deformation}": Peer(
            f"{_ROOM}.registration:DensityRegistration",
            f"{long}, {kind} motion",
            fixed={"density": density, "deformation": deformation},
        )
        for density, long in _DENSITIES.items()
        for deformation, kind in _DEFORMATIONS.items()
    },
}


def find_peer(name: str) -> Peer:
    """Look a method up by name."""
    if name not in PEERS:
        raise UsageError(
            f"got the method '{name}', expected one of {', '.join(PEERS)}; try another spelling"
        )
    return PEERS[name]


def make_peer(name: str, options: Mapping[str, Any] | None = None) -> PairMatcher:
    """Make a method by its name in `PEERS`, with its own options."""
    peer = find_peer(name)
    given = dict(options or {})
    module, _, kind = peer.place.partition(":")
    try:
        made: PairMatcher = getattr(import_module(module), kind)(**peer.fixed, **given)
    except TypeError as error:
        raise UsageError(
            f"{name}: got the options {given} ({error}), expected options of that method; "
            "try leaving them out"
        ) from error
    return made
