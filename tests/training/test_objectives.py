from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.method.losses import objective
from ltenet.method.matchability import Matchability
from ltenet.method.model import LTENet
from ltenet.training.config import KnownTerm, ReconstructionTerm
from ltenet.training.objectives import known_loss, reconstruction_loss, step_loss
from ltenet.training.pair_tensors import PairTensors
from ltenet.training.settings import load_config
from ltenet.training.soft_matching import soft_matching, soft_targets
from ltenet.training.trainee import EmbeddingTrainee


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def pair(n: int = 30, m: int = 40, *, seed: int = 0) -> PairTensors:
    """Unequal sizes, and on either side some points that are not known."""
    known, other_known = torch.ones(n, dtype=torch.bool), torch.ones(m, dtype=torch.bool)
    known[3:6], other_known[:9] = False, False
    return PairTensors(
        random(n, 3, seed=seed),
        random(m, 3, seed=seed + 1),
        random(n, 3, seed=seed + 2),
        random(m, 3, seed=seed + 3),
        known,
        other_known,
    )


def targets(one: PairTensors, width: float = 0.5) -> tuple[Tensor, Tensor]:
    return (
        soft_targets(one.source_truth, one.source_known, one.target, width=width),
        soft_targets(one.target_truth, one.target_known, one.source, width=width),
    )


def test_targets_are_gaussians_over_the_drawn_points() -> None:
    points = torch.tensor([[0.0, 0, 0], [0.1, 0, 0], [5, 0, 0]], dtype=torch.float64)
    truth = torch.tensor([[0.0, 0, 0], [0.05, 0, 0], [9, 0, 0]], dtype=torch.float64)
    known = torch.tensor([True, True, False])
    rows = soft_targets(truth, known, points, width=0.1)
    ratio = torch.exp(torch.tensor(-0.5)).item()
    expected = [[1 / (1 + ratio), ratio / (1 + ratio), 0], [0.5, 0.5, 0], [0, 0, 0]]
    torch.testing.assert_close(rows, torch.tensor(expected, dtype=torch.float64))


def test_a_truth_far_from_every_drawn_point_still_has_a_target() -> None:
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0]])
    rows = soft_targets(torch.tensor([[50.0, 0, 0]]), torch.tensor([True]), points, width=0.01)
    torch.testing.assert_close(rows, torch.tensor([[0.0, 1.0]]))


def test_soft_matching_is_the_plain_cross_entropy() -> None:
    one = pair()
    source, target = random(30, 8, seed=7), random(40, 8, seed=8)
    forth, back = targets(one)
    logits = F.normalize(source, dim=1) @ F.normalize(target, dim=1).T / 0.1
    expected = F.cross_entropy(logits[one.source_known], forth[one.source_known])
    expected = expected + F.cross_entropy(logits.T[one.target_known], back[one.target_known])
    actual = soft_matching(source, target, forth, back, temperature=0.1)
    torch.testing.assert_close(actual, expected)


def test_soft_matching_has_the_gradient_of_its_value() -> None:
    one = pair(9, 7)
    forth, back = targets(one)
    features = [random(9, 4, seed=7).requires_grad_(), random(7, 4, seed=8).requires_grad_()]
    assert torch.autograd.gradcheck(
        lambda a, b: soft_matching(a, b, forth, back, temperature=0.3), features
    )


def test_points_that_are_not_known_change_nothing() -> None:
    one = pair()
    nowhere = one._replace(
        source_truth=torch.where(one.source_known[:, None], one.source_truth, 99.0),
        target_truth=torch.where(one.target_known[:, None], one.target_truth, -99.0),
    )
    features = [random(30, 8, seed=7)], [random(40, 8, seed=8)]
    term = KnownTerm(weight=1, width=0.5)
    losses = [known_loss([p], *features, term) for p in (one, nowhere)]
    assert losses[0] == losses[1] > 0


def test_nothing_known_costs_nothing() -> None:
    one = pair()
    one = one._replace(
        source_known=torch.zeros_like(one.source_known),
        target_known=torch.zeros_like(one.target_known),
    )
    source, target = random(30, 8, seed=7).requires_grad_(), random(40, 8, seed=8)
    loss = known_loss([one], [source], [target], KnownTerm(weight=1))
    loss.backward()
    assert loss.item() == 0
    assert source.grad is not None
    assert torch.isfinite(source.grad).all()


