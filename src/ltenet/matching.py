"""Match two shapes: files, arrays or `Shape`s in, a `Correspondence` of every point out.

Stages, in this order: choose points, turn upright and embed (once for each shape, see
`preparation`), nearest neighbour by cosine and refinement (see `refinement`), estimate how likely
each match is right (see `confidence`), and carry the map to every vertex (see `dense`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltenet import __version__
from ltenet.confidence import Calibration, evidence
from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.dense import Carrier, Landing, land
from ltenet.errors import UsageError
from ltenet.io import load
from ltenet.model import LTENet, available_weights, find_weights
from ltenet.orientation import Orienter
from ltenet.preparation import Orient, Prepared, prepare, turned
from ltenet.refinement import EmbeddedPair, Method, RefinedMap, refine_pair
from ltenet.shape import FloatArray, Shape

Progress = Callable[[str, float], None]
ShapeLike = Shape | str | os.PathLike[str] | ArrayLike

#: Weights that "auto" chooses among.
CANDIDATES = ("human", "animal")
#: Below this certainty of the orientation network, a shape is also tried the other way round.
DOUBTFUL = 0.6
#: Degrees by which a shape may be turned without being looked at again as it came: the network of
#: the embedding has seen such turns in training.
SLIGHT = 10.0
#: Ways to match whose nearest neighbours are this near to the best energy are refined too.
CLOSE = 0.1
#: Two ways to match whose nearest neighbours are this near to each other on the mean, as a share
#: of the shape's size, would be refined to the same map.
SAME = 0.1
#: Share of neighbourhoods turned inside out from which a map is suspected of exchanging left and
#: right.
MIRRORED = 0.5

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MatchConfig:
    """How two shapes are matched.

    Attributes
    ----------
    model
        "auto", the name of weights in the package, or a folder of weights.
    points
        Points of each shape that are embedded; the map is carried from these to all others. None
        embeds every point in one pass.
    orient
        "any" turns each shape upright whatever way it came, "yaw" about the y axis alone, "none"
        not at all; "auto" does what "any" does and also tries the shapes as they came.
    refine
        "coherent", "ot", "linear", "mutual", "spectral" or "none".
    threshold
        Points whose probability of being right is below this are left unmatched.
    seed
        Which points are embedded where not all are.
    """

    model: str = "auto"
    points: int | None = 4096
    orient: Orient = "auto"
    refine: Method = "coherent"
    threshold: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.points is not None and self.points < 50:
            raise UsageError(
                f"{self.points} points were asked for; at least 50 are needed, or all; "
                "leave it out for the default"
            )
        if self.orient not in ("auto", "yaw", "any", "none"):
            raise UsageError(
                f"orient {self.orient!r} came; auto, yaw, any or none is needed; "
                "leave it out for auto"
            )
        if not 0.0 <= self.threshold <= 1.0:
            raise UsageError(
                f"a threshold of {self.threshold} came; a probability from 0 to 1 is needed; "
                "use 0 to match every point"
            )


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
    """A shape embedded with one of the weights, in one or more directions.

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


class Candidate(NamedTuple):
    """One way to match a pair, and how it went."""

    networks: Networks
    source: Prepared
    target: Prepared
    pair: EmbeddedPair
    refined: RefinedMap


