"""Shapes rebuilt from each other and from themselves, over the course of a training.

The run is trained in stages, each of which goes on where the one before ended. The learning rate is
constant, so that the stages together are one run and no stage knows the length of the whole.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.drawing.rendering import Image, contact_sheet, render
from ltenet.errors import MissingError
from ltenet.evaluation.paper.plans import ablation
from ltenet.evaluation.paper.trainings import (
    Budget,
    Unfinished,
    finished,
    recipe_config,
    settled_model,
    train_on,
)
from ltenet.method.divergence import divergence
from ltenet.method.model import LTENet
from ltenet.method.reconstruction import reconstruct_pair
from ltenet.training.config import TrainingConfig
from ltenet.training.runs import RunFolder

#: Shares of the training after which shapes are rebuilt; 0 is the random start.
SHARES = (0.0, 0.125, 0.25, 0.5, 1.0)
#: Columns of the figure: what is drawn, and the paper's sign for it.
COLUMNS = (
    ("source", "X"),
    ("source_cross", "X from Y"),
    ("source_itself", "X from X"),
    ("target", "Y"),
    ("target_cross", "Y from X"),
    ("target_itself", "Y from Y"),
)
_TILE = 200


class Rebuilt(NamedTuple):
    """One pair at one moment of the training.

    Attributes
    ----------
    share
        Of the training that was over.
    steps
        Of the training until then.
    points
        (N, 3) points by the names in `COLUMNS`.
    cross, itself
        Divergences of the paper's objective, summed over both shapes.
    """

    share: float
    steps: int
    points: dict[str, torch.Tensor]
    cross: float
    itself: float

    def as_dict(self) -> dict[str, Any]:
        """Figures without the points."""
        return {
            "training done, %": 100 * self.share,
            "steps": self.steps,
            "divergence, cross": self.cross,
            "divergence, self": self.itself,
        }


def run_reconstruction(budget: Budget) -> list[Rebuilt]:
    """Train in stages, and rebuild one held-back pair after each of them."""
    recipe = ablation("stages", "schedule.kind=constant", decides=False)
    whole = recipe_config(recipe, 0, budget)
    pair = TrainingPairs(whole.pairs, whole.seed, "validation").draw(0)
    moments = []
    for share in SHARES:
        steps, network = _stage(whole, share, budget)
        moments.append(rebuild(network, pair, share, steps))
    return moments


def rebuild(network: LTENet, pair: TrainingPair, share: float, steps: int) -> Rebuilt:
    """Rebuild both shapes of a pair with a network's features."""
    source, target = (torch.from_numpy(points)[None] for points in (pair.source, pair.target))
    with torch.no_grad():
        (first,), (second,) = network.eval()(source, target)  # (N, D), (M, D)
        made = reconstruct_pair(source, target, first[None], second[None], network.config.transform)
        assert made.source_itself is not None
        assert made.target_itself is not None
        measure = network.config.divergence
        cross = divergence(made.source, source, measure) + divergence(made.target, target, measure)
        itself = divergence(made.source_itself, source, measure)
        itself = itself + divergence(made.target_itself, target, measure)
    points = {
        "source": source[0],
        "source_cross": made.source[0],
        "source_itself": made.source_itself[0],
        "target": target[0],
        "target_cross": made.target[0],
        "target_itself": made.target_itself[0],
    }
    return Rebuilt(share, steps, points, float(cross), float(itself))


def draw_rebuilt(moments: list[Rebuilt]) -> Image:
    """One row per moment: source, target and their reconstructions, all at one scale."""
    tiles, captions = [], []
    spans = [made.points[name].numpy() for made in moments[:1] for name in ("source", "target")]
    span = 1.15 * max(float((points.max(0) - points.min(0)).max()) for points in spans)
    for made in moments:
        for name, sign in COLUMNS:
            points = made.points[name].numpy()
            tiles.append(render(points, size=(_TILE, _TILE), yaw=20.0, pitch=8.0, span=span))
            captions.append(f"{sign}, {100 * made.share:g} %")
    return contact_sheet(tiles, columns=len(COLUMNS), captions=captions)


def _stage(whole: TrainingConfig, share: float, budget: Budget) -> tuple[int, LTENet]:
    """Train up to a share of the run; its weights are kept beside those of the other stages.

    BatchNorm statistics are settled at every stage: the first steps would otherwise be judged by
    statistics of weights that are gone.
    """
    run = RunFolder(budget.runs / whole.name)
    length = round(whole.schedule.length * share)
    kept = budget.runs / f"{whole.name}-weights" / f"{length}"
    if not (kept / "config.json").is_file():
        if share == 0:
            torch.manual_seed(whole.seed)
            LTENet(whole.model).save_pretrained(kept, force=True)
        else:
            warmup = min(whole.schedule.warmup, length / 2)
            schedule = replace(whole.schedule, length=float(length), warmup=warmup)
            config = replace(whole, schedule=schedule)
            if finished(run, config) is None:
                if not budget.train:
                    raise MissingError(
                        f"got no finished run for this figure, {Unfinished(whole.name, 0, length)},"
                        " expected its weights; try without --continue, which trains them"
                    )
                train_on(run, config)
            _copy(run.best, kept)
    return length, settled_model(kept, whole, budget.passes)


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in ("model.safetensors", "config.json"):  # the one that is looked for last
        shutil.copyfile(source / name, target / name)
