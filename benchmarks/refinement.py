"""How much refinement gains on generated pairs; five tables.

    python -m benchmarks.refinement --table methods --json

- ``methods``: each method from the features of the weights, with independent samples (each shape
  sampled separately, by vertex or by area at random) and with shared ones (the same vertices).
- ``agreement``: the deformations of `coherent` one by one, and their consensus.
- ``repair``: each method that needs no features, from a known map with defects: every third match
  random, every match off by about 0.05, or the upper part of the source unmatched.
- ``soft``: where the mean of the ten nearest features lies, for several kinds of weights.
- ``same-points``: how often `coherent` takes a pair for the same points, for every kind of sample
  and noise, in units of which the radius of a body is 0.5.

Errors are means in % of the target's largest distance, with the share of points within 1 % and 5 %
of it; seconds are processor time per pair without the embedding. Pairs come from the validation
split of the generator: bodies that no weights have seen. No real shape is used.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.bodies.body_pairs import What
from ltenet.data.augmentation import Augmentation
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.geometry.diameter import largest_distance
from ltenet.matching.refine import refine
from ltenet.method.model import LTENet
from ltenet.method.neighbors import TopK
from ltenet.method.transforms import TransformConfig, neighborhoods
from ltenet.metrics import accuracy, distances_to_truth
from ltenet.refinement.bending import Bender
from ltenet.refinement.coherent import CONFIG, STIFFNESSES
from ltenet.refinement.consensus import geometric_median, vote_back, vote_forth
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.methods import REFINEMENTS, refine_pair
from ltenet.refinement.options import Method
from ltenet.refinement.pair import Pair
from ltenet.refinement.soft_partners import by_similarity, weighted_mean

Sampling = Literal["independent", "shared"]
By = Literal["vertex", "area", "mixed"]
ERRORS = ("err_percent", "acc_1", "acc_5")
#: How pairs are drawn in the comparison of methods.
PROTOCOLS: tuple[tuple[Sampling, By], ...] = (("independent", "mixed"), ("shared", "vertex"))
#: Noise in the test for the same points; neighbours of 1024 points are about 0.03 apart.
NOISES = (0.0, 0.005, 0.01)


def draw(
    options: argparse.Namespace, sampling: Sampling, by: By, *, noise: float = 0.0
) -> list[TrainingPair]:
    """Draw the pairs of one kind."""
    config = PairConfig(
        what=cast(What, options.what),
        sampling=sampling,
        by=by,
        frame="body",  # upright, as matching leaves them
        points=(options.points, options.points),
        augmentation=Augmentation(yaw=20.0, noise=noise),
    )
    stream = TrainingPairs(config, options.seed, "validation")
    return [stream.draw(index) for index in range(options.pairs)]


def embed(model: LTENet, pair: TrainingPair) -> Pair:
    """Embed a normalised pair."""
    source, target = torch.from_numpy(pair.source), torch.from_numpy(pair.target)
    features = features_of(model, pair)
    return Pair(EmbeddedShape(source, features[0]), EmbeddedShape(target, features[1]))


def features_of(model: LTENet, pair: TrainingPair) -> tuple[Tensor, Tensor]:
    """(N, D) and (M, D) features as the network gives them, of any length."""
    source, target = torch.from_numpy(pair.source), torch.from_numpy(pair.target)
    with torch.no_grad():
        return model.encoder(source[None])[0], model.encoder(target[None])[0]


def compare(model: LTENet, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of every method under both protocols."""
    rows: dict[str, list[list[float]]] = {}
    for sampling, by in PROTOCOLS:
        for pair in draw(options, sampling, by):
            for method in options.methods:
                embedded = embed(model, pair)  # anew: no method profits from another
                start = time.process_time()
                result = refine_pair(embedded, method)
                seconds = time.process_time() - start
                rows.setdefault(f"{sampling}: {method}", []).append(
                    [*scored(result.positions.numpy(), pair), float(result.accepted), seconds]
                )
    names = (*ERRORS, "accepted", "seconds")
    return {name: mean_of(names, values) for name, values in rows.items()}