class Matcher:
    """Matches shapes with one configuration; weights are read once, embeddings can be kept.

    Parameters
    ----------
    config
        How to match.
    progress
        Called with the name of a stage and the share of it that is done.
    """

    def __init__(self, config: MatchConfig | None = None, *, progress: Progress | None = None):
        self.config = config or MatchConfig()
        self._progress = progress or _no_progress
        names: tuple[str, ...] = (self.config.model,)
        if self.config.model == "auto":
            names = tuple(name for name in CANDIDATES if name in available_weights())
        self.networks = tuple(read_networks(name) for name in names)
        self.seconds: dict[str, float] = {}

    def prepare(self, shape: Shape) -> tuple[Ready, ...]:
        """Embed a shape, once for each of the weights in question."""
        with self._stage("embed"):
            return tuple(self._ready(shape, networks) for networks in self.networks)

    def _ready(self, shape: Shape, networks: Networks) -> Ready:
        config = self.config
        upright = prepare(
            shape,
            networks.model,
            networks.orienter,
            points=config.points,
            orient=config.orient,
            seed=config.seed,
        )
        if upright.frame is None:
            return Ready(upright)
        doubtful = upright.frame.certainty < DOUBTFUL
        reverse = turned(upright, _HALF_TURN, networks.model) if doubtful else None
        given = None
        if config.orient == "auto":
            slight = _angle(upright.frame.rotation) < SLIGHT
            back = upright.frame.rotation.T  # (3, 3)
            given = upright if slight else turned(upright, back, networks.model)
        return Ready(upright, reverse, given)

    def match(self, source: Shape, target: Shape) -> Correspondence:
        """Match two shapes."""
        self.seconds = {}
        return self.match_prepared(self.prepare(source), self.prepare(target))

    def match_prepared(
        self, sources: tuple[Ready, ...], targets: tuple[Ready, ...]
    ) -> Correspondence:
        """Match two shapes that `prepare` has embedded."""
        with self._stage("refine"):
            best = self.choose(sources, targets)
        with self._stage("confidence"):
            columns = evidence(best.pair, best.refined)  # (n, 6)
            sampled_scores = best.networks.calibration.estimate(columns)  # (n,)
        with self._stage("carry"):
            landing, scores = _to_every_vertex(best, sampled_scores)
        indices = np.where(scores >= self.config.threshold, landing.indices, UNMATCHED)  # (N,)
        if best.source.complete:
            indices[best.refined.indices.numpy() < 0] = UNMATCHED
        suspect = best.refined.mirrored > MIRRORED
        if suspect:
            log.warning(
                "left and right may be exchanged: %.0f %% of the neighbourhoods are turned inside "
                "out",
                100 * best.refined.mirrored,
            )
        return Correspondence(
            indices,
            len(best.target.shape),
            scores=scores,
            neighbors=landing.neighbors,
            weights=landing.weights,
            details=self._details(best, suspect),
            source=best.source.shape,
            target=best.target.shape,
        )

    def choose(self, sources: tuple[Ready, ...], targets: tuple[Ready, ...]) -> Candidate:
        """Find the weights and the directions whose map is most plausible, and refine that map.

        The energy of the nearest neighbours tells which ways are worth refining, and that of the
        refined maps which of these is best. Of ways that say the same one is enough.
        """
        rough = [
            self._mapped(networks, *pair, method="none")
            for networks, source, target in zip(self.networks, sources, targets, strict=True)
            for pair in _ways(source, target)
        ]
        rough.sort(key=_energy)
        best = rough[0]
        if self.config.refine != "none":
            close = [way for way in rough if _energy(way) <= _energy(best) + CLOSE]
            best = min((self._refined(way) for way in _distinct(close)), key=_energy)
        for candidate in rough:
            log.info("%s: energy %.2f", candidate.networks.name, _energy(candidate))
        log.info("%s chosen of %d ways", best.networks.name, len(rough))
        return best

    def _mapped(
        self, networks: Networks, source: Prepared, target: Prepared, *, method: Method
    ) -> Candidate:
        pair = EmbeddedPair(
            source.points,
            target.points,
            source.features,
            target.features,
            source.faces(),
            target.faces(),
            source.graph,
        )
        return Candidate(networks, source, target, pair, refine_pair(pair, method))

    def _refined(self, candidate: Candidate) -> Candidate:
        refined = refine_pair(candidate.pair, self.config.refine)
        return candidate._replace(refined=refined)

    def _details(self, best: Candidate, suspect: bool) -> dict[str, Any]:
        """How the map was made, as plain values."""
        frames = {
            f"{side}_certainty": round(prepared.frame.certainty, 3)
            for side, prepared in (("source", best.source), ("target", best.target))
            if prepared.frame is not None
        }
        return {
            "version": __version__,
            **asdict(self.config),
            "model": best.networks.name,
            "embedded": [len(best.source.rows), len(best.target.rows)],
            **frames,
            "energy": round(best.refined.energy, 4),
            "mirrored": round(best.refined.mirrored, 4),
            "mirror_suspect": suspect,
            "refinement_accepted": best.refined.accepted,
        }

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._progress(name, 0.0)
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self._progress(name, 1.0)
        log.info("%s: %.2f s", name, self.seconds[name])


