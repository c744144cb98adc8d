"""One pair by any method, with a record of how the map was made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ltenet import __version__
from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.table import find_peer, make_peer
from ltenet.shape import Shape


class TimedMatch(NamedTuple):
    """A map, and the seconds that making the method and matching took."""

    map: Correspondence
    seconds: dict[str, float]


def match_by(name: str, source: Shape, target: Shape, options: Mapping[str, Any]) -> TimedMatch:
    """Match two shapes by a method of `PEERS`.

    Parameters
    ----------
    name
        Of the method.
    source, target
        The shapes.
    options
        Of the method.
    """
    peer = find_peer(name)
    begun = time.perf_counter()
    method = make_peer(name, options)
    made = time.perf_counter()
    found = method(source, target)
    done = time.perf_counter()
    given = {**peer.fixed, **options}
    details = {
        "method": name,
        "summary": peer.summary,
        "version": __version__,
        "options": {key: str(value) for key, value in given.items() if key != "model"},
        **({"model": str(given["model"])} if "model" in given else {}),
        **found.details,
    }
    return TimedMatch(replace(found, details=details), {"load": made - begun, "match": done - made})
