"""Training on sets on disk: registered, unregistered, selected, split."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ltenet import io
from ltenet.cli import main
from ltenet.data.augmentation import Augmentation
from ltenet.data.generated_set import GeneratedSet, write_generated
from ltenet.data.pair_config import PairConfig
from ltenet.data.readers import set_folder, set_name
from ltenet.data.set_pairs import SetPairs, open_pairs
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.shape import Shape

KEPT = PairConfig(
    what="folder", sampling="shared", by="vertex", points=(80, 80), radius=None, center=False
)


class Moved(ShapeSet):
    """Shape n is one cloud moved by n along x, so that each shape and partner is known by sight."""

    def __init__(self, count: int, *, known: bool = True) -> None:
        self.name = "moved"
        self.names = tuple(f"shape{n}" for n in range(count))
        self.categories = tuple("even" if n % 2 == 0 else "odd" for n in range(count))
        self.pairs = np.zeros((0, 2), np.int64)
        self.known = known
        self.points = np.random.default_rng(0).uniform(0.0, 0.5, (200, 3))

    def shape(self, index: int) -> Shape:
        faces = np.arange(198).reshape(-1, 3)
        return Shape(self.points + np.array([index, 0, 0]), faces=faces, name=self.names[index])

    def truth(self, source: int, target: int) -> GroundTruth | None:
        return identity_truth(200) if self.known else None


def offsets(points: np.ndarray) -> set[int]:
    return set(np.floor(points[:, 0]).astype(int).tolist())


@pytest.mark.parametrize("sampling", ["shared", "independent"])
@pytest.mark.parametrize("by", ["vertex", "area"])
def test_truth_of_registered_shapes(sampling: str, by: str) -> None:
    config = replace(KEPT, sampling=sampling, by=by)  # type: ignore[arg-type]
    pairs = SetPairs(config, shapes=Moved(4))
    for index in range(6):
        pair = pairs.draw(index)
        (source,), (target,) = offsets(pair.source), offsets(pair.target)
        assert source != target
        assert (source - target) % 2 == 0  # one category
        shift = np.array([target - source, 0, 0])
        np.testing.assert_allclose(pair.source_truth, pair.source + shift, atol=1e-6)
        np.testing.assert_allclose(pair.target_truth, pair.target - shift, atol=1e-6)
        assert pair.source_known.all()
        assert pair.shared == (sampling == "shared")
        ours, theirs = ({tuple(p) for p in x.round(4)} for x in (pair.source_truth, pair.target))
        assert (ours == theirs) == pair.shared
        assert not np.array_equal(pair.source_truth, pair.target)  # shuffled
        again = pairs.draw(index)
        assert np.array_equal(again.source, pair.source)


def test_unregistered_shapes_have_no_labels() -> None:
    pair = SetPairs(KEPT, shapes=Moved(4, known=False)).draw(0)
    assert not pair.source_known.any()
    assert not pair.target_known.any()
    assert not pair.shared
    assert len(pair.source) == 80


def test_the_first_shapes_and_a_tenth_held_back() -> None:
    config = replace(KEPT, pool=40)
    shapes = Moved(100)
    trained, held_back = (SetPairs(config, 0, split, shapes=shapes) for split in SPLITS)
    assert trained.members.tolist() == list(range(36))
    assert held_back.members.tolist() == [36, 37, 38, 39]
    few = [SetPairs(KEPT, 0, split, shapes=Moved(5)) for split in SPLITS]
    assert few[0].members.tolist() == few[1].members.tolist() == list(range(5))
    assert not np.array_equal(few[0].draw(0).source, few[1].draw(0).source)


SPLITS = ("train", "validation")


def test_categories_mix_on_request() -> None:
    pairs = SetPairs(replace(KEPT, same_category=False), shapes=Moved(4))
    parities = {
        (min(offsets(pair.source)) - min(offsets(pair.target))) % 2
        for pair in map(pairs.draw, range(12))
    }
    assert parities == {0, 1}


def test_truth_moves_with_its_shape() -> None:
    turned = replace(KEPT, center=True, radius=0.5, augmentation=Augmentation(yaw=180, scale=0.2))
    pair = SetPairs(turned, shapes=Moved(4)).draw(3)
    rows = [np.linalg.norm(pair.target - truth, axis=1).argmin() for truth in pair.source_truth]
    np.testing.assert_allclose(pair.target[rows], pair.source_truth, atol=1e-5)
    np.testing.assert_allclose(pair.target_truth[rows], pair.source, atol=1e-5)


def test_generated_bodies_as_before() -> None:
    assert isinstance(open_pairs(PairConfig(what="human")), TrainingPairs)
    assert isinstance(open_pairs(KEPT), SetPairs)


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"no folder for the set 'folder'.*--data DIR"):
        SetPairs(KEPT).draw(0)
    with pytest.raises(InputError, match="expected one of human, animal, thing, surreal"):
        PairConfig(what="fish")
    with pytest.raises(InputError, match="expected 0 or more"):
        SetPairs(KEPT, shapes=Moved(2)).draw(-1)
    for name in ("tosca.npz", "faust.npz"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=r"a folder with faust, tosca.*pairs\.what=faust"):
        set_name(tmp_path)


def test_names_of_folders(tmp_path: Path) -> None:
    for name in ("SURREAL", "FAUST_r", "my-scans"):
        (tmp_path / name).mkdir()
    assert set_name(tmp_path / "SURREAL") == "surreal"
    assert set_name(tmp_path / "FAUST_r") == "faust_r"
    assert set_name(tmp_path / "my-scans") == "folder"
    assert set_folder("surreal", tmp_path) == tmp_path / "SURREAL"


SMALL = (
    "model.encoder.widths=[8, 12]", "model.encoder.neighbors=6", "pairs.points=[64, 64]",
    "optim.batch_size=2", "validation.pairs=2", "schedule.unit=steps", "schedule.length=2",
    "schedule.warmup=1", "threads=1",
)  # fmt: skip


def words(*settings: str) -> list[str]:
    return [word for text in (*SMALL, *settings) for word in ("--set", text)]


@pytest.mark.slow
def test_training_on_a_registered_folder(tmp_path: Path) -> None:
    """Through the command, with a worker that opens the set by itself, and resumed."""
    folder = tmp_path / "mine"
    write_generated(GeneratedSet("human", 3), folder)
    common = ["--runs", str(tmp_path / "runs"), "--name", "own"]
    assert main(["train", "paper", "--data", str(folder), *common, *words("workers=1")]) == 0
    resumed = ["train", "--resume", "own", "--runs", str(tmp_path / "runs")]
    assert main([*resumed, "--set", "schedule.length=3"]) == 0
    text = (tmp_path / "runs" / "own" / "config.toml").read_text()
    assert 'what = "folder"' in text
    assert str(folder) in text


def test_training_without_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for number in range(2):
        points = np.random.default_rng(number).uniform(size=(100 + number, 3))
        io.save(Shape(points), folder / f"{number}.ply")
    common = ["--runs", str(tmp_path / "runs"), "--data", str(folder), "--name", "own"]
    assert main(["train", "paper", *common, *words("workers=0")]) == 0
    assert main(["train", "tiny", *common[:-1], "other", *words("known.weight=1")]) == 2
    assert "whose correspondences are not known" in capsys.readouterr().err
    assert main(["train", "paper", "--data", str(tmp_path / "nowhere")]) == 4


def test_the_open_set_is_not_sent_to_workers() -> None:
    pairs = SetPairs(replace(KEPT, data="somewhere"), shapes=Moved(2))
    assert "shapes" not in pickle.loads(pickle.dumps(pairs)).__dict__
