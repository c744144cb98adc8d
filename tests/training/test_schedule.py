from __future__ import annotations

import pytest
import torch

from ltenet.method.model import LTENet
from ltenet.training.average import WeightAverage
from ltenet.training.schedule import ScheduleConfig
from ltenet.training.settings import load_config


def test_cosine_with_warmup_has_known_values() -> None:
    schedule = ScheduleConfig(length=110, warmup=10, final=0.2)
    assert schedule.rate(0) == pytest.approx(0.1)
    assert schedule.rate(4) == pytest.approx(0.5)
    assert schedule.rate(10) == pytest.approx(1.0)
    assert schedule.rate(60) == pytest.approx(0.6)
    assert schedule.rate(110) == schedule.rate(500) == pytest.approx(0.2)


def test_multistep_and_constant() -> None:
    steps = ScheduleConfig(kind="multistep", length=10, warmup=0, milestones=(6, 9))
    rates = [steps.rate(p) for p in (0, 5.9, 6, 8, 9)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    constant = ScheduleConfig(kind="constant", length=10, warmup=0)
    assert constant.rate(0) == constant.rate(9) == 1.0


@pytest.mark.parametrize(
    ("unit", "expected"), [("steps", 30.0), ("epochs", 30 * 16 / 480), ("minutes", 1.5)]
)
def test_position_in_every_unit(unit: str, expected: float) -> None:
    schedule = ScheduleConfig(unit=unit, length=100, warmup=1, epoch_pairs=480)  # type: ignore[arg-type]
    assert schedule.position(step=30, pairs_per_step=16, seconds=90.0) == expected


def test_a_schedule_stretches_over_minutes() -> None:
    schedule = ScheduleConfig(length=200, warmup=20, kind="cosine")
    minutes = schedule.scaled_to_minutes(10)
    assert (minutes.unit, minutes.length, minutes.warmup) == ("minutes", 10, 1)
    assert minutes.rate(5.5) == pytest.approx(schedule.rate(110))


def test_a_stretched_baseline_keeps_its_course_not_its_tail() -> None:
    """DPC trains for 300 epochs and lowers its rate for good at epoch 9."""
    short = load_config("dpc").schedule.scaled_to("steps", 2500)
    assert (short.unit, short.length, short.milestones) == ("steps", 2500, (1500, 2250))
    assert [short.rate(at) for at in (0, 1499)] == [1, 1]
    assert [short.rate(at) for at in (1500, 2499)] == pytest.approx([0.1, 0.01])


def test_the_average_follows_its_formula() -> None:
    model = LTENet(load_config("tiny").model)
    average = WeightAverage(model, 0.5)
    weight = model.encoder.head.weight
    for step in (1, 2, 30):
        before = average.model.encoder.head.weight.clone()
        with torch.no_grad():
            weight.add_(1.0)
        average.update(model, step)
        decay = min(0.5, step / (step + 9))
        expected = decay * before + (1 - decay) * weight
        torch.testing.assert_close(average.model.encoder.head.weight.data, expected.data)
    assert not average.model.training
    assert not any(p.requires_grad for p in average.model.parameters())


def test_statistics_are_averaged_and_counters_copied() -> None:
    model = LTENet(load_config("tiny").model)
    average = WeightAverage(model, 0.5)
    norm = model.encoder.norm
    assert norm.running_mean is not None
    assert norm.num_batches_tracked is not None
    norm.running_mean.fill_(2.0)
    norm.num_batches_tracked.fill_(7)
    average.update(model, 1000)
    mine = average.model.encoder.norm
    torch.testing.assert_close(mine.running_mean, torch.full_like(norm.running_mean, 1.0))
    assert int(mine.num_batches_tracked) == 7  # type: ignore[arg-type]


def test_without_decay_the_average_is_the_model() -> None:
    model = LTENet(load_config("tiny").model)
    average = WeightAverage(model, 0.0)
    average.update(model, 1)
    assert average.model is model
