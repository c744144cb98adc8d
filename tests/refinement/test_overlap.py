"""What two shapes have in common, on a creature whose features are known."""

from __future__ import annotations

import torch
from creature import body, embedded, pair_of

from ltenet.refinement.judge import map_scores
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent
from ltenet.refinement.pair import Pair


def halves(share: float) -> tuple[Pair, torch.Tensor]:
    """The part of a creature below some height onto all of it, and which target points it has."""
    source, target = body(700, 1), body(800, 2)
    height = target[:, 1].quantile(share)
    source = source[source[:, 1] < height]
    features = (embedded(points, noise=0.1, seed=k) for k, points in enumerate((source, target)))
    return pair_of(source, target, *features), target[:, 1] < height


def test_whole_shapes_have_everything_in_common() -> None:
    pair, _ = halves(1.0)
    assert pair.overlap is None


def test_the_overlap_of_a_part_is_found_from_both_sides() -> None:
    pair, common = halves(0.5)
    overlap = pair.overlap
    assert overlap is not None
    assert float(overlap.source.mean()) > 0.95
    found = overlap.target > 0.5
    both, either = (found & common).sum(), (found | common).sum()
    assert both / either > 0.8
    back = pair.reversed().overlap
    assert back is not None
    assert torch.equal(back.source, overlap.target)
    assert torch.equal(back.target, overlap.source)
    # The same if the reversed pair is asked first.
    again = halves(0.5)[0].reversed().overlap
    assert again is not None
    assert torch.equal(again.source, overlap.target)


def test_a_network_that_has_learned_to_tell_is_believed() -> None:
    pair, common = halves(0.5)
    sure = torch.full((len(pair.source),), 6.0), torch.where(common, 6.0, -6.0)
    told = Pair(pair.source, pair.target, odds=sure)
    overlap = told.overlap
    assert overlap is not None
    found = overlap.target > 0.5
    assert (found & common).sum() / (found | common).sum() > 0.9
    back = told.reversed()
    assert back.odds is not None
    assert torch.equal(back.odds[0], sure[1])
    whole = Pair(pair.source, pair.target, odds=(sure[0], torch.full_like(sure[1], 6.0)))
    assert whole.overlap is None
    assert told.as_wholes().overlap is None


def test_a_part_misses_nothing_of_what_it_has() -> None:
    pair, common = halves(0.5)
    exact = torch.cdist(pair.source.points, pair.target.points).argmin(dim=1)
    assert map_scores(pair, exact).missed < 0.15  # of the whole target it is a half
    low = pair.target.points[:, 1] < pair.target.points[common, 1].median()
    lower = torch.where(low[exact], exact, torch.nonzero(low)[0, 0])
    assert map_scores(pair, lower).missed > 0.3


def test_a_part_is_not_stretched_over_the_whole() -> None:
    pair, _ = halves(0.5)
    found = refine_pair(pair, Coherent(one_to_one=False))
    errors = (found.positions - pair.source.points).norm(dim=1)  # both stand in one place
    assert float(errors.mean()) < 0.03
    assert float((found.positions[:, 1] - pair.source.points[:, 1]).max()) < 0.2


def test_parts_may_be_taken_for_whole_shapes() -> None:
    pair, _ = halves(0.5)
    wholes = pair.as_wholes()
    assert wholes.overlap is None
    assert wholes.reversed().overlap is None
    assert pair.overlap is not None
    assert torch.equal(wholes.best.indices, pair.best.indices)
    # The surface that a part lacks counts as missed then.
    nearest = pair.best.indices
    assert map_scores(wholes, nearest).missed > map_scores(pair, nearest).missed + 0.2
