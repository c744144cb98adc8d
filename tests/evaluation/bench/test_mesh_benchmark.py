"""Maps between whole meshes whose errors are known by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from ltenet import io
from ltenet.cli import main
from ltenet.correspondence import Correspondence
from ltenet.data.mesh_set import LandmarkSet, ListedSet
from ltenet.data.pairs import benchmark_pair
from ltenet.data.readers import open_set
from ltenet.errors import InputError
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.mesh_results import geodesic_curve
from ltenet.evaluation.bench.mesh_scoring import (
    CURVE,
    SurfaceDistances,
    edge_distances,
    score_landmarks,
    score_listed,
)
from ltenet.evaluation.bench.results import summarize, table_rows
from ltenet.evaluation.bench.run import chosen_pairs, run_bench
from ltenet.shape import Shape

SIDE = 7


def grid(size: int = SIDE, spacing: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A square sheet; every cell is cut from its lower left to its upper right corner."""
    rows, columns = np.divmod(np.arange(size * size), size)
    points = spacing * np.stack([columns, rows, np.zeros(size * size)], axis=1)
    corner = np.array([r * size + c for r in range(size - 1) for c in range(size - 1)])
    lower = np.stack([corner, corner + 1, corner + size + 1], axis=1)
    upper = np.stack([corner, corner + size + 1, corner + size], axis=1)
    return points.astype(float), np.concatenate([lower, upper])


def sheet_distance(first: int, second: int, size: int = SIDE) -> float:
    """Shortest way along rows, columns and rising diagonals, in cells."""
    (r0, c0), (r1, c1) = divmod(first, size), divmod(second, size)
    down, right = r1 - r0, c1 - c0
    if down * right > 0:
        diagonal = min(abs(down), abs(right))
        return diagonal * 2**0.5 + abs(abs(down) - abs(right))
    return float(abs(down) + abs(right))


def test_distances_along_the_edges_of_a_grid() -> None:
    points, faces = grid(spacing=3.0)
    found = edge_distances(points, faces)
    count = SIDE * SIDE
    expected = [[sheet_distance(i, j) for j in range(count)] for i in range(count)]
    # The sheet has (SIDE - 1)^2 cells, so scaled to area 1 a cell is 1 / (SIDE - 1) wide.
    np.testing.assert_allclose(found, np.array(expected) / (SIDE - 1), rtol=1e-6)
    assert found.dtype == np.float32


def test_parts_that_no_edge_joins_are_as_far_apart_as_in_space() -> None:
    points, faces = grid(2)
    both = np.concatenate([points, points + np.array([0, 0, 5])])
    found = edge_distances(both, np.concatenate([faces, faces + 4]))
    scale = 1 / np.sqrt(2)  # two sheets of area 1
    assert found[0, 1] == pytest.approx(scale)
    assert found[0, 4] == pytest.approx(5 * scale)


def test_what_has_no_surface(tmp_path: Path) -> None:
    distances = SurfaceDistances(tmp_path)
    with pytest.raises(InputError, match=r"got a cloud, expected a mesh"):
        distances.between(Shape(np.eye(3), name="c"), np.array([0]), np.array([1]))
    with pytest.raises(InputError, match=r"got a mesh of area 0\.0, expected a positive area"):
        edge_distances(np.zeros((3, 3)), np.array([[0, 1, 2]]))


def test_distances_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points, faces = grid(3)
    mesh = Shape(points, faces=faces)
    ends = np.array([0, 0]), np.array([8, 2])
    first = SurfaceDistances(tmp_path / "new").between(mesh, *ends)
    monkeypatch.setattr("ltenet.evaluation.bench.mesh_scoring.edge_distances", None)
    np.testing.assert_array_equal(SurfaceDistances(tmp_path / "new").between(mesh, *ends), first)
    np.testing.assert_allclose(first, [2**0.5, 1.0])


@pytest.fixture
def sheets(tmp_path: Path) -> Path:
    """FAUST_r's layout: two sheets, the second with its vertices in reverse; mirrored in x."""
    place = tmp_path / "sheets"
    points, faces = grid()
    count = len(points)
    rows, columns = np.divmod(np.arange(count), SIDE)
    mirror = rows * SIDE + (SIDE - 1 - columns)
    for folder in ("off", "corres"):
        (place / folder).mkdir(parents=True)
    for name, order in (("tr_reg_080", np.arange(count)), ("tr_reg_081", np.arange(count)[::-1])):
        where = np.argsort(order)  # template point t is vertex where[t]
        io.save(Shape(points[order], faces=where[faces]), place / "off" / f"{name}.off")
        np.savetxt(place / "corres" / f"{name}.vts", where + 1, fmt="%d")
        np.savetxt(place / "corres" / f"{name}.sym.vts", where[mirror] + 1, fmt="%d")
    return place