def agreement(model: LTENet, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of each deformation and of their consensus, on independent samples."""
    rows: dict[str, list[list[float]]] = {}
    for pair in draw(options, *PROTOCOLS[0]):
        embedded = embed(model, pair)
        forth, back = Bender(embedded, CONFIG), Bender(embedded.reversed(), CONFIG)
        maps = {}
        for stiffness in STIFFNESSES:
            maps[f"source bent, stiffness {stiffness:g}"] = vote_forth(forth, stiffness)
            maps[f"target bent, stiffness {stiffness:g}"] = vote_back(back, stiffness)
        finite = {name: vote for name, vote in maps.items() if vote is not None}
        places = {name: vote.places for name, vote in finite.items()}
        places["least cost"] = min(finite.values(), key=lambda vote: vote.cost).places
        places["agreement"] = geometric_median(list(finite.values()))
        for name, found in places.items():
            rows.setdefault(name, []).append(scored(found.numpy(), pair))
    return {name: mean_of(ERRORS, values) for name, values in rows.items()}


def recognise(model: LTENet, options: argparse.Namespace) -> dict[str, Any]:
    """Pairs taken for the same points, out of `pairs` of each kind."""
    figures = {}
    bys: tuple[By, ...] = ("vertex", "area")
    samplings: tuple[Sampling, ...] = ("shared", "independent")
    for sampling, by, noise in product(samplings, bys, NOISES):
        pairs = draw(options, sampling, by, noise=noise)
        taken = [refine_pair(embed(model, pair), "coherent").same_points for pair in pairs]
        figures[f"{sampling}, {by}, noise {noise:g}"] = {"taken": float(sum(taken))}
    return figures


def soften(model: LTENet, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of the kinds of weights, on independent samples."""
    kinds = {
        "nearest": None,
        "lle, the paper's": TransformConfig(),
        "lle, unit features, relative gamma 0.1": TransformConfig(
            gamma=0.1, relative=True, normalized=True
        ),
        **{f"softmax / {t:g}": t for t in (0.05, 0.02, 0.01)},
    }
    rows: dict[str, list[list[float]]] = {name: [] for name in kinds}
    for pair in draw(options, *PROTOCOLS[0]):
        embedded, features = embed(model, pair), features_of(model, pair)
        nearest = embedded.nearest(10)  # (N, 10)
        for name, kind in kinds.items():
            if isinstance(kind, TransformConfig):
                found = neighborhoods(features[0][None], features[1][None], kind)
                soft = TopK(found.indices[0], found.weights[0])
            elif kind is None:
                soft = TopK(nearest.indices[:, :1], torch.ones_like(nearest.scores[:, :1]))
            else:
                soft = by_similarity(nearest, kind)
            positions = weighted_mean(embedded.target.points, soft)  # (N, 3)
            rows[name].append(scored(positions.numpy(), pair))
    return {name: mean_of(ERRORS, values) for name, values in rows.items()}


def repair(model: LTENet, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of maps with defects, before and after; the model is not used."""
    methods: tuple[Method, ...] = ("coherent", "mutual", "ot", "spectral")
    rows: dict[str, list[list[float]]] = {}
    for number, pair in enumerate(draw(options, "independent", "area")):
        rng = np.random.default_rng([options.seed, number])
        tree = KDTree(pair.target)
        best = tree.query(pair.source_truth)[1]  # (N,)
        lost = rng.random(len(best)) < 1 / 3  # (N,)
        random = np.where(lost, rng.integers(len(pair.target), size=len(best)), best)  # (N,)
        off = tree.query(pair.source_truth + rng.normal(0, 0.05, pair.source_truth.shape))[1]
        unmatched = np.where(pair.source[:, 1] > 0.4, -1, best)  # (N,)
        maps = {"none": best, "random": random, "off": off, "unmatched": unmatched}
        for defect, given in maps.items():
            known = given >= 0  # (N,); unmatched points are not scored
            rows.setdefault(f"{defect}: before", []).append(
                scored(pair.target[given], pair, rows=known)
            )
            for method in methods:
                refined = refine(given, pair.source, pair.target, how=method)
                rows.setdefault(f"{defect}: {method}", []).append(
                    scored(refined.positions(), pair, rows=refined.matched)
                )
    return {name: mean_of(ERRORS, values) for name, values in rows.items()}


def scored(
    positions: ArrayLike, pair: TrainingPair, *, rows: NDArray[np.bool_] | slice = slice(None)
) -> list[float]:
    """`ERRORS` of (N, 3) positions on the target, over the points at `rows`."""
    diameter = largest_distance(pair.target.astype(np.float64))
    distances = distances_to_truth(np.asarray(positions)[rows], pair.source_truth[rows])  # (n,)
    shares = accuracy(distances, diameter, [0.01, 0.05])  # (2,)
    return [100 * float(distances.mean()) / diameter, *(100 * shares).tolist()]


def mean_of(names: tuple[str, ...], values: list[list[float]]) -> dict[str, float]:
    """Mean over pairs of each figure."""
    return dict(zip(names, np.mean(values, axis=0).tolist(), strict=True))


TABLES: dict[str, Callable[[LTENet, argparse.Namespace], dict[str, Any]]] = {
    "methods": compare,
    "agreement": agreement,
    "repair": repair,
    "soft": soften,
    "same-points": recognise,
}


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--table", default="methods", choices=list(TABLES))
    parser.add_argument("--weights", default="human", help="name or folder of the weights")
    parser.add_argument("--what", default="human", choices=("human", "animal"))
    parser.add_argument("--pairs", type=int, default=12, help="pairs of each kind")
    parser.add_argument("--points", type=int, default=1024, help="points on each shape")
    parser.add_argument("--seed", type=int, default=21, help="of the pairs")
    parser.add_argument(
        "--methods", nargs="+", choices=list(REFINEMENTS), default=list(REFINEMENTS)
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    figures = TABLES[options.table](LTENet.from_pretrained(options.weights), options)
    if options.json:
        json.dump({**vars(options), "figures": figures}, sys.stdout, indent=2)
        print()
        return
    for name, row in figures.items():
        cells = "  ".join(f"{key} {value:.2f}" for key, value in row.items())
        print(f"{name:40s} {cells}")


if __name__ == "__main__":
    main()
