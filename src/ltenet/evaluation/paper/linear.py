"""The optimal linear map between two embeddings, found from the truth: an oracle, not a method.

The paper's ``A = (F^+ P G)^T`` is the least-squares solution of ``F A^T = P G`` for features F of
the source and G of the target, P being the true correspondence. Points are then matched by the
cosine between ``F A^T`` and G.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ltenet.correspondence import Correspondence
from ltenet.data.pairs import BenchmarkPair, benchmark_pair
from ltenet.evaluation.bench.benchmarks import open_benchmark, remark
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.provenance import method_record
from ltenet.evaluation.bench.run import BenchRun, chosen_pairs
from ltenet.evaluation.bench.scoring import score_pair
from ltenet.evaluation.paper.plan import LinearMap
from ltenet.method.model import LTENet
from ltenet.method.neighbors import cosine_topk
from ltenet.refinement.linear import fit_linear

#: Ridge of the map that is drawn to the identity, relative to the features' covariance.
RIDGE = 0.1


def run_linear(config: BenchConfig, kind: LinearMap) -> BenchRun:
    """Score the oracle on shared samples, where every true partner was drawn.

    Parameters
    ----------
    config
        Benchmark, weights (`config.model`), pairs and seeds.
    kind
        Which points the map is fitted to, and whether it is drawn to the identity; with a half of
        them, the other half is scored.
    """
    shapes = open_benchmark(config.benchmark, config.data)
    assert config.model is not None
    network = LTENet.from_pretrained(config.model)
    chosen = chosen_pairs(shapes, config.pairs)
    scores = []
    for seed in config.seeds:
        for pair in chosen:
            drawn = benchmark_pair(shapes, pair, points=config.points, seed=seed)
            tested, indices = linear_match(network, drawn, kind, seed=seed)
            found = Correspondence(indices=indices, target_size=len(drawn.target))
            scores.append(
                score_pair(shapes, tested, found, None, seed=seed, pair=pair, seconds=0.0)
            )
    options = {"model": config.model, "linear": kind}
    record = method_record("embedding", __name__, options)
    return BenchRun(config, options, record, tuple(scores), remark(shapes, len(chosen)))


def linear_match(
    network: LTENet, drawn: BenchmarkPair, kind: LinearMap, *, seed: int = 0
) -> tuple[BenchmarkPair, np.ndarray]:
    """Fit the map and match with it.

    Returns
    -------
    tuple
        The pair, the truth of fitted points taken out if they do not count, and (N,) target points.
    """
    source, target = network.embed(drawn.source), network.embed(drawn.target)  # (N, D), (M, D)
    fitted = np.ones(len(drawn.source), dtype=bool)  # (N,)
    if kind != "all":
        rows = np.random.default_rng([seed, len(fitted)]).permutation(len(fitted))
        fitted[rows[: len(rows) // 2]] = False
    rows_of_truth = torch.from_numpy(drawn.partner[fitted])  # (n,)
    chosen = torch.from_numpy(np.flatnonzero(fitted))  # (n,)
    matrix = optimal_map(source[chosen], target[rows_of_truth], kind)  # (D, D)
    indices = cosine_topk(source @ matrix.T, target, 1).indices[:, 0].numpy()  # (N,)
    if kind == "all":
        return drawn, indices
    truth = np.where(fitted[:, None], np.nan, drawn.truth)  # (N, 3)
    return replace(drawn, truth=truth), indices


def optimal_map(source: Tensor, target: Tensor, kind: LinearMap) -> Tensor:
    """Linear map (D, D) of (n, D) features onto (n, D)."""
    if kind == "half-ridge":
        return fit_linear(source, target, ridge=RIDGE)
    # Solved in double precision, but directions that single precision cannot tell from rounding are
    # left out, as its pseudo-inverse does: the features are far from full rank.
    least = max(source.shape) * torch.finfo(torch.float32).eps
    solution = torch.linalg.lstsq(
        source.double(), target.double(), rcond=least, driver="gelsy"
    ).solution  # (D, D)
    return solution.T.to(source.dtype)  # type: ignore[no-any-return]