def scored(place: Path, cache: Path, predicted: np.ndarray):  # type: ignore[no-untyped-def]
    """Score a map from sheet 80 to sheet 81, given by the template point of each vertex."""
    shapes = open_set("faust_r", place)
    assert isinstance(shapes, ListedSet)
    pair = shapes.pairs.tolist().index([0, 1])
    drawn = benchmark_pair(shapes, pair, sampling="full", seed=3, rotate="any")
    listed = shapes.listed(0, 1)
    vertices = listed.target[predicted]  # vertex of the target
    indices = np.argsort(drawn.target_vertices)[vertices]  # which is shuffled
    found = Correspondence(indices, len(drawn.target))
    return score_listed(shapes, drawn, found, SurfaceDistances(cache), pair=pair)


def test_a_right_map_has_no_error(sheets: Path, tmp_path: Path) -> None:
    score = scored(sheets, tmp_path, np.arange(SIDE * SIDE))
    assert (score.geodesic, score.flipped, score.flip, score.limb_swap) == (0, 0, False, False)
    np.testing.assert_array_equal(score.within, np.full(40, SIDE * SIDE))


def test_an_error_by_hand(sheets: Path, tmp_path: Path) -> None:
    """Every point goes one row up; those of the last row stay."""
    count = SIDE * SIDE
    score = scored(
        sheets,
        tmp_path,
        np.minimum(np.arange(count) + SIDE, count - SIDE + np.arange(count) % SIDE),
    )
    cell = 1 / (SIDE - 1)
    assert score.geodesic == pytest.approx(100 * cell * (SIDE - 1) / SIDE, rel=1e-5)
    assert score.within[-1] == SIDE  # a cell is wider than the whole curve
    assert score.flip is False


def test_a_mirrored_map_is_a_flip(sheets: Path, tmp_path: Path) -> None:
    count = SIDE * SIDE
    rows, columns = np.divmod(np.arange(count), SIDE)
    mirror = rows * SIDE + (SIDE - 1 - columns)
    score = scored(sheets, tmp_path, mirror)
    assert (score.flipped, score.flip, score.limb_swap) == (100, True, False)
    expected = np.mean([sheet_distance(k, mirror[k]) for k in range(count)]) / (SIDE - 1)
    assert score.geodesic == pytest.approx(100 * expected, rel=1e-5)
    # Two rows of seven exchange their sides: a limb, not the whole; the middle is on no side.
    limb = np.where(rows < 2, mirror, np.arange(count))
    score = scored(sheets, tmp_path, limb)
    assert score.flipped == pytest.approx(100 * 2 / 7)
    assert (score.flip, score.limb_swap) == (False, True)


def test_the_whole_benchmark(sheets: Path, tmp_path: Path) -> None:
    config = BenchConfig(
        benchmark="faust_r", data=sheets, method="nearest", sampling="full", seeds=(0,), cycle=False
    )
    run = run_bench(config, cache=tmp_path / "cache")
    shapes = open_set("faust_r", sheets)
    assert [int(shapes.pairs[p, 1]) for p in chosen_pairs(shapes, None)] == [0, 0, 1, 1]
    result = json.loads(json.dumps(summarize(run)))
    assert set(result["geodesic"]) == {"mean", "std", "median", "worst_tenth"}
    assert result["geodesic"]["mean"] == pytest.approx(0, abs=1e-4)
    assert result["flips_percent"] == result["limb_swaps_percent"] == 0
    assert (result["pairs"], result["without_identities"]["pairs"]) == (4, 2)
    assert result["remark"].startswith("4 of the 400 official pairs")
    assert result["failed_percent"]["mean"] == 0
    assert result["geodesic_curve"]["percent"] == [100] * 40
    assert result["geodesic_curve"]["tolerance"][-1] == 0.1
    assert table_rows(run)[0]["flip"] is False
    turned = run_bench(
        BenchConfig(
            benchmark="faust_r",
            data=sheets,
            method="nearest",
            sampling="full",
            seeds=(0,),
            cycle=False,
            rotate="any",
        ),
        cache=tmp_path / "cache",
    )
    assert summarize(turned)["geodesic"]["mean"] > 5


