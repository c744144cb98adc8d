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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltenet import __version__
from ltenet.candidates import Candidate, Networks, Ready, choose, read_networks, ready
from ltenet.confidence import evidence
from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.dense import Carrier, Landing, land
from ltenet.errors import UsageError
from ltenet.io import load
from ltenet.model import available_weights
from ltenet.preparation import Orient
from ltenet.refinement import Method
from ltenet.shape import FloatArray, Shape

Progress = Callable[[str, float], None]
ShapeLike = Shape | str | os.PathLike[str] | ArrayLike

#: Weights that "auto" chooses among.
CANDIDATES = ("human", "animal")
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
        """Sample, turn and embed a shape, as far as a first look needs, with each of the weights.

        What else is needed is embedded when a way is refined, and kept.
        """
        with self._stage("embed"):
            return tuple(self._ready(shape, networks) for networks in self.networks)

    def _ready(self, shape: Shape, networks: Networks) -> Ready:
        config = self.config
        found = ready(shape, networks, points=config.points, orient=config.orient, seed=config.seed)
        for direction in found:
            if direction is not None:
                _ = direction.first_features  # here, so that the time counts as embedding
        return found

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
        """Find the best way to match two shapes that `prepare` has embedded."""
        config = self.config
        return choose(self.networks, sources, targets, orient=config.orient, refine=config.refine)

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


def _no_progress(stage: str, share: float) -> None:
    pass


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
