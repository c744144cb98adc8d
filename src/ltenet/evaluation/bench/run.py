"""Run a benchmark: predict each pair once, in one process or several, then score from the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.data.loading import load_batches
from ltenet.data.mesh_set import LandmarkSet, ListedSet
from ltenet.data.pairs import BenchmarkPair, benchmark_pair
from ltenet.data.partial_pairs import partial_pair
from ltenet.data.shapeset import ShapeSet
from ltenet.errors import LTENetError, MissingError, PartialFailure, UsageError
from ltenet.evaluation.bench.benchmarks import (
    open_benchmark,
    protocol_of,
    remark,
    suited_weights,
)
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.mesh_scoring import (
    SurfaceDistances,
    score_landmarks,
    score_listed,
)
from ltenet.evaluation.bench.predictions import Prediction, PredictionCache
from ltenet.evaluation.bench.provenance import method_record
from ltenet.evaluation.bench.scoring import PairScores, score_pair
from ltenet.evaluation.peers.table import PairMatcher, find_peer, make_peer
from ltenet.lazy import lazy
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape


class Job(NamedTuple):
    """One prediction to make: a pair and a seed."""

    pair: int
    seed: int


class Failure(NamedTuple):
    """Why a job failed."""

    job: Job
    reason: str


class BenchRun(NamedTuple):
    """A benchmark that is done.

    Attributes
    ----------
    config
        What was asked for.
    options
        Every option that the method was given.
    record
        What the predictions depend on besides the shapes.
    scores
        Figures of every pair and seed.
    remark
        What must be said beside the figures, None if nothing.
    """

    config: BenchConfig
    options: dict[str, Any]
    record: dict[str, Any]
    scores: tuple[PairScores, ...]
    remark: str | None


#: Shows how far a long loop is, given what it goes through and how many there are.
Progress = Callable[[Iterable[Any], int], Iterator[Any]]


def run_bench(
    config: BenchConfig,
    *,
    cache: Path,
    workers: int = 0,
    progress: Progress = lambda items, total: iter(items),
) -> BenchRun:
    """Predict and score all pairs of a benchmark.

    An interrupt loses nothing: what was predicted is on file, and the same call goes on from there.

    Parameters
    ----------
    config
        What to run.
    cache
        Folder of predictions, shared by all benchmarks and methods.
    workers
        Processes, each with one thread; 0 works in this one.
    progress
        Wraps the loop over predictions.

    Raises
    ------
    PartialFailure
        If some pairs could not be predicted; figures over the rest would flatter the method.
    MissingError
        If data, weights or a package are missing.
    """
    shapes = open_benchmark(config.benchmark, config.data)
    options = method_options(config, shapes)
    record = method_record(config.method, find_peer(config.method).module, options)
    chosen = chosen_pairs(shapes, config.pairs)
    jobs = tuple(Job(p, s) for s in config.seeds for p in chosen)
    predictor = Predictor(config, PredictionCache(cache), jobs, record, options)
    batches = load_batches(predictor, batch_size=1, stop=len(jobs), workers=workers)
    outcomes = [outcome for (outcome,) in progress(batches, len(jobs))]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if failures:
        job, reason = failures[0]
        raise PartialFailure(
            f"got {len(failures)} failed predictions by {config.method}, expected none of "
            f"{len(jobs)}; try the first alone, pair {job.pair} with seed {job.seed}: {reason}"
        )
    return BenchRun(config, options, record, tuple(outcomes), remark(shapes, len(chosen)))


def chosen_pairs(shapes: ShapeSet, count: int | None) -> list[int]:
    """Rows of `shapes.pairs`: all, or a random part that is the same each time.

    Pairs of one target follow each other, so that its distances are read once.
    """
    rows = np.arange(len(shapes.pairs))
    if count is not None and count < len(rows):
        rows = np.random.default_rng(0).choice(rows, count, replace=False)
    if isinstance(shapes, ListedSet):
        rows = rows[np.argsort(shapes.pairs[rows, 1], kind="stable")]
    chosen: list[int] = rows.tolist()
    return chosen


def method_options(config: BenchConfig, shapes: ShapeSet) -> dict[str, Any]:
    """Every option that the method gets."""
    given = {name: getattr(config, name) for name in ("model", "orient", "refine")}
    options = {name: value for name, value in given.items() if value is not None}
    if config.method == "embedding" and options.get("model", "auto") == "auto":
        options["model"] = suited_weights(shapes)
    if config.method == "ltenet":
        # By name, so that a result says what was used and no change of a default goes unseen.
        usual = MatchConfig()
        options = {name: getattr(usual, name) for name in given} | options
        if config.partial is not None:  # which points have no partner is part of the answer
            options["threshold"] = usual.threshold
    return options | dict(config.options)


@dataclass(frozen=True)
class Predictor:
    """Predicts and scores by number; picklable, so that other processes can do it.

    Attributes
    ----------
    config
        What to run.
    cache
        Where predictions are filed.
    jobs
        The pairs and seeds.
    record
        What predictions depend on besides the shapes.
    options
        Every option of the method.
    """

    config: BenchConfig
    cache: PredictionCache
    jobs: tuple[Job, ...]
    record: dict[str, Any]
    options: dict[str, Any]

    def draw(self, index: int) -> PairScores | Failure:
        """Score prediction number `index`, which is made if it is not on file."""
        job = self.jobs[index]
        try:
            return self._score(job)
        except (MissingError, UsageError):
            raise  # no other pair would fare better
        except LTENetError as error:
            return Failure(job, str(error))

    def shapes_of(self, job: Job) -> tuple[BenchmarkPair, Shape, Shape]:
        """Draw a pair, and its two shapes as the method sees them."""
        drawn = self._drawn(job)
        source = Shape(drawn.source, faces=drawn.source_faces, name=drawn.source_name)
        target = Shape(drawn.target, faces=drawn.target_faces, name=drawn.target_name)
        return drawn, source, target

    def _drawn(self, job: Job) -> BenchmarkPair:
        config = self.config
        if config.partial is not None:
            return partial_pair(
                self._shapes,
                job.pair,
                kind=config.partial,
                both=config.both,
                sampling=config.sampling,
                points=config.points,
                seed=job.seed,
                noise=config.noise,
                rotate=config.rotate,
            )
        return benchmark_pair(
            self._shapes,
            job.pair,
            sampling=config.sampling,
            by=config.by,
            points=config.points,
            seed=job.seed,
            noise=config.noise,
            rotate=config.rotate,
        )

    def predicted(self, source: Shape, target: Shape) -> Prediction:
        """Map between two shapes, from the file if it is there."""
        return self.cache.get(lambda: self._method, self.record, source, target)

    def _score(self, job: Job) -> PairScores:
        drawn, source, target = self.shapes_of(job)
        forth = self.predicted(source, target)
        back = self.predicted(target, source).map if self.config.cycle else None
        scores = score_pair(
            self._shapes,
            drawn,
            forth.map,
            back,
            seed=job.seed,
            pair=job.pair,
            seconds=forth.seconds,
            memory=forth.memory,
            strict=self.config.strict,
            geodesic=self.config.geodesic,
            matched=forth.matched,
        )
        protocol = protocol_of(self.config.benchmark)
        if protocol == "listed" and isinstance(self._shapes, ListedSet):
            distances = SurfaceDistances(self.cache.folder / "distances")
            listed = score_listed(self._shapes, drawn, forth.map, distances, pair=job.pair)
            return scores._replace(listed=listed)
        if protocol == "landmarks" and isinstance(self._shapes, LandmarkSet):
            landmarks = score_landmarks(self._shapes, drawn, forth.map, pair=job.pair)
            return scores._replace(landmarks=landmarks)
        return scores

    @lazy
    def _shapes(self) -> ShapeSet:
        return open_benchmark(self.config.benchmark, self.config.data)

    @lazy
    def _method(self) -> PairMatcher:
        return make_peer(self.config.method, self.options)