def test_figures_are_pooled_over_points(sheets: Path, tmp_path: Path) -> None:
    config = BenchConfig(
        benchmark="faust_r", data=sheets, method="nearest", sampling="full", seeds=(0,), cycle=False
    )
    run = run_bench(config, cache=tmp_path / "cache")
    first = run.scores[0]
    assert first.listed is not None
    within = np.zeros(40)
    small = first.listed._replace(
        points=10, geodesic=3.0, within=within, flipped=80.0, identity=False
    )
    large = small._replace(points=30, geodesic=1.0, within=within + 30, flipped=20.0, identity=True)
    scores = tuple(
        first._replace(pair=pair, listed=own) for pair, own in enumerate((small, large, large))
    )
    result = summarize(run._replace(scores=scores))
    assert result["geodesic"]["mean"] == pytest.approx((10 * 3 + 60 * 1) / 70)
    assert (result["geodesic"]["median"], result["geodesic"]["worst_tenth"]) == (1, 3)
    assert result["flips_percent"] == pytest.approx(100 / 3)
    assert result["limb_swaps_percent"] == pytest.approx(200 / 3)
    assert result["without_identities"]["geodesic"]["mean"] == 3
    np.testing.assert_allclose(geodesic_curve(scores)["percent"], 100 * 60 / 70, rtol=1e-4)
    blind = tuple(score._replace(listed=small._replace(flipped=None)) for score in scores)
    assert summarize(run._replace(scores=blind))["flips_percent"] is None


@pytest.mark.slow
def test_the_command(
    sheets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "cache"))
    sheets.rename(sheets.with_name("FAUST_r"))
    arguments = ["bench", "faust_r", "--data", str(tmp_path), "--method", "nearest,icp"]
    assert main([*arguments, "--pairs", "2", "-o", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "faust_r, 2 pairs, whole meshes, seeds 0" in told
    assert "2 of the 400 official pairs" in told
    assert "| method | geodesic x 100 | median | worst tenth |" in told
    assert (tmp_path / "out" / "nearest" / "pairs.csv").is_file()
    result = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [row["method"] for row in result["rows"]] == ["nearest", "icp"]
    assert main([*arguments, "--sampling", "shared"]) == 2
    assert "expected whole meshes" in capsys.readouterr().err


# --- landmarks -----------------------------------------------------------------------------------


@pytest.fixture
def planes(tmp_path: Path) -> Path:
    """Two sheets as planes of SHREC'07, landmarks 1 and 2 opposite each other, and 5 and 6."""
    points, faces = grid()
    marks = [3, 7, 13, 24, 31, 42, 48, 10, 17, 35, 41]
    for folder in ("Meshes", "Corrs"):
        (tmp_path / folder).mkdir()
    for number in (61, 62):
        io.save(Shape(points, faces=faces), tmp_path / "Meshes" / f"{number}.off")
        rows = [f"{vertex} 0 0 0" for vertex in marks]
        (tmp_path / "Corrs" / f"{number}.vts").write_text("\n".join(rows))
    return tmp_path


def test_landmarks_up_to_symmetry(planes: Path) -> None:
    shapes = open_set("shrec07", planes)
    assert isinstance(shapes, LandmarkSet)
    drawn = benchmark_pair(shapes, 0, sampling="full", rotate="any")
    place = np.argsort(drawn.target_vertices)
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    mirror = rows * SIDE + (SIDE - 1 - columns)
    right = score_landmarks(shapes, drawn, Correspondence(place, SIDE * SIDE), pair=0)
    assert right == (0, 0)
    flipped = score_landmarks(shapes, drawn, Correspondence(place[mirror], SIDE * SIDE), pair=0)
    points, marks = shapes.shape(0).points, shapes.landmarks(0)
    diameter = cdist(points, points).max()
    plain = np.linalg.norm(points[mirror[marks]] - points[marks], axis=1).mean()
    other = points[marks[[0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9]]]
    symmetric = np.linalg.norm(points[mirror[marks]] - other, axis=1).mean()
    assert symmetric < plain
    assert flipped.plain == pytest.approx(100 * plain / diameter)
    assert flipped.symmetric == pytest.approx(100 * symmetric / diameter)


def test_the_landmark_benchmark(
    planes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "cache"))
    arguments = ["bench", "shrec07", "--data", str(planes), "--method", "nearest"]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    for part in (result, result["classes"]["airplane"]):
        for key in ("landmark_percent", "landmark_percent_symmetric"):
            assert {"mean", "median"} <= set(part[key])
            assert part[key]["mean"] == pytest.approx(0, abs=1e-4)
    assert (result["pairs"], result["classes"]["airplane"]["pairs"]) == (2, 2)
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "| airplane | 0.00 | 0.00 | 0.00 | 0.00 | 2 |" in told


def test_classes_that_disagree_on_their_landmarks(planes: Path) -> None:
    (planes / "Corrs" / "62.vts").write_text("1 0 0 0\n")
    shapes = open_set("shrec07", planes)
    assert isinstance(shapes, LandmarkSet)
    with pytest.raises(InputError, match=r"got 11 and 1 landmarks, expected equal numbers"):
        shapes.truth(0, 1)


def test_the_curve_has_forty_steps_to_a_tenth() -> None:
    assert (len(CURVE), CURVE[0], CURVE[-1]) == (40, 0.0, 0.1)
