"""The label-free teacher: refined maps of the current weights, where they are cycle-consistent.

A real deformation is smooth and nearest neighbours are not, so coherent refinement knows more than
the features it starts from. Its maps are trusted where the map there and the map back agree. If
both clouds turn out to hold the same points, as in the papers' protocol (a fact of their geometry,
not of labels), the map is an exact assignment, trusted where neighbours keep their constellation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.method.model import LTENet
from ltenet.refinement.bending import refine_by_bending
from ltenet.refinement.constellations import constellation_misfit, match_same_points
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair
from ltenet.refinement.polishing import polish
from ltenet.training.config import SelfTrainingTerm
from ltenet.training.pair_tensors import PairTensors, embed_pairs

#: Misfit of a constellation up to which an exact match is trusted.
_TRUSTED = 0.5


@torch.no_grad()
def teach(pair: PairTensors, teacher: LTENet, term: SelfTrainingTerm) -> PairTensors:
    """Return the pair with the teacher's maps in place of the truth, known where trusted.

    The truth of the given pair is not used.
    """
    source, target = _features(teacher, pair)  # (N, D), (M, D)
    embedded = Pair(EmbeddedShape(pair.source, source), EmbeddedShape(pair.target, target))
    there = refine_by_bending(embedded, term.refinement)
    lesson = _same_points(pair, embedded, there.deformed)
    if lesson is None:
        back = refine_by_bending(embedded.reversed(), term.refinement)
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


def _same_points(pair: PairTensors, embedded: Pair, deformed: Tensor) -> PairTensors | None:
    """Return the pair with an exact map if its clouds hold the same points, else None."""
    if len(pair.source) != len(pair.target):
        return None
    indices = match_same_points(embedded, deformed)  # (N,)
    if indices is None:
        return None
    indices = polish(embedded, indices)  # (N,)
    images = pair.target[indices]  # (N, 3)
    known = constellation_misfit(embedded.source, images) <= _TRUSTED  # (N,)
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
    """Which points (N,) return to within a distance of where they started.

    Parameters
    ----------
    points
        (N, 3) of the first shape.
    forth
        (N, 3) where each lies on the other shape.
    other_points
        (M, 3) of the other shape.
    back
        (M, 3) where each of these lies on the first shape; positions in between return like the
        nearest point.
    """
    nearest = torch.cdist(forth, other_points).argmin(dim=1)  # (N,)
    trip = (back[nearest] - points).square().sum(dim=1)  # (N,)
    return trip <= within**2


def _features(teacher: LTENet, pair: PairTensors) -> tuple[Tensor, Tensor]:
    """Embeddings by the running statistics, in training mode too."""
    training = teacher.training
    teacher.eval()
    try:
        (source,), (target,) = embed_pairs(teacher, [pair])
        return source, target
    finally:
        teacher.train(training)