def test_features_that_know_the_answer_cost_little() -> None:
    points = random(50, 3)
    everywhere = torch.ones(50, dtype=torch.bool)
    one = PairTensors(points, points, points, points, everywhere, everywhere)
    # One axis per point: every point is like itself and unlike all others.
    right = torch.eye(50, dtype=torch.float64)
    wrong = right.roll(1, dims=0)
    term = KnownTerm(weight=1, width=0.01)
    good = known_loss([one], [right], [right], term).item()
    bad = known_loss([one], [wrong], [right], term).item()
    assert good < 1e-3 < 1 < bad


def test_reconstruction_is_the_objective_of_the_paper_for_equal_and_unequal_sizes() -> None:
    model = load_config("tiny").model
    term = ReconstructionTerm(weight=1)
    equal = [pair(30, 40, seed=s) for s in (0, 10)]
    unequal = [pair(30, 40), pair(25, 35, seed=10)]
    for pairs in (equal, unequal):
        source = [random(len(p.source), 8, seed=1) for p in pairs]
        target = [random(len(p.target), 8, seed=2) for p in pairs]
        each = [
            objective(
                p.source[None], p.target[None], s[None], t[None], term.objective,
                transform=model.transform, measure=model.divergence,
            ).total
            for p, s, t in zip(pairs, source, target, strict=True)
        ]  # fmt: skip
        actual = reconstruction_loss(pairs, source, target, term, model)
        torch.testing.assert_close(actual, torch.stack(each).mean())


def test_terms_add_up_with_their_weights() -> None:
    config = load_config(
        "tiny", ["reconstruction.weight=2", "known.weight=3", "model.transform.neighbors=4"]
    )
    one = pair()
    features = [random(30, 8, seed=7)], [random(40, 8, seed=8)]
    loss = step_loss([one], *features, config, progress=0.0, teacher=LTENet(config.model))
    torch.testing.assert_close(loss.total, 2 * loss.reconstruction + 3 * loss.known)
    assert loss.self_training == loss.kept == 0


def test_who_has_a_partner_is_learned_from_the_same_pairs() -> None:
    config = load_config("tiny", ["known.weight=3", "known.matchability=0.5"])
    torch.manual_seed(0)
    told = Matchability(8, 1).double()
    pairs = [pair(), pair(20, 25, seed=40)]
    source = [random(30, 8, seed=7), random(20, 8, seed=9)]
    target = [random(40, 8, seed=8), random(25, 8, seed=10)]
    teacher = LTENet(config.model)
    plain = step_loss(pairs, source, target, config, progress=0.0, teacher=teacher)
    assert plain.matchability == 0
    loss = step_loss(
        pairs, source, target, config, progress=0.0, teacher=teacher, matchability=told
    )
    torch.testing.assert_close(loss.known, plain.known)
    torch.testing.assert_close(loss.total, 3 * (loss.known + 0.5 * loss.matchability))
    losses = []
    for one, ours, theirs in zip(pairs, source, target, strict=True):
        (found,) = told([(one.source, one.target)], [(ours, theirs)])
        for odds, known in ((found.source, one.source_known), (found.target, one.target_known)):
            losses.append(-torch.where(known, odds.sigmoid(), 1 - odds.sigmoid()).log().mean())
    torch.testing.assert_close(loss.matchability, torch.stack(losses).mean())


def test_without_labels_nobody_learns_who_has_a_partner() -> None:
    changes = ("known.weight=0", "reconstruction.weight=1", "model.matchability=1")
    for more, learns in ((changes, False), (("model.matchability=1",), True)):
        trainee = EmbeddingTrainee(load_config("tiny", more))
        assert trainee.model.matchability is not None
        asked = [parameter.requires_grad for parameter in trainee.model.matchability.parameters()]
        assert asked == [learns] * len(asked)
        assert all(parameter.requires_grad for parameter in trainee.model.encoder.parameters())
