"""The label-free teacher: refined maps of the present weights, where they agree with themselves.

A real deformation is smooth and nearest neighbours are not, so the coherent refinement knows more
than the features it starts from. What it says is believed where the map there and the map back
agree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.coherence import refine_coherently
from ltenet.model import LTENet
from ltenet.training.config import SelfTrainingTerm
from ltenet.training.pair_tensors import PairTensors


@torch.no_grad()
def teach(pair: PairTensors, teacher: LTENet, term: SelfTrainingTerm) -> PairTensors:
    """Return the pair with the teacher's maps in place of the truth, known where it is believed.

    The truth that the pair came with is not looked at.
    """
    source, target = _features(teacher, pair)  # (N, D), (M, D)
    forth = refine_coherently(pair.source, pair.target, source, target, term.refinement).positions
    back = refine_coherently(pair.target, pair.source, target, source, term.refinement).positions
    source_known = returns(pair.source, forth, pair.target, back, within=term.keep)  # (N,)
    target_known = returns(pair.target, back, pair.source, forth, within=term.keep)  # (M,)
    if min(source_known.float().mean(), target_known.float().mean()) < term.least:
        source_known, target_known = source_known & False, target_known & False
    return pair._replace(
        source_truth=forth,  # (N, 3)
        target_truth=back,  # (M, 3)
        source_known=source_known,
        target_known=target_known,
    )


def returns(
    points: Tensor, forth: Tensor, other_points: Tensor, back: Tensor, *, within: float
) -> Tensor:
    """Which points (N,) come back to within a distance of where they started.

    Parameters
    ----------
    points
        (N, 3) where they started.
    forth
        (N, 3) where each lies on the other shape.
    other_points
        (M, 3) points of the other shape.
    back
        (M, 3) where each of these lies on the first shape; the way back from between them is that
        of the nearest.
    """
    nearest = torch.cdist(forth, other_points).argmin(dim=1)  # (N,)
    trip = (back[nearest] - points).square().sum(dim=1)  # (N,)
    return trip <= within**2


def _features(teacher: LTENet, pair: PairTensors) -> tuple[Tensor, Tensor]:
    """Embeddings by the running statistics, whatever mode the weights are in."""
    training = teacher.training
    teacher.eval()
    try:
        source, target = teacher.encoder([pair.source, pair.target])
        return source, target
    finally:
        teacher.train(training)