def match(
    source: ShapeLike,
    target: ShapeLike,
    *,
    config: MatchConfig | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Correspondence:
    """Match two shapes.

    Parameters
    ----------
    source, target
        `Shape`s, paths, or (N, 3) arrays; meshes or clouds, of any size and unit.
    config
        How; by default that of `MatchConfig` with the `options` given by name.
    progress
        Called with the name of a stage and the share of it that is done.

    Returns
    -------
    Correspondence
        From source to target, with the probability that each partner is right.
    """
    if config is not None and options:
        raise UsageError(
            f"config and {', '.join(options)} came; one of the two is needed; "
            "put the options into the config"
        )
    matcher = Matcher(config or MatchConfig(**options), progress=progress)
    return matcher.match(as_shape(source, "source"), as_shape(target, "target"))


def as_shape(shape: ShapeLike, name: str) -> Shape:
    """Read a path, or take an array for points."""
    if isinstance(shape, Shape):
        return shape
    if isinstance(shape, (str, os.PathLike)):
        return load(shape)
    return Shape(np.asarray(shape), name=name)


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


_HALF_TURN = np.diag([-1.0, 1.0, -1.0])


def _angle(rotation: FloatArray) -> float:
    """Degrees of a (3, 3) rotation."""
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1.0, 1.0))))


def _no_progress(stage: str, share: float) -> None:
    pass


def _ways(source: Ready, target: Ready) -> Iterator[tuple[Prepared, Prepared]]:
    """Yield the directions in which a pair can be matched."""
    yield source.upright, target.upright
    if source.reverse is not None:
        yield source.reverse, target.upright
    if target.reverse is not None:
        yield source.upright, target.reverse
    as_upright = source.given is source.upright and target.given is target.upright
    if source.given is not None and target.given is not None and not as_upright:
        yield source.given, target.given


def _distinct(ways: list[Candidate]) -> list[Candidate]:
    """Leave out ways whose map is that of an earlier one."""
    kept: list[Candidate] = []
    for way in ways:
        if not any(_agree(way, other) for other in kept):
            kept.append(way)
    return kept


def _agree(first: Candidate, second: Candidate) -> bool:
    if len(first.pair.source_points) != len(second.pair.source_points):
        return False  # other weights may have embedded other points
    places = first.pair.target_points  # (M, 3)
    ends = [way.refined.indices for way in (first, second)]  # (N,) each
    apart = (places[ends[0]] - places[ends[1]]).norm(dim=1)  # (N,)
    return float(apart.mean()) < SAME


def _energy(candidate: Candidate) -> float:
    return candidate.refined.energy


def _to_every_vertex(best: Candidate, scores: FloatArray) -> tuple[Landing, FloatArray]:
    """Carry map and scores (n,) of the embedded points to all points of the source.

    Returns
    -------
    The target points of each source point, and its score (N,).
    """
    refined = best.refined
    if best.source.complete and best.target.complete:
        indices = refined.indices.numpy()  # (N,)
        nearest = np.where(indices >= 0, indices, refined.neighbors[:, 0].numpy())  # (N,)
        weights = refined.weights.double().numpy()  # (N, K)
        return Landing(nearest, refined.neighbors.numpy(), weights), scores
    places = refined.positions.double().numpy()  # (n, 3)
    if not best.source.complete:
        points = best.source.points.double().numpy()  # (n, 3)
        places, scores = Carrier(points, places, scores).carry(best.source.all_points())
    return land(places, best.target.all_points()), scores
