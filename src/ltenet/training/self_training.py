"""The label-free teacher: refined maps of the present weights, where they agree with themselves.

A real deformation is smooth and nearest neighbours are not, so the coherent refinement knows more
than the features it starts from. What it says is believed where the map there and the map back
agree. Where both clouds turn out to hold the same points, as in the papers' protocol (told from how
they lie, not from labels), it says exactly which is which, and is believed where neighbours keep
their constellation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.assignment import Likeness, constellation_misfit, matched_same_points
from ltenet.coherence import refine_coherently
from ltenet.model import LTENet
from ltenet.polishing import polish
from ltenet.training.config import SelfTrainingTerm
from ltenet.training.pair_tensors import PairTensors

#: Misfit of a constellation up to which an exact match is believed.
_BELIEVED = 0.5


@torch.no_grad()
def teach(pair: PairTensors, teacher: LTENet, term: SelfTrainingTerm) -> PairTensors:
    """Return the pair with the teacher's maps in place of the truth, known where it is believed.

    The truth that the pair came with is not looked at.
    """
    source, target = _features(teacher, pair)  # (N, D), (M, D)
    there = refine_coherently(pair.source, pair.target, source, target, term.refinement)
    lesson = _same_points(pair, Likeness(source, target), there.deformed)
    if lesson is None:
        back = refine_coherently(pair.target, pair.source, target, source, term.refinement)
        lesson = _there_and_back(pair, there.positions, back.positions, within=term.keep)
    known = lesson.source_known, lesson.target_known  # (N,), (M,)
    if min(side.float().mean() for side in known) < term.least:
        nothing = [torch.zeros_like(side) for side in known]
        lesson = lesson._replace(source_known=nothing[0], target_known=nothing[1])
    return lesson


def _there_and_back(
    pair: PairTensors, forth: Tensor, back: Tensor, *, within: float
) -> PairTensors:
    """Return the pair with maps (N, 3) and (M, 3), known where a round trip ends near its start."""
    return pair._replace(
        source_truth=forth,
        target_truth=back,
        source_known=returns(pair.source, forth, pair.target, back, within=within),
        target_known=returns(pair.target, back, pair.source, forth, within=within),
    )


def _same_points(pair: PairTensors, likeness: Likeness, deformed: Tensor) -> PairTensors | None:
    """Return the pair with an exact map, if its clouds hold the same points; else None."""
    if len(pair.source) != len(pair.target):
        return None
    indices = matched_same_points(likeness, pair.source, pair.target, deformed)  # (N,)
    if indices is None:
        return None
    indices = polish(likeness, pair.source, pair.target, indices)  # (N,)
    images = pair.target[indices]  # (N, 3)
    known = constellation_misfit(pair.source, images) <= _BELIEVED  # (N,)
    target_truth, target_known = torch.zeros_like(pair.target), torch.zeros_like(known)
    target_truth[indices], target_known[indices] = pair.source, known
    return pair._replace(
        source_truth=images,  # (N, 3)
        target_truth=target_truth,  # (N, 3)
        source_known=known,  # (N,)
        target_known=target_known,  # (N,)
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
