"""Rows of the main table for every other method, and the trainings behind those that learn."""

from __future__ import annotations

from ltenet.bodies.body_pairs import What
from ltenet.evaluation.paper.plan import GENERATED, Row
from ltenet.evaluation.paper.recipes import PeerRecipe
from ltenet.evaluation.peers.table import PEERS

#: Rows of the paper's table that a peer is the counterpart of.
_IN_THE_PAPER = {
    "corrnet3d": "CorrNet3D",
    "3d-coded": "3D-CODED",
    "elementary": "Elementary Structures",
    "diff-fmaps": "Diff-FMaps",
    "geofmnet": "GeoFMNet",
    "surfmnet": "SURFMNet",
}


def peer_rows(what: What) -> list[Row]:
    """Every other method; of learned ones each kind of post-processing has a row of its own."""
    rows = []
    for name, peer in PEERS.items():
        if name in ("ltenet", "embedding"):
            continue
        published = _IN_THE_PAPER.get(name)
        rows.append(
            Row(
                label=published or name,
                setting=what,
                weights=None if peer.system is None else PeerRecipe(system=peer.system, what=what),
                method=name,
                published=published,
                peer=True,
                mesh=peer.mesh and what == "human",
            )
        )
    return rows


def planned_peers() -> tuple[PeerRecipe, ...]:
    """Return the trainings of other systems behind the main table, people first."""
    found = [row.weights for what in GENERATED for row in peer_rows(what)]
    return tuple(dict.fromkeys(made for made in found if isinstance(made, PeerRecipe)))
