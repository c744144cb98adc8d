from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.shape import Shape, shape_hash


def hard(indices: list[int], size: int, **more: Any) -> Correspondence:
    return Correspondence(np.array(indices, np.int64), size, **more)


def line(count: int, **more: Any) -> Shape:
    """Points 0, 1, 2, ... on the x axis."""
    points = np.zeros((count, 3))
    points[:, 0] = np.arange(count)
    return Shape(points=points, **more)


@pytest.fixture
def soft() -> Correspondence:
    """Two points between three; the third point unsure and unmatched, the fourth with nothing."""
    return Correspondence(
        indices=np.array([0, 1, -1, -1]),
        target_size=3,
        scores=np.array([0.9, 0.5, 0.2, 0.0]),
        neighbors=np.array([[0, 1], [1, 2], [2, 0], [0, 0]]),
        weights=np.array([[0.75, 0.25], [0.6, 0.4], [1.0, 0.0], [0.0, 0.0]]),
        details={"model": "human", "options": {"k": 2}},
    )


@st.composite
def soft_maps(draw: st.DrawFn) -> Correspondence:
    count, size, k = (draw(st.integers(1, 8)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.random((count, k)) + 0.01
    matched = rng.random(count) < 0.7
    neighbors = rng.integers(0, size, (count, k))
    return Correspondence(
        indices=np.where(matched, neighbors[:, 0], -1),
        target_size=size,
        scores=rng.random(count) if draw(st.booleans()) else None,
        neighbors=neighbors,
        weights=weights / weights.sum(axis=1, keepdims=True),
    )


def dense(corr: Correspondence) -> np.ndarray:
    """Return (N, M) weights of the matched points."""
    matrix = np.zeros((len(corr), corr.target_size))
    neighbors, weights = corr.soft()
    for i in range(len(corr)):
        for column, weight in zip(neighbors[i], weights[i], strict=True):
            matrix[i, column] += weight * corr.matched[i]
    return matrix


# Values.


def test_pull_mixes_floats_votes_on_labels_and_mixes_colours(soft: Correspondence) -> None:
    pulled = soft.pull(np.array([[10.0, 0], [20, 0], [40, 1]]))
    np.testing.assert_allclose(pulled, [[12.5, 0], [28, 0.4], [np.nan] * 2, [np.nan] * 2])
    assert soft.pull([7, 8, 9]).tolist() == [7, 8, -1, -1]
    assert soft.pull([7, 8, 8], missing=0).tolist() == [7, 8, 0, 0]
    assert soft.pull([True, False, True]).tolist() == [True, False, False, False]
    colors = np.array([[0, 0, 0], [100, 200, 40], [200, 0, 0]], np.uint8)
    expected = [[25, 50, 10], [140, 120, 24], [128] * 3, [128] * 3]
    assert soft.pull(colors).tolist() == expected
    assert soft.pull(np.uint8([7, 200, 9])).tolist() == [7, 200, -1, -1]  # one column: labels


def test_a_vote_is_by_weight_not_by_number() -> None:
    corr = Correspondence(
        np.array([0, 0]),
        3,
        neighbors=np.array([[0, 1, 2], [0, 1, 2]]),
        weights=np.array([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]]),
    )
    assert corr.pull([5, 6, 6]).tolist() == [5, 6]


def test_negative_weights_do_not_ring_in_colours() -> None:
    corr = Correspondence(
        np.array([0]), 2, neighbors=np.array([[0, 1]]), weights=np.array([[1.5, -0.5]])
    )
    assert corr.pull(np.uint8([[200] * 3, [0] * 3])).tolist() == [[200] * 3]
    assert corr.pull([200.0, 0.0]).tolist() == [300.0]


@given(soft_maps())
def test_pull_is_the_product_with_the_weights(corr: Correspondence) -> None:
    values = np.random.default_rng(0).normal(size=(corr.target_size, 2))
    pulled = corr.pull(values)
    np.testing.assert_allclose(pulled[corr.matched], (dense(corr) @ values)[corr.matched])
    assert np.isnan(pulled[~corr.matched]).all()
    labels = np.arange(corr.target_size) % 3
    shares = np.stack([dense(corr)[:, labels == label].sum(axis=1) for label in range(3)], axis=1)
    chosen = corr.pull(labels)
    for i in np.flatnonzero(corr.matched):
        assert shares[i, chosen[i]] == pytest.approx(shares[i].max())


def test_push_goes_the_other_way() -> None:
    corr = hard([2, 0, -1], 4)
    assert corr.push([5, 6, 7]).tolist() == [6, -1, 5, -1]
    np.testing.assert_equal(corr.push([5.0, 6, 7]), [6, np.nan, 5, np.nan])


@pytest.mark.parametrize("values", [[1.0, 2.0], 3.0, ["a", "b", "c"]])
def test_pull_refuses_values_of_something_else(soft: Correspondence, values: Any) -> None:
    with pytest.raises(InputError, match=r"got .*; try"):
        soft.pull(values)


# Inverse.


def test_the_inverse_of_a_permutation_is_the_permutation_back() -> None:
    order = np.random.default_rng(0).permutation(20)
    inverse = hard(order.tolist(), 20).inverse()
    assert inverse.indices.tolist() == np.argsort(order).tolist()
    assert inverse.target_size == 20
    assert inverse.neighbors is None


def test_the_inverse_prefers_scores_then_the_middle_then_the_first() -> None:
    assert hard([0, 0, 0, -1], 2).inverse().indices.tolist() == [0, -1]
    scored = hard([0, 0, 0], 2, scores=[0.2, 0.9, 0.4]).inverse()
    assert scored.indices.tolist() == [1, -1]
    assert scored.scores is not None
    assert scored.scores.tolist() == [0.9, 0.0]
    attached = hard([0, 0, 0], 2, source=line(3)).inverse()
    assert attached.indices.tolist() == [1, -1]
    assert attached.target is not None
    assert len(attached.target) == 3


@given(soft_maps())
def test_the_inverse_holds_the_transposed_weights(corr: Correspondence) -> None:
    trust = np.ones(len(corr)) if corr.scores is None else corr.scores
    expected = dense(corr).T * trust  # (M, N)
    inverse = corr.inverse()
    reached = expected.sum(axis=1) > 0
    assert (inverse.matched == reached).all()
    found = dense(inverse)
    for j in np.flatnonzero(reached):
        kept = found[j] > 0
        # As many as fit, none of them weaker than one that was left out.
        assert kept.sum() == min((expected[j] > 0).sum(), inverse.soft()[0].shape[1])
        assert expected[j][kept].min() >= expected[j][~kept].max(initial=0) - 1e-12
        np.testing.assert_allclose(found[j][kept], expected[j][kept] / expected[j][kept].sum())
        assert expected[j][inverse.indices[j]] == pytest.approx(expected[j].max())


def test_filling_takes_who_lands_nearest_but_not_from_afar() -> None:
    # Targets at 0..10; sources land on 0, 2 and 4 only.
    corr = hard([0, 2, 4], 11, target=line(11), source=line(3))
    inverse = corr.inverse(fill=0.2)  # reaches two units
    assert inverse.matched.tolist() == [True] * 7 + [False] * 4
    assert inverse.indices[[0, 2, 4, 5, 6]].tolist() == [0, 1, 2, 2, 2]
    assert corr.inverse().matched.sum() == 3
    assert hard([-1], 2, target=line(2)).inverse(fill=0.5).indices.tolist() == [-1, -1]
    with pytest.raises(InputError, match="try passing the target"):
        hard([0], 2).inverse(fill=0.1)


def test_filling_a_soft_map_mixes_by_distance() -> None:
    neighbors, weights = np.array([[0, 0], [4, 4]]), np.array([[1.0, 0], [1, 0]])
    corr = Correspondence(np.array([0, 4]), 5, None, neighbors, weights, target=line(5))
    values = corr.push([0.0, 8.0], fill=1.0)
    np.testing.assert_allclose(values, [0, 2, 4, 6, 8])


def test_hashes_change_sides() -> None:
    corr = hard([0], 1, details={"source_hash": "a", "target_hash": "b"})
    inverse = corr.inverse()
    assert inverse.details["source_hash"] == "b"
    assert inverse.details["target_hash"] == "a"
    assert inverse.details["inverted"] is True
    assert inverse.inverse().details["inverted"] is False


# Composition and threshold.


def test_compose_follows_both_maps() -> None:
    first = hard([1, 0, -1, 2], 3, scores=[0.5, 1, 0, 0.4])
    second = hard([3, -1, 0], 4, scores=[0.5, 0.1, 1])
    both = first.compose(second)
    assert both.indices.tolist() == [-1, 3, -1, 0]
    assert both.target_size == 4
    assert both.scores is not None
    np.testing.assert_allclose(both.scores, [0.05, 0.5, 0.0, 0.4])
    assert first.compose(replace(second, scores=None)).scores is not None
    with pytest.raises(InputError, match="try the other order"):
        second.compose(second)


@given(soft_maps(), st.integers(0, 2**32 - 1))
def test_composed_weights_are_the_product(corr: Correspondence, seed: int) -> None:
    rng = np.random.default_rng(seed)
    onward = hard(rng.permutation(corr.target_size).tolist(), corr.target_size)
    both = corr.compose(onward)
    np.testing.assert_allclose(dense(both), dense(corr) @ dense(onward), atol=1e-12)
    back = both.compose(onward.inverse())
    np.testing.assert_allclose(dense(back), dense(corr), atol=1e-12)
    assert (back.indices == corr.indices).all()


def test_compose_warns_if_the_shape_in_the_middle_is_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = hard([0, 1], 2, details={"target_hash": "a", "source_hash": "s"})
    second = hard([0, 1], 2, details={"source_hash": "b", "target_hash": "t"})
    with caplog.at_level(logging.WARNING):
        both = first.compose(second)
    assert "in the middle" in caplog.text
    assert both.details["source_hash"] == "s"
    assert both.details["target_hash"] == "t"


def test_a_lower_threshold_undoes_a_higher_one(soft: Correspondence) -> None:
    assert soft.thresholded(0.6).indices.tolist() == [0, -1, -1, -1]
    assert soft.thresholded(0.6).thresholded(0.4).indices.tolist() == [0, 1, -1, -1]
    # The last one has no neighbours, so nothing can come back.
    assert soft.thresholded(0.0).indices.tolist() == [0, 1, 2, -1]
    with pytest.raises(InputError, match="without scores"):
        hard([0], 1).thresholded(0.5)


def test_weights_may_be_missing_for_unmatched_points_only() -> None:
    neighbors, weights = np.zeros((1, 2), int), np.zeros((1, 2))
    assert len(Correspondence(np.array([-1]), 2, neighbors=neighbors, weights=weights)) == 1
    with pytest.raises(InputError, match="sum to 1"):
        Correspondence(np.array([0]), 2, neighbors=neighbors, weights=weights)


# Files.


def same(first: Correspondence, second: Correspondence) -> bool:
    return first.target_size == second.target_size and all(
        np.array_equal(getattr(first, name), getattr(second, name))
        if getattr(first, name) is not None
        else getattr(second, name) is None
        for name in ("indices", "scores", "neighbors", "weights")
    )


def test_npz_keeps_everything_with_the_same_bytes(soft: Correspondence, tmp_path: Path) -> None:
    whole = soft.attached(line(4), line(3))
    whole.save(tmp_path / "a.npz")
    whole.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = Correspondence.load(tmp_path / "a.npz", source=line(4), target=line(3))
    assert same(loaded, soft)
    assert loaded.source is not None
    assert loaded.details["options"] == {"k": 2}
    assert loaded.details["source_hash"] == shape_hash(line(4))
    assert loaded.details["version"]
    loaded.save(tmp_path / "c.npz")
    assert (tmp_path / "c.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["details"]))["model"] == "human"
    with pytest.raises(UsageError, match="exists"):
        soft.save(tmp_path / "a.npz")
    soft.save(tmp_path / "a.npz", force=True)


@settings(max_examples=25)
@given(soft_maps())
def test_every_format_gives_back_what_it_holds(corr: Correspondence) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".npz", ".csv", ".txt", ".map", ".vts"):
            path = Path(folder) / f"map{suffix}"
            corr.save(path)
            loaded = Correspondence.load(path, target_size=corr.target_size)
            assert (loaded.indices == corr.indices).all()
            if suffix in (".npz", ".csv"):
                assert np.array_equal(loaded.scores, corr.scores)  # type: ignore[arg-type]
            if suffix == ".npz":
                assert same(loaded, corr)


def test_text_formats_count_as_they_say(tmp_path: Path) -> None:
    corr = hard([1, -1], 2, scores=[0.5, 0.25])
    texts = {
        "a.txt": "1\n-1\n",
        "a.map": "2\n0\n",
        "a.vts": "2\n0\n",
        "a.csv": "source,target,score\n0,1,0.5\n1,-1,0.25\n",
    }
    for name, text in texts.items():
        corr.save(tmp_path / name)
        assert (tmp_path / name).read_text() == text
    corr.save(tmp_path / "b.csv", index_base=1)
    assert (tmp_path / "b.csv").read_text() == "source,target,score\n1,2,0.5\n2,0,0.25\n"
    back = Correspondence.load(tmp_path / "b.csv", target_size=2, index_base=1)
    assert back.indices.tolist() == [1, -1]


def test_csv_rows_may_be_mixed_and_few(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("source,target\n3,0\n0,2\n")
    corr = Correspondence.load(path, source=line(5), target=line(3))
    assert corr.indices.tolist() == [2, -1, -1, 0, -1]
    assert corr.scores is None


@pytest.mark.parametrize(
    ("text", "line_number", "words"),
    [
        ("a,b\n0,1\n", 1, "header"),
        ("source,target,score\n0,1\n", 2, "as numbers"),
        ("source,target,score\n0,x,1\n", 2, "as numbers"),
        ("source,target,score\n0,1,1\n0,1,1\n", 3, "each source point once"),
        ("source,target,score\n0,3,1\n", 2, "one of 3 target points"),
        ("source,target,score\n4,0,1\n", 2, "one of 4 source points"),
        ("source,target,score\n1,0,1.5\n", 2, "from 0 to 1"),
    ],
)
def test_damaged_csv(tmp_path: Path, text: str, line_number: int, words: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        Correspondence.load(path, source=line(4), target=line(3))
    assert f"bad.csv, line {line_number}:" in str(caught.value)


def test_csv_without_rows_or_with_some_scores(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for text, words in (
        ("", "header"),
        ("source,target,score\n", "no row"),
        ("source,target,score\n0,0,\n1,1,0.5\n", "all or none"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            Correspondence.load(path, target_size=3)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"points": np.zeros((2, 3))}, "indices and target_size of a map"),
        ({"indices": [0.5], "target_size": 2}, "integers|whole numbers"),
        ({"indices": [0], "target_size": [2, 3]}, "one number from 1"),
        ({"indices": [0], "target_size": 0}, "one number from 1"),
        ({"indices": [5], "target_size": 2}, "from 5 to 5"),
        ({"indices": [0], "target_size": 2, "scores": [2.0]}, "from 0 to 1"),
        ({"indices": [0], "target_size": 2, "neighbors": [[0]]}, "expected both"),
        ({"indices": [0], "target_size": 2, "details": "["}, "not JSON"),
        ({"indices": [0], "target_size": 2, "details": "[]"}, "expected the text of a JSON object"),
        ({"indices": [0], "target_size": 2, "format": 99}, "newer ltenet"),
    ],
)
def test_damaged_npz(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(InputError, match=words) as caught:
        Correspondence.load(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_cut_off_or_has_another_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    hard([0, 1, 2], 3).save(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"a\.npz: got a damaged"):
        Correspondence.load(path)
    for use in (hard([0], 1).save, Correspondence.load):
        with pytest.raises(UsageError, match="that of a map"):
            use(tmp_path / "a.pkl")
    with pytest.raises(UsageError, match="--index-base 1"):
        hard([0], 1).save(tmp_path / "b.npz", index_base=1)
    with pytest.raises(UsageError, match="index-base 3"):
        hard([0], 1).save(tmp_path / "b.csv", index_base=3)
    with pytest.raises(InputError, match="details"):
        hard([0], 1, details={"a": object()}).save(tmp_path / "b.npz")
    assert not (tmp_path / "b.npz").exists()
    hard([0], 1).save(tmp_path / "c.txt")
    with pytest.raises(InputError, match="number of target points"):
        Correspondence.load(tmp_path / "c.txt")


def test_a_map_of_other_shapes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.npz"
    hard([0, 1], 3).attached(line(2), line(3)).save(path)
    with pytest.raises(InputError, match=r"a\.npz: long: got 9 points as the target"):
        Correspondence.load(path, source=line(2), target=line(9, name="long"))
    with pytest.raises(InputError, match="as the source"):
        Correspondence.load(path, source=line(3))
    with caplog.at_level(logging.WARNING):
        Correspondence.load(path, source=line(2), target=line(3))
        assert caplog.text == ""
        moved = replace(line(3, name="moved"), points=line(3).points + 1)
        Correspondence.load(path, source=line(2), target=moved)
    assert "moved, the target, is not the shape" in caplog.text


def test_hashes_see_points_and_faces_and_nothing_else(tetrahedron: Shape) -> None:
    assert shape_hash(tetrahedron) == shape_hash(replace(tetrahedron, colors=None, name="other"))
    assert shape_hash(tetrahedron) != shape_hash(replace(tetrahedron, faces=None))
    assert shape_hash(tetrahedron) != shape_hash(
        replace(tetrahedron, points=tetrahedron.points * 2)
    )
    zeros = np.zeros((1, 3))
    assert shape_hash(Shape(points=zeros)) == shape_hash(Shape(points=-zeros))
    # SHA-256 of 24 zero bytes, as sha256sum gives it.
    assert shape_hash(Shape(points=zeros)) == "9d908ecfb6b256de"
