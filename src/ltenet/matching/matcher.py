"""Match two shapes: files, arrays or `Shape`s in, a `Correspondence` of every point out.

Stages, in order: choose points, orient and embed, once for each shape (see `preparation`); find the
best way to match them and refine the map (see `candidates`); estimate how likely each match is
right (see `confidence`); and extend the map to every vertex (see `dense`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.correspondence.algebra import MapArrays
from ltenet.errors import UsageError
from ltenet.geometry.arrays import IntArray
from ltenet.io import load
from ltenet.matching.candidates import Candidate, ranked_candidates
from ltenet.matching.confidence import evidence, read_calibration
from ltenet.matching.config import MatchConfig
from ltenet.matching.extending import to_every_vertex, with_outliers
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.known_pairs import KnownPairs, known_pairs
from ltenet.matching.networks import ALIGNER, Networks, read_aligner, read_networks
from ltenet.matching.preparation import Prepared, prepare
from ltenet.matching.rivals import distinct_maps, rival
from ltenet.matching.steering import Steering
from ltenet.matching.telling import details, warn_of_map, warn_of_shape, warn_of_weights
from ltenet.matching.verdict import pair_evidence, pair_logit, pair_probability
from ltenet.method.model import available_weights
from ltenet.refinement.threads import side_by_side, single_thread
from ltenet.shape import Shape

Progress = Callable[[str, float], None]
#: A shape in its plausible orientations, for each set of weights.
PreparedShape = tuple[tuple[Prepared, ...], ...]
ShapeLike = Shape | str | os.PathLike[str] | ArrayLike

#: Weights that "auto" chooses among.
CANDIDATES = KINDS
#: Probability below which a shape is not of the kind that weights know: it is not embedded yet.
UNKNOWN = 0.05

log = logging.getLogger(__name__)


class Both(NamedTuple):
    """The map of a pair, and the one that may be right instead.

    Attributes
    ----------
    chosen
        The more probable one.
    other
        Another map that is about as plausible, as for shapes whose sides cannot be told apart; None
        if there is none.
    """

    chosen: Correspondence
    other: Correspondence | None


class Matcher:
    """Matches shapes with one configuration; weights are read once, embeddings can be kept.

    Parameters
    ----------
    config
        How to match.
    progress
        Called with the name of a stage and the fraction done.
    """

    def __init__(self, config: MatchConfig | None = None, *, progress: Progress | None = None):
        self.config = config or MatchConfig()
        self._progress = progress or _no_progress
        names: tuple[str, ...] = (self.config.model,)
        if self.config.model == "auto":
            names = tuple(name for name in CANDIDATES if name in available_weights())
        self.networks = tuple(read_networks(name) for name in names)
        turned = any(one.orienter is not None or one.relative for one in self.networks)
        if turned and ALIGNER in available_weights():
            self.networks += (read_aligner(),)
        for networks in self.networks:
            warn_of_weights(networks, self.config)
        self.seconds: dict[str, float] = {}

    def prepare(self, shape: Shape, *, mirror: bool = False) -> PreparedShape:
        """Sample, orient and embed a shape, as far as a first look needs, for each set of weights.

        The rest is embedded when a way is refined, and kept. `mirror` reflects the shape first.
        """
        return self._prepared((shape, mirror, None))[0]

    def match(
        self, source: Shape, target: Shape, *, pairs: ArrayLike | KnownPairs | None = None
    ) -> Correspondence:
        """Match two shapes; `pairs` are partners that are known, see `known_pairs`."""
        return self.match_prepared(*self._inputs(source, target, pairs))

    def match_prepared(
        self, sources: PreparedShape, targets: PreparedShape, known: KnownPairs | None = None
    ) -> Correspondence:
        """Match two shapes that went through `prepare`."""
        return self._matched(sources, targets, known, both=False).chosen

    def match_both(
        self, source: Shape, target: Shape, *, pairs: ArrayLike | KnownPairs | None = None
    ) -> Both:
        """Match two shapes, and keep the other map where sides cannot be told apart."""
        sources, targets, known = self._inputs(source, target, pairs)
        return self._matched(sources, targets, known, both=True)

    def choose(
        self, sources: PreparedShape, targets: PreparedShape, steering: Steering | None = None
    ) -> Candidate:
        """Find the best way to match two shapes that went through `prepare`."""
        return self.ranked(sources, targets, steering)[0]

    def ranked(
        self, sources: PreparedShape, targets: PreparedShape, steering: Steering | None = None
    ) -> list[Candidate]:
        """Find the maps that may be right, each once, the most probable way first."""
        config = self.config
        found = ranked_candidates(
            self.networks,
            sources,
            targets,
            orient=config.orient,
            refine=config.refine,
            tell=lambda share: self._progress("refine", share),
            steering=steering,
            same_scale=config.same_scale,
        )
        return distinct_maps(found)

    def _matched(
        self,
        sources: PreparedShape,
        targets: PreparedShape,
        known: KnownPairs | None,
        *,
        both: bool,
    ) -> Both:
        steering = None if known is None else Steering(known)
        with self._stage("refine"):
            found = self.ranked(sources, targets, steering)
        best, other = found[0], rival(found)
        warn_of_map(best, other)
        chosen = self._extended(best, other, steering)
        if not both or other is None:
            return Both(chosen, None)
        return Both(chosen, self._extended(other, best, steering))

    def _extended(
        self, best: Candidate, other: Candidate | None, steering: Steering | None
    ) -> Correspondence:
        """Estimate probabilities, and extend the map of a candidate to every point."""
        with self._stage("confidence"), single_thread():
            columns = evidence(best.pair, best.refined)  # (n, 7)
            calibration = read_calibration(best.networks.folder)
            logit = pair_logit(pair_evidence(best, columns))
            sampled_scores = calibration.estimate(columns, logit)  # (n,)
        with self._stage("carry"), single_thread():
            landing, scores = to_every_vertex(best, sampled_scores)
        indices = np.where(scores >= self.config.threshold, landing.indices, UNMATCHED)  # (N,)
        if best.source.sample.complete:
            indices[best.refined.indices.numpy() < 0] = UNMATCHED
        source, target = best.source.sample.cleaned, best.target.sample.cleaned
        arrays = with_outliers(
            MapArrays(indices, scores, landing.neighbors, landing.weights), source, target
        )
        if steering is not None:
            arrays = steering.met(arrays)
        return Correspondence(
            **arrays._asdict(),
            target_size=len(target.given),
            details=details(best, other, self.config)
            | {
                "pair_probability": round(pair_probability(logit), 3),
                "known_pairs": len(steering.known.source) if steering else 0,
            },
            source=source.given,
            target=target.given,
        )

    def _inputs(
        self, source: Shape, target: Shape, pairs: ArrayLike | KnownPairs | None
    ) -> tuple[PreparedShape, PreparedShape, KnownPairs | None]:
        """Prepare two shapes so that the known points are among the embedded ones."""
        self.seconds = {}
        known = None if pairs is None else known_pairs(pairs, source, target)
        include = known or (None, None)
        sources, targets = self._prepared(
            (source, self.config.mirror, include[0]), (target, False, include[1])
        )
        return sources, targets, known

    def _prepared(self, *shapes: tuple[Shape, bool, IntArray | None]) -> list[PreparedShape]:
        """Prepare shapes, each reflected first or not, with points to include."""
        with self._stage("embed"):
            steps = _Steps(self._progress, "embed", 3 * len(shapes))
            found = side_by_side(*(partial(self._prepare_one, *shape, steps) for shape in shapes))
        for (_, mirror, _), prepared in zip(shapes, found, strict=True):
            warn_of_shape(prepared[0][0].sample.cleaned, mirror=mirror)
        return found

    def _prepare_one(
        self, shape: Shape, mirror: bool, include: IntArray | None, steps: _Steps
    ) -> PreparedShape:
        config = self.config
        found = prepare(
            shape,
            self.networks,
            points=config.points,
            orient=config.orient,
            seed=config.seed,
            mirror=mirror,
            include=include,
            tell=steps.one_more,
        )
        steps.one_more()
        for networks, orientations in zip(self.networks, found, strict=True):
            # Of those that depend on the other shape, it is not known yet in which orientation.
            known = not (networks.aligns_only or networks.relative)
            if known and may_know(networks, orientations[0]):
                _ = orientations[0].first_part  # here, so that the time counts as embedding
        steps.one_more()
        return found

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._progress(name, 0.0)
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self._progress(name, 1.0)
        log.info("%s: %.2f s", name, self.seconds[name])


class _Steps:
    """Counts the steps of shapes that are prepared side by side, and tells the share done."""

    def __init__(self, progress: Progress, stage: str, total: int) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._done, self._lock = 0, Lock()

    def one_more(self) -> None:
        """Tell that a step is done."""
        with self._lock:
            self._done += 1
            self._progress(self._stage, self._done / self._total)


def match(
    source: ShapeLike,
    target: ShapeLike,
    *,
    pairs: ArrayLike | KnownPairs | None = None,
    config: MatchConfig | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Correspondence:
    """Match two shapes.

    Parameters
    ----------
    source, target
        `Shape`s, paths, or (N, 3) arrays; meshes or clouds, of any size and unit.
    pairs
        Partners that are known, 1 to 50, which steer the match and are met: (K, 2) numbers of
        points, from 0, or (K, 6) positions on source and target.
    config
        How; by default that of `MatchConfig` with the `options` given by name.
    progress
        Called with the name of a stage and the fraction done.

    Returns
    -------
    Correspondence
        From source to target, with the probability that each partner is right.
    """
    if config is not None and options:
        raise UsageError(
            f"got config and {', '.join(options)}, expected one of the two; "
            "try putting the options into the config"
        )
    matcher = Matcher(config or MatchConfig(**options), progress=progress)
    return matcher.match(as_shape(source, "source"), as_shape(target, "target"), pairs=pairs)


def as_shape(shape: ShapeLike, name: str) -> Shape:
    """Read a path, or take an array for points."""
    if isinstance(shape, Shape):
        return shape
    if isinstance(shape, (str, os.PathLike)):
        return load(shape)
    return Shape(np.asarray(shape), name=name)


def may_know(networks: Networks, prepared: Prepared) -> bool:
    """Whether a shape may be of the kind that the weights know."""
    if prepared.frame is None or networks.name not in KINDS:
        return True
    return prepared.frame.kinds[KINDS.index(networks.name)] > UNKNOWN


def _no_progress(stage: str, share: float) -> None:
    pass
