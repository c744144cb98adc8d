"""Maps of LTENet and of DPC beside the truth, in colours: of a good, a usual and a failed pair."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.data.pairs import BenchmarkPair
from ltenet.drawing.rendering import Image, contact_sheet, render
from ltenet.errors import MissingError
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.pictures import position_colors
from ltenet.evaluation.bench.predictions import PredictionCache
from ltenet.evaluation.bench.run import BenchRun, Job, Predictor, run_bench
from ltenet.evaluation.bench.scoring import PairScores
from ltenet.evaluation.paper.config import PaperConfig, Tell
from ltenet.evaluation.paper.plan import GENERATED, SETTINGS
from ltenet.evaluation.paper.plans import dpc, ltenet
from ltenet.evaluation.paper.trainings import Trained, trained
from ltenet.geometry.arrays import FloatArray, IntArray

#: Test pairs that the pictures are chosen from; all would take long and show the same.
EXAMINED = 40
_PICKED = ("best", "median", "worst")
_TILE = 240


class MappedPair(NamedTuple):
    """One pair and its maps.

    Attributes
    ----------
    picked
        Its place among the examined pairs: best, median or worst.
    setting, benchmark
        What it was trained for and which set it is from.
    drawn
        Its points and their truth.
    maps
        (N,) target points by the name of the method.
    scores
        By the name of the method.
    """

    picked: str
    setting: str
    benchmark: str
    drawn: BenchmarkPair
    maps: dict[str, IntArray]
    scores: dict[str, PairScores]

    def rows(self) -> list[dict[str, Any]]:
        """Figures of each map."""
        return [
            {
                "set": self.benchmark,
                "pair": f"{score.source} to {score.target}",
                "among the examined": self.picked,
                "map": name,
                "acc 1 %": 100 * float(score.point.accuracy[4]),
                "acc 5 %": 100 * float(score.point.accuracy[24]),
                "err, % of dmax": float(score.point.err_percent),
            }
            for name, score in self.scores.items()
        ]


def run_maps(config: PaperConfig, *, tell: Tell = lambda text: None) -> list[MappedPair]:
    """Match test pairs with the main runs that are finished; nothing is trained.

    The pairs are chosen by the error of LTENet, or of DPC where only that is finished: the one with
    the least, the median and the largest. The last is the failure.

    Raises
    ------
    MissingError
        If no main run is finished, or no test set is there.
    """
    budget = config.budget._replace(train=False)
    found: list[MappedPair] = []
    waiting: list[str] = []
    for what in GENERATED:
        benchmark = SETTINGS[what].benchmark
        made = {
            name: trained(recipe(what), 0, budget)
            for name, recipe in (("LTENet", ltenet), ("DPC", dpc))
        }
        waiting += [str(one) for one in made.values() if not isinstance(one, Trained)]
        ready = {name: one for name, one in made.items() if isinstance(one, Trained)}
        if not ready:
            tell(f"{benchmark}: no maps, no main run is finished")
            continue
        try:
            open_benchmark(benchmark, config.data)
        except MissingError as error:
            waiting.append(str(error))
            tell(f"{benchmark}: no maps: {error}")
            continue
        found += _of_setting(what, ready, config)
    if not found:
        raise MissingError(
            f"got nothing to draw maps with ({'; '.join(waiting)}), expected a finished main run "
            "and its test set; try python -m tools.train_queue --only 'paper-*'"
        )
    return found


def _of_setting(what: str, ready: dict[str, Trained], config: PaperConfig) -> list[MappedPair]:
    """Examine pairs of one test set, and keep three of them with the maps of all methods."""
    seed = config.seeds[0]
    runs: dict[str, BenchRun] = {}
    for name, made in ready.items():
        bench = BenchConfig(
            benchmark=SETTINGS[what].benchmark,
            data=config.data,
            method="embedding",
            model=str(made.weights),
            sampling="shared",
            pairs=min(EXAMINED, config.pairs or EXAMINED),
            seeds=(seed,),
            cycle=False,
        )
        runs[name] = run_bench(bench, cache=config.cache, workers=config.workers)
    scores = {name: {score.pair: score for score in run.scores} for name, run in runs.items()}
    judge = next(iter(runs.values()))
    ranked = sorted(judge.scores, key=lambda score: score.point.err_percent)
    places = dict(zip(_PICKED, (0, len(ranked) // 2, len(ranked) - 1), strict=True))
    chosen = {place: picked for picked, place in reversed(places.items())}  # each pair once
    mapped = []
    for place, picked in sorted(chosen.items()):
        job = Job(ranked[place].pair, seed)
        maps: dict[str, IntArray] = {}
        for name, run in runs.items():
            predictor = Predictor(
                run.config, PredictionCache(config.cache), (), run.record, run.options
            )
            drawn, source, target = predictor.shapes_of(job)
            maps[name] = predictor.predicted(source, target).map.indices
        own = {name: by_pair[job.pair] for name, by_pair in scores.items()}
        mapped.append(MappedPair(picked, what, judge.config.benchmark, drawn, maps, own))
    return mapped


def draw_maps(pairs: list[MappedPair]) -> Image:
    """One row a pair: target, the source as it should be coloured, and as each map colours it."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair.maps))
    tiles: list[Image] = []
    captions: list[str] = []
    for pair in pairs:
        drawn = pair.drawn
        colors = position_colors(drawn.target, drawn.target)  # (M, 3)
        shown: dict[str, tuple[FloatArray, NDArray[np.uint8] | None]] = {
            f"{pair.benchmark}, {pair.picked}": (drawn.target, colors),
            "truth": (drawn.source, position_colors(drawn.truth, drawn.target)),
        }
        for name in names:
            if name not in pair.maps:
                shown[f"{name}: not trained"] = (drawn.source, None)
                continue
            error = pair.scores[name].point.err_percent
            shown[f"{name}: {error:.1f}%"] = (drawn.source, colors[pair.maps[name]])
        for caption, (points, own) in shown.items():
            tiles.append(render(points, colors=own, size=(_TILE, _TILE), yaw=20.0, pitch=8.0))
            captions.append(caption)
    return contact_sheet(tiles, columns=2 + len(names), captions=captions)
