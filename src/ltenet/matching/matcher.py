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
from dataclasses import asdict
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltenet import __version__
from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.correspondence.algebra import MapArrays
from ltenet.errors import UsageError
from ltenet.geometry.arrays import IntArray
from ltenet.geometry.winding import is_inside_out
from ltenet.io import load
from ltenet.matching.candidates import Candidate, ranked_candidates
from ltenet.matching.cleaning import Cleaned
from ltenet.matching.confidence import evidence, read_calibration
from ltenet.matching.config import MatchConfig
from ltenet.matching.extending import to_every_vertex, with_outliers
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.known_pairs import KnownPairs, known_pairs
from ltenet.matching.networks import ALIGNER, Networks, read_networks
from ltenet.matching.preparation import Prepared, prepare
from ltenet.matching.steering import Steering
from ltenet.matching.summary import DECIDED
from ltenet.matching.verdict import pair_evidence, pair_logit, pair_probability
from ltenet.method.model import available_weights
from ltenet.refinement.threads import side_by_side, single_thread
from ltenet.shape import Shape

Progress = Callable[[str, float], None]
#: A shape in its plausible orientations, for each set of weights.
PreparedShape = tuple[tuple[Prepared, ...], ...]
ShapeLike = Shape | str | os.PathLike[str] | ArrayLike

#: Weights that "auto" chooses among.
CANDIDATES = ("human", "animal", ALIGNER)
#: Share of regions turned inside out above which a map reverses orientation.
REVERSED = 0.5
#: Probability below which a shape is not of the kind that weights know: it is not embedded yet.
UNKNOWN = 0.05

log = logging.getLogger(__name__)


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
        oriented = any(one.orienter is not None for one in self.networks)
        if ALIGNER not in names and oriented and ALIGNER in available_weights():
            self.networks += (read_networks(ALIGNER)._replace(aligns_only=True),)
        for networks in self.networks:
            _tell_what_is_missing(networks, self.config)
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
        self.seconds = {}
        known = None if pairs is None else known_pairs(pairs, source, target)
        include = known or (None, None)
        sources, targets = self._prepared(
            (source, self.config.mirror, include[0]), (target, False, include[1])
        )
        return self.match_prepared(sources, targets, known)

    def match_prepared(
        self, sources: PreparedShape, targets: PreparedShape, known: KnownPairs | None = None
    ) -> Correspondence:
        """Match two shapes that went through `prepare`."""
        steering = None if known is None else Steering(known)
        with self._stage("refine"):
            best = self.choose(sources, targets, steering)
        with self._stage("confidence"), single_thread():
            columns = evidence(best.pair, best.refined)  # (n, 6)
            calibration = read_calibration(best.networks.folder)
            logit = pair_logit(pair_evidence(best, columns))
            sampled_scores = calibration.estimate(columns, logit)  # (n,)
        with self._stage("carry"), single_thread():
            landing, scores = to_every_vertex(best, sampled_scores)
        indices = np.where(scores >= self.config.threshold, landing.indices, UNMATCHED)  # (N,)
        if best.source.sample.complete:
            indices[best.refined.indices.numpy() < 0] = UNMATCHED
        if best.refined.mirrored > REVERSED:
            log.warning(
                "the map reverses orientation: %.0f %% of the regions are turned inside out, so "
                "left and right, or front and back, may be exchanged",
                100 * best.refined.mirrored,
            )
        if best.probability < DECIDED:
            log.warning(
                "front and back may be exchanged: another orientation is nearly as plausible"
            )
        source, target = best.source.sample.cleaned, best.target.sample.cleaned
        arrays = with_outliers(
            MapArrays(indices, scores, landing.neighbors, landing.weights), source, target
        )
        if steering is not None:
            arrays = steering.met(arrays)
        return Correspondence(
            **arrays._asdict(),
            target_size=len(target.given),
            details=self._details(best)
            | {
                "pair_probability": round(pair_probability(logit), 3),
                "known_pairs": len(known.source) if known else 0,
            },
            source=source.given,
            target=target.given,
        )

    def choose(
        self, sources: PreparedShape, targets: PreparedShape, steering: Steering | None = None
    ) -> Candidate:
        """Find the best way to match two shapes that went through `prepare`."""
        config = self.config
        return ranked_candidates(
            self.networks,
            sources,
            targets,
            orient=config.orient,
            refine=config.refine,
            tell=lambda share: self._progress("refine", share),
            steering=steering,
            same_scale=config.same_scale,
        )[0]

    def _prepared(self, *shapes: tuple[Shape, bool, IntArray | None]) -> list[PreparedShape]:
        """Prepare shapes, each reflected first or not, with points to include."""
        with self._stage("embed"):
            steps = _Steps(self._progress, "embed", 3 * len(shapes))
            found = side_by_side(*(partial(self._prepare_one, *shape, steps) for shape in shapes))
        for (_, mirror, _), prepared in zip(shapes, found, strict=True):
            _tell_what_is_odd(prepared[0][0].sample.cleaned, mirror=mirror)
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
            if not networks.frameless and may_know(networks, orientations[0]):
                _ = orientations[0].first_part  # here, so that the time counts as embedding
        steps.one_more()
        return found

    def _details(self, best: Candidate) -> dict[str, Any]:
        """How the map was made, as plain values."""
        frames = {
            f"{side}_certainty": round(prepared.frame.certainty, 3)
            for side, prepared in (("source", best.source), ("target", best.target))
            if prepared.frame is not None
        }
        sides = [best.source.sample.cleaned, best.target.sample.cleaned]
        return {
            "version": __version__,
            **asdict(self.config),
            "model": best.networks.name,
            "calibrated": read_calibration(best.networks.folder).fitted,
            "embedded": [len(best.source.sample.rows), len(best.target.sample.rows)],
            "outliers": [side.outliers for side in sides],
            "inside_out": [is_inside_out(side.given.points, side.given.faces) for side in sides],
            **frames,
            "upright": best.target.rotation.round(6).tolist(),
            "direction_probability": round(best.probability, 3),
            "energy": round(best.refined.energy, 4),
            "mirrored": round(best.refined.mirrored, 4),
            "orientation_reversed": best.refined.mirrored > REVERSED,
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


def _tell_what_is_missing(networks: Networks, config: MatchConfig) -> None:
    """Warn about weights without the files that matching relies on."""
    if networks.aligns_only:
        return
    if networks.orienter is None and not networks.frameless and config.orient != "none":
        log.warning(
            "%s: these weights have no orientation network: both shapes must stand upright (y up) "
            "and face the same way",
            networks.name,
        )
    if not read_calibration(networks.folder).fitted and config.threshold > 0:
        log.warning(
            "%s: these weights are not calibrated: probabilities are a guess", networks.name
        )


def _tell_what_is_odd(cleaned: Cleaned, *, mirror: bool) -> None:
    """Warn about outliers and about meshes turned inside out, unless the mirror explains that."""
    shape = cleaned.given
    if cleaned.outliers:
        log.warning(
            "%s: %d of %d points are outliers and stay unmatched",
            shape.name,
            cleaned.outliers,
            len(shape),
        )
    if not mirror and is_inside_out(shape.points, shape.faces):
        log.warning(
            "%s: the faces look inwards: the mesh is turned inside out or mirrored (see --mirror)",
            shape.name,
        )


def may_know(networks: Networks, prepared: Prepared) -> bool:
    """Whether a shape may be of the kind that the weights know."""
    if prepared.frame is None or networks.name not in KINDS:
        return True
    return prepared.frame.kinds[KINDS.index(networks.name)] > UNKNOWN


def _no_progress(stage: str, share: float) -> None:
    pass
