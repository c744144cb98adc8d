"""The ways in which a pair can be matched, and which of them is best.

Weights may be unknown, a shape may stand on its head, and the orientation network may take front
for back. Each way gives a map; the energy of a map (see `map_quality`) tells without labels which
one is plausible.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.confidence import Calibration
from ltenet.deformation import fit_similarity
from ltenet.map_quality import map_scores
from ltenet.model import LTENet, find_weights
from ltenet.neighbors import cosine_topk
from ltenet.orientation import Orienter
from ltenet.preparation import Orient, Prepared, prepare, turned, yaw_alone
from ltenet.refinement import EmbeddedPair, Method, RefinedMap, refine_pair
from ltenet.shape import FloatArray, Shape

#: Below this certainty of the orientation network, a shape is also tried the other way round.
DOUBTFUL = 0.6
#: What is added to the energy of a map that needs such a half turn: the network is seldom that
#: wrong, and on shapes with parts missing the energy alone is no better judge.
HANDICAP = 0.1
#: Degrees by which a shape may be turned without being looked at again as it came: the network of
#: the embedding has seen such turns in training.
SLIGHT = 10.0
#: Degrees by which a map may turn one shape against the other before their frames are doubted.
DISAGREE = 20.0
#: Ways to match whose nearest neighbours are this near to the best energy are refined too.
CLOSE = 0.1
#: Two ways whose nearest neighbours are this near to each other on the mean, for shapes of
#: root-mean-square radius 0.5, would be refined to the same map.
SAME = 0.1

_HALF_TURN = np.diag([-1.0, 1.0, -1.0])

log = logging.getLogger(__name__)


class Networks(NamedTuple):
    """What a name or folder of weights stands for.

    Attributes
    ----------
    name
        As it was given.
    model
        The embedding.
    orienter
        Finds the frame of a shape; None where the weights have none.
    calibration
        From raw confidence to probability.
    """

    name: str
    model: LTENet
    orienter: Orienter | None
    calibration: Calibration


class Ready(NamedTuple):
    """A shape for one of the weights, in one or more directions.

    Attributes
    ----------
    upright
        As the orientation network saw it, or as it came.
    reverse
        Half turned about its own up, where that network is in doubt.
    given
        As it came, with orient "auto"; `upright` itself where the difference is slight.
    """

    upright: Prepared
    reverse: Prepared | None = None
    given: Prepared | None = None


class Way(NamedTuple):
    """One way to match a pair, and a first look at it.

    Attributes
    ----------
    networks, source, target
        With which weights, and both shapes in which direction.
    partners
        (n,) target points of the first part of the source, by nearest features.
    energy
        Of that map, with the handicap.
    handicap
        What is added to the energy of a map for being far-fetched.
    """

    networks: Networks
    source: Prepared
    target: Prepared
    partners: Tensor
    energy: float
    handicap: float


class Candidate(NamedTuple):
    """One way to match a pair, and the map that came of it."""

    networks: Networks
    source: Prepared
    target: Prepared
    pair: EmbeddedPair
    refined: RefinedMap


@lru_cache(maxsize=4)
def read_networks(name: str) -> Networks:
    """Read weights and what belongs to them."""
    folder = find_weights(name)
    return Networks(
        Path(name).name,
        LTENet.from_pretrained(name),
        Orienter.from_pretrained(folder),
        Calibration.from_pretrained(folder),
    )


def ready(
    shape: Shape, networks: Networks, *, points: int | None, orient: Orient, seed: int
) -> Ready:
    """Sample and turn a shape for one of the weights, in all directions that may be needed.

    Parameters
    ----------
    shape, networks
        What is embedded, and with what.
    points, orient, seed
        See `prepare`.
    """
    upright = prepare(
        shape, networks.model, networks.orienter, points=points, orient=orient, seed=seed
    )
    if upright.frame is None:
        return Ready(upright)
    doubtful = upright.frame.certainty < DOUBTFUL
    reverse = turned(upright, _HALF_TURN) if doubtful else None
    given = None
    if orient == "auto":
        slight = _angle(upright.frame.rotation) < SLIGHT
        back = upright.frame.rotation.T  # (3, 3)
        given = upright if slight else turned(upright, back)
    return Ready(upright, reverse, given)


def choose(
    networks: Sequence[Networks],
    sources: Sequence[Ready],
    targets: Sequence[Ready],
    *,
    orient: Orient,
    refine: Method,
) -> Candidate:
    """Find the weights and the directions whose map is most plausible, and refine that map.

    The energy of the nearest neighbours tells which ways are worth refining, and that of the
    refined maps which of these is best. Of ways that say the same one is enough. The best map also
    tells how far the frames of both shapes disagree: then each is tried in that of the other.

    Parameters
    ----------
    networks
        The weights in question.
    sources, targets
        Both shapes, embedded with each of them.
    orient
        How they may be turned.
    refine
        How the map is refined.
    """
    ways = [
        _looked_at(weights, *way)
        for weights, source, target in zip(networks, sources, targets, strict=True)
        for way in _ways(source, target)
    ]
    ways += _agreeing(min(ways, key=lambda way: way.energy), orient)
    ways.sort(key=lambda way: way.energy)
    close = [way for way in ways if way.energy <= ways[0].energy + CLOSE]
    tried = ways[:1] if refine == "none" else _distinct(close)
    found = [_matched(way, refine) for way in tried]
    costs = [one.refined.energy + way.handicap for one, way in zip(found, tried, strict=True)]
    best = found[int(np.argmin(costs))]
    for way in ways:
        log.info("%s: energy %.2f", way.networks.name, way.energy)
    log.info("%s chosen of %d ways, %d refined", best.networks.name, len(ways), len(tried))
    return best


def _looked_at(networks: Networks, source: Prepared, target: Prepared, handicap: float) -> Way:
    """Match the first parts of both shapes by nearest features."""
    rows, columns = (torch.from_numpy(side.parts[0]) for side in (source, target))  # (n,), (m,)
    points = source.points[rows], target.points[columns]  # (n, 3), (m, 3)
    features = source.first_features, target.first_features  # (n, D), (m, D)
    nearest = cosine_topk(*features, 1).indices[:, 0]  # (n,)
    energy = map_scores(*points, nearest, features=features).energy + handicap
    return Way(networks, source, target, columns[nearest], energy, handicap)


def _matched(way: Way, method: Method) -> Candidate:
    """Match all embedded points."""
    source, target = way.source, way.target
    pair = EmbeddedPair(
        source.points,
        target.points,
        source.features,
        target.features,
        source.faces(),
        target.faces(),
        source.graph,
        target.graph,
    )
    # Points that were chosen on each shape for itself are not the same ones: no need to test that.
    whole = source.complete and target.complete
    refined = refine_pair(pair, method, one_to_one="auto" if whole else False)
    return Candidate(way.networks, source, target, pair, refined)


def _ways(source: Ready, target: Ready) -> Iterator[tuple[Prepared, Prepared, float]]:
    """Yield the directions in which a pair can be matched, with their handicaps."""
    yield source.upright, target.upright, 0.0
    if source.reverse is not None:
        yield source.reverse, target.upright, HANDICAP
    if target.reverse is not None:
        yield source.upright, target.reverse, HANDICAP
    as_upright = source.given is source.upright and target.given is target.upright
    if source.given is not None and target.given is not None and not as_upright:
        yield source.given, target.given, 0.0


def _agreeing(way: Way, orient: Orient) -> list[Way]:
    """Turn one of the shapes as the map says, where the frames of both disagree."""
    if orient == "none":
        return []
    source, target = way.source, way.target
    points = source.points[torch.from_numpy(source.parts[0])]  # (n, 3)
    images = target.points[way.partners]  # (n, 3)
    turn = fit_similarity(points, images, torch.ones(len(points))).rotation.double().numpy()
    turn = yaw_alone(turn) if orient == "yaw" else turn  # (3, 3)
    if _angle(turn) < DISAGREE:
        return []
    return [
        _looked_at(way.networks, turned(source, turn), target, way.handicap),
        _looked_at(way.networks, source, turned(target, turn.T), way.handicap),
    ]


def _distinct(ways: list[Way]) -> list[Way]:
    """Leave out ways whose map is that of an earlier one."""
    kept: list[Way] = []
    for way in ways:
        if not any(_agree(way, other) for other in kept):
            kept.append(way)
    return kept


def _agree(first: Way, second: Way) -> bool:
    places = first.target.points  # (M, 3)
    apart = (places[first.partners] - places[second.partners]).norm(dim=1)  # (n,)
    return float(apart.mean()) < SAME


def _angle(rotation: FloatArray) -> float:
    """Degrees of a (3, 3) rotation."""
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1.0, 1.0))))
