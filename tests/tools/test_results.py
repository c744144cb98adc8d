"""Figures in README, docs and model cards are those of results/*.json."""

from __future__ import annotations

import json
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools import results_page, run_benchmarks
from tools.conclusions import CHECKS, CONTROL, Measured, above, best, compared, conclusions
from tools.generated_tables import TABLES
from tools.results_page import ROOT, pages, rewritten
from tools.run_benchmarks import COLLECTIONS, REFINEMENT, ROBUSTNESS, SPEED, benches


def spread(mean: float, std: float = 0.0) -> dict[str, float]:
    return {"mean": mean, "std": std}


def by_pair(mean: float) -> list[list[float]]:
    """Accuracies of two trainings on two pairs."""
    return [[mean - 0.1, mean + 0.1], [mean - 0.2, mean + 0.2]]


def bench_result(**changes: Any) -> dict[str, Any]:
    """What `ltenet bench --json` prints, as far as tables use it."""
    errors = {
        "acc": {"0.01": spread(43.94, 0.12), "0.05": spread(92.2)},
        "err_percent": spread(2.584, 0.05),
    }
    result = {
        "benchmark": "faust",
        "model": "human",
        "method": "ltenet",
        "refine": "none",
        "pairs": 40,
        "seeds": [0, 1],
        "sampling": "shared",
        "by": "vertex",
        "rotate": "none",
        **errors,
        "err_dpc": spread(1.55, 0.11),
        "err_percent_pairs": {"median": 1.234, "worst_tenth": 12.34},
        "failed_percent": spread(2.5),
        "seconds_per_pair": spread(0.5),
        "remark": None,
        "commit": "abc",
        "command": "ltenet bench faust",
    }
    return result | changes


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with two benchmarks, one of peers and one of the paper's experiments."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "paper").mkdir()

    def write(name: str, content: dict[str, Any]) -> None:
        (tmp_path / f"{name}.json").write_text(json.dumps(content))

    write("bench/faust-shared", bench_result())
    oracle = {"acc": {"0.01": spread(60.8)}, "err_percent": spread(0.92)}
    other = {"acc": {"0.01": spread(26.1), "0.05": spread(92.2)}, "err_percent": spread(2.95)}
    write(
        "bench/faust-independent",
        bench_result(sampling="independent", oracle=oracle, **other),
    )
    test = {"pairs": 2, "remark": None, "err_dpc": spread(6.0), "seconds_per_pair": spread(0.1)}
    rows = [
        {
            "label": label,
            "setting": "human",
            "published": {"acc": published, "err": 6.0},
            "trainings": [{"steps": 12, "seed": seed} for seed in (0, 1)],
            "waiting": [],
            "shared": test
            | {"acc_1": spread(accuracy, 0.1), "acc_1_pairs": by_pair(accuracy), "curve": {}},
        }
        for label, accuracy, published in (
            ("self", 3.0, 2.3),
            ("cross", 15.0, 20.6),
            ("Chamfer", 14.8, 13.9),
            ("full", 14.5, 20.7),
            (CONTROL, 9.0, 0.0),
        )
    ]
    head = {"name": "design", "title": "Design", "source": "Table", "claim": "A claim.", "note": ""}
    more = {"seeds": [0, 1], "minutes": 2.0, "commit": "abc", "figures": [], "rows": rows}
    write("paper/design", head | {"command": "ltenet paper design"} | more)
    return tmp_path


def filled(spec: str, results: Path) -> str:
    text, lacking = rewritten(f"<!-- results: {spec} -->old<!-- /results -->", results)
    assert not lacking
    return text.removeprefix(f"<!-- results: {spec} -->").removesuffix("<!-- /results -->")


def test_a_table_of_benchmarks(results: Path) -> None:
    text = filled("bench faust-s* faust-*", results)
    lines = text.strip().splitlines()
    assert lines[2] == (
        "| FAUST 80-99, shared | `human` | nearest neighbour | 43.9 ±0.1 | 92.2 ±0.0 | "
        "2.58 ±0.05 | 1.55 ±0.11 | 1.23 | 12.3 | 2.50 ±0.00 | 40 x 2 |"
    )
    assert lines[3].startswith("| FAUST 80-99, independent | `human` |")


def test_partial_shapes_beside_whole_ones(results: Path) -> None:
    figures = {"overlap_iou": spread(0.9), "calibration_error": spread(0.05), "seeds": [0]}
    both = bench_result(partial="cut", both=True, sure_failures_percent=spread(1.0), **figures)
    whole = bench_result(partial=None, both=False, **figures | {"overlap_iou": None})
    (results / "bench" / "partial-a.json").write_text(json.dumps(whole))
    (results / "bench" / "partial-b.json").write_text(json.dumps(both))
    lines = filled("parts partial-*", results).strip().splitlines()
    assert lines[2] == "| FAUST 80-99 | whole | 2.58 | 1.23 | 12.3 | 2.50 | - | 0.05 | - | 40 |"
    assert lines[3] == (
        "| FAUST 80-99 | cut to cut | 2.58 | 1.23 | 12.3 | 2.50 | 0.90 | 0.05 | 1.00 | 40 |"
    )


def test_shared_beside_independent(results: Path) -> None:
    row = filled("leak faust-*", results).strip().splitlines()[2]
    assert row == (
        "| FAUST 80-99 | human | nearest neighbour | 40 x 2 | 43.9 ±0.1 | 26.1 ±0.0 | 60.8 ±0.0 | "
        "2.58 ±0.05 | 2.95 ±0.00 | 0.92 ±0.00 |"
    )


def test_only_equal_numbers_of_pairs_stand_side_by_side(results: Path) -> None:
    part = bench_result(pairs=3)
    (results / "bench" / "part-faust-shared.json").write_text(json.dumps(part))
    rows = filled("leak *faust-*", results).strip().splitlines()[2:]
    assert len(rows) == 1
    assert "| 40 x 2 |" in rows[0]


def test_subsets_of_public_sets_say_so(results: Path) -> None:
    for name, pairs in (("whole", 286), ("part", 30)):
        content = bench_result(benchmark="tosca", pairs=pairs, remark="close to the published")
        (results / "bench" / f"tosca-{name}.json").write_text(json.dumps(content))
    assert "official" not in filled("bench tosca-whole", results)
    last = filled("bench tosca-part", results).strip().splitlines()[-1]
    assert last == ("TOSCA: 30 of the 286 official pairs; published figures are over all of them.")


def test_whole_meshes_and_landmarks(results: Path) -> None:
    own = spread(2.641) | {"median": 2.1, "worst_tenth": 8.9}
    mesh = bench_result(
        benchmark="faust_r", rotate="any", pairs=400, geodesic=own, geodesic_curve={},
        without_identities={"geodesic": spread(2.7)}, flips_percent=1.25, limb_swaps_percent=None,
    )  # fmt: skip
    both = {"landmark_percent": own, "landmark_percent_symmetric": own}
    mark = bench_result(benchmark="shrec07", pairs=80, classes={"hand": both, "fish": both}, **both)
    compared = {"command": "ltenet bench", "rows": [mark, {"method": "cpd", "missing": "pycpd"}]}
    for name, content in {"meshes-faust_r": mesh, "meshes-shrec07": compared}.items():
        (results / "bench" / f"{name}.json").write_text(json.dumps(content))
    assert (
        "| FAUST_r, rotated (any) | nearest neighbour | 2.64 | 2.10 | 8.90 | 2.70 | 1.25 | - | "
        "0.50 | 400 |"
    ) in filled("meshes meshes-*", results)
    text = filled("landmarks meshes-*", results)
    assert "| map | hand | fish | mean | median | worst tenth | pairs |" in text
    assert "| nearest neighbour, up to symmetry | 2.6 | 2.6 | 2.6 | 2.1 | 8.9 | 80 |" in text


def test_the_paper_beside_ours(results: Path) -> None:
    text = filled("paper design", results)
    assert "| full | 14.5 ±0.1 | 6.00 ±0.00 | 20.7 | 6.0 |" in text
    assert "ours: acc 1 %" in text
    assert "paper: acc 1 %" in text


def test_a_number_in_a_sentence(results: Path) -> None:
    assert filled("figure bench/faust-shared acc 0.01", results) == "43.9"
    assert filled("figure bench/faust-shared pairs", results) == "40"
    assert filled("figure paper/design rows human:cross shared acc_1", results) == "15.0"


def test_commands(results: Path) -> None:
    assert "ltenet bench faust  # commit abc" in filled("commands faust-shared", results)


def test_time_and_memory(tmp_path: Path) -> None:
    runs = [{"points": 1000, "seconds": 1.234, "peak_gb": 0.5}]
    pair = {
        "points": 1024, "pairs": 5, "ratio": 9.1,
        "seconds": {"ltenet": 1.2, "pycpd": 11.0}, "err_percent": {"ltenet": 1.6, "pycpd": 11.2},
    }  # fmt: skip
    both = {"ltenet": 0.5, "reference": 10.0}
    core = {
        "embed_ratio": 20.0, "embed_ratio_to_products": 15.0, "encoder_train_ratio": 20.0,
        "step_ratio": 20.0, "step_memory_ratio": 0.05,
        "seconds": {"embed": both, "encoder_train": both, "step": both},
        "step_peak_bytes": {"ltenet": 5e8, "reference": 1e10},
        "setting": {"encoder_shapes": 8, "step_pairs": 4, "threads": 2},
        "versions": {"torch": "2.13.0"},
    }  # fmt: skip
    (tmp_path / "speed").mkdir()
    for name, content in {"scale": {"runs": runs}, "matching": pair, "compute": core}.items():
        (tmp_path / "speed" / f"{name}.json").write_text(json.dumps(content))
    assert "| 1,000 | 1.23 s | 0.50 GB |" in filled("generated speed scale", tmp_path)
    matching = filled("generated speed matching", tmp_path)
    assert "| `ltenet.match` | 1.2 s | 1.60 |" in matching
    assert "9.1 times faster" in matching
    compute = filled("generated speed compute", tmp_path)
    assert "| embed one shape | 0.5 s | 10 s | 20 (15 to a reference" in compute
    assert "| its peak memory | 0.50 GB | 10.00 GB | 0.05 |" in compute


def test_refinement(tmp_path: Path) -> None:
    row = {"err_percent": 1.626, "acc_1": 37.94, "acc_5": 98.4, "accepted": 1.0, "seconds": 1.1}
    protocols = {f"{sampling}: ot": row for sampling in ("independent", "shared")}
    taken = {
        f"{sampling}, {by}, noise {noise}": {"taken": 5.0 * (sampling == "shared")}
        for sampling in ("shared", "independent")
        for by in ("vertex", "area")
        for noise in (0, 0.005, 0.01)
    }
    same = {"figures": taken, "what": "human", "pairs": 5, "points": 1024}
    folder = tmp_path / "refinement"
    folder.mkdir()
    contents: dict[str, dict[str, Any]] = {
        "methods": {"methods": ["ot"], "figures": protocols},
        "soft": {"figures": {"nearest": row}},
        "repair": {"figures": {"off: before": row, "off: ot": row}},
        "agreement-human": {"figures": {"agreement": row}},
        "agreement-animal": {"figures": {"agreement": row}},
        "same-points-human": same,
        "same-points-human-256": same | {"points": 256},
    }
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    lacking = "<!-- results: generated refinement same-points --><!-- /results -->"
    assert rewritten(lacking, tmp_path)[1] == ["generated refinement same-points"]
    (folder / "same-points-animal.json").write_text(json.dumps(same | {"what": "animal"}))
    cells = "1.63 | 37.9 | 98.4"
    assert f"| `ot` | {cells} | {cells} | 1.10 |" in filled(
        "generated refinement methods", tmp_path
    )
    assert f"| nearest | {cells} |" in filled("generated refinement soft", tmp_path)
    assert "| off | 1.63 | 1.63 |" in filled("generated refinement repair", tmp_path)
    assert f"| agreement | {cells} | {cells} |" in filled(
        "generated refinement agreement", tmp_path
    )
    points = filled("generated refinement same-points", tmp_path)
    assert "| animals, 1,024 points | 10 of 10 | 10 of 10 | 10 of 10 | 0 of 30 |" in points


def test_table_of_damages(tmp_path: Path) -> None:
    (tmp_path / "robustness").mkdir()
    ours = {"accuracy": 92.38, "error": 2.11, "stated": 89.6}
    theirs = {"accuracy": 73.9, "error": None, "stated": None}
    result = {"pairs": 2, "cases": {"clean": {"ltenet": ours, "cpd": theirs}}}
    (tmp_path / "robustness" / "damages.json").write_text(json.dumps(result))
    made = filled("generated robustness damages", tmp_path)
    assert "| clean | 92.4 | 2.1 | 89.6 | 73.9 | - |" in made
    assert "Means over 2 pairs" in made


def test_a_result_names_its_command_without_places_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, stdout='{"pairs": 2}')

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tools.run_benchmarks.subprocess.run", called)
    words = ["run_benchmarks", "--robustness", "--results", str(tmp_path / "results")]
    monkeypatch.setattr("sys.argv", [*words, "--pairs", "2", "--dpc", "dpc"])
    run_benchmarks.main()
    result = json.loads((tmp_path / "results" / "robustness" / "damages.json").read_text())
    assert result["command"] == (
        "python -m benchmarks.robustness --json --plot results/robustness/damages.png "
        "--dpc dpc --pairs 2"
    )


def test_every_table_is_measured_by_the_tool() -> None:
    measured = {
        "speed": SPEED,
        "refinement": REFINEMENT,
        "robustness": ROBUSTNESS,
        "collections": COLLECTIONS,
    }
    for folder, tables in TABLES.items():
        names = {bench.name for bench in measured[folder]}
        assert all(set(table.names) <= names for table in tables.values())


def test_tables_of_collections() -> None:
    tables = TABLES["collections"]
    kinds = {"single": 900.0, "direct": 600.0, "hubs": 90.0}
    pairs = {"pairs": 1770, "shapes": 60, "single_sampled": 60, "hubs": 3}
    pairs |= {f"{kind}_seconds": value for kind, value in kinds.items()}
    pairs |= {f"{kind}_error_percent": 1.5 for kind in kinds}
    pairs |= {"direct_ratio": 1.5, "all_pairs_ratio": 10.0}
    growth = {
        "growth": [
            {"shapes": count, "seconds_per_shape": 0.5, "peak_mb": 1200} for count in (20, 200)
        ]
    }
    workers = {"worker_pairs": 435, "workers_ratio": 1.8}
    workers |= {"one_worker_seconds": 180.0, "two_workers_seconds": 100.0}
    atlas = {"atlas_shapes": 1000, "atlas_points": 512, "atlas_registered": 998}
    made = tables["costs"].make(pairs, growth, workers, atlas | {"atlas_seconds": 1200.0})
    assert "| 1,770 pairs of 60 shapes, `--hubs 3` | 90 s | 10.0 x faster, error 1.50 % |" in made
    assert "| 200 shapes to one template | 0.50 s each | 1,200 MB at most |" in made
    assert "two workers | 20 min | 998 registered |" in made
    ratio = {"compactness": 1.02, "generalisation": 1.1, "specificity": 0.98}
    model = {"error_percent": 1.2, "worst_error_percent": 3.0, "ratio": ratio}
    found = [
        {"set": kind, "shapes": 40, "ours": model, "cpd": model} for kind in ("people", "faust")
    ]
    made = tables["quality"].make(*found)
    assert "| 40 FAUST | `ltenet atlas` | 1.20 | 3.00 | 1.02 | 1.10 | 0.98 |" in made
    before = {"cycle_percent": 3.0, "error_percent": 1.5}
    after = before | {"cycle_percent": 0.6, "cycle_ratio": 0.2}
    one = {"shapes": 12, "matched": before, "consistent": after, "hubs_3": after}
    made = tables["consistency"].make(one, one, one)
    assert "| 12 FAUST | `--consistent` | 0.60 | 1.50 | 0.20 |" in made
    assert len(made.splitlines()) == 2 + 9


def test_verdicts(results: Path) -> None:
    found = conclusions({"design": json.loads((results / "paper" / "design.json").read_text())})
    assert [(line.claim, line.verdict) for line in found] == [
        ("cross-reconstruction contributes most", "holds"),
        ("Cauchy-Schwarz is better than Chamfer", "no clear difference"),
    ]
    assert found[0].figures == "cross: 15.0; self: 3.0"
    assert "| design | cross-reconstruction contributes most | holds |" in filled(
        "verdicts", results
    )


@pytest.mark.parametrize("control", [None, 14.6])
def test_rows_that_are_as_good_as_untrained_decide_nothing(
    results: Path, control: float | None
) -> None:
    design = json.loads((results / "paper" / "design.json").read_text())
    design["rows"] = [row for row in design["rows"] if row["label"] != CONTROL or control]
    for row in design["rows"]:
        if row["label"] == CONTROL:
            row["shared"]["acc_1_pairs"] = by_pair(control or 0.0)
    assert {line.verdict for line in conclusions({"design": design})} == {"undecided"}


def test_one_training_decides_nothing(results: Path) -> None:
    design = json.loads((results / "paper" / "design.json").read_text())
    for row in design["rows"]:
        row["trainings"] = row["trainings"][:1]
        row["shared"]["acc_1_pairs"] = row["shared"]["acc_1_pairs"][:1]
    assert {line.verdict for line in conclusions({"design": design})} == {"undecided"}


def test_uncertainty_counts_pairs_and_trainings() -> None:
    """Twice the standard error, from its definition, over paired differences."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(20, 3, (2, 9)), rng.normal(18, 3, (2, 9))
    rows = [Measured(first, (0, 1)), Measured(second[::-1], (1, 0))]
    difference, uncertainty = compared(*rows)
    gaps = first - second
    assert difference == pytest.approx(gaps.mean())
    over_pairs = np.std(gaps.mean(axis=0), ddof=1) / np.sqrt(9)
    over_seeds = abs(gaps[0].mean() - gaps[1].mean()) / 2
    assert uncertainty == pytest.approx(2 * np.hypot(over_pairs, over_seeds))


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((3.0, 4.0), "holds"),
        ((-3.0, -4.0), "does not hold"),
        ((0.2, 0.6), "no clear difference"),
        ((9.0, 1.0), "undecided"),  # the seeds disagree too much
    ],
)
def test_seeds_that_disagree_decide_nothing(gaps: tuple[float, float], verdict: str) -> None:
    even = np.full((2, 5), 20.0)
    rows = {
        ("human", "one"): Measured(even + np.array(gaps)[:, None], (0, 1)),
        ("human", "two"): Measured(even, (0, 1)),
        ("human", CONTROL): Measured(even - 15, (0, 1)),
    }
    outcome = above(rows, first="one", second="two")
    assert outcome is not None
    assert outcome[0] == verdict


def test_the_best_row_beats_every_other() -> None:
    even = np.full((2, 5), 20.0)
    rows = {
        ("human", "LTENet"): Measured(even, (0, 1)),
        ("human", "cpd"): Measured(even[:1] - 5),
        ("human", "weights `human`"): Measured(even[:1] + 50),
        ("human", CONTROL): Measured(even - 15, (0, 1)),
    }
    own = partial(best, first="LTENet", without=("weights ",))
    assert own(rows) == ("holds", "LTENet: 20.0; best of the others, cpd: 15.0")
    assert own({**rows, ("human", "icp"): Measured(even[:1] + 5)})[0] == "does not hold"
    assert own({**rows, ("human", "DPC"): Measured(even[:1] - 9, (0,))})[0] == "undecided"


def test_checks_name_rows_that_exist() -> None:
    """A check of rows that no plan has would be silent for ever."""
    from ltenet.evaluation.paper.plans import PLANS

    for experiment, claim, check in CHECKS:
        even = Measured(np.ones((2, 3)), (0, 1))
        rows = {(row.setting, row.label): even for row in PLANS[experiment](None).rows}
        assert check(rows) is not None, claim


def test_what_is_not_measured_stays(tmp_path: Path) -> None:
    text = "<!-- results: bench faust-* -->old<!-- /results -->"
    assert rewritten(text, tmp_path) == (text, ["bench faust-*"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- results: best -->x<!-- /results -->", "expected one of bench, parts"),
        ("<!-- results: bench x -->", "without its end"),
    ],
)
def test_mistakes(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=message):
        rewritten(text, tmp_path)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_hold_the_figures_of_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    new, lacking = rewritten(text)
    assert new == text, "run `python -m tools.results_page`"
    if list((ROOT / "results" / "bench").glob("*.json")) and page.name == "README.md":
        assert not lacking, "preliminary figures remain beside measured ones"


def test_results_say_where_they_come_from() -> None:
    for path in sorted((ROOT / "results").glob("*/*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        first = next(row for row in content.get("rows", [content]) if "missing" not in row)
        commit = content.get("commit") or first.get("commit")
        assert content["command"].startswith(("ltenet ", "python -m benchmarks.")), path.name
        assert re.fullmatch(r"[0-9a-f]{12}(-changed)?", commit or ""), (
            f"{path.name} is of no commit"
        )


def test_benchmarks_have_names_of_their_own() -> None:
    names = [bench.name for bench in benches()]
    assert len(set(names)) == len(names)
    assert "faust-shared-human-none" in names


def test_the_tool_rewrites(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = results / "page.md"
    page.write_text("<!-- results: figure bench/faust-shared acc 0.01 -->9<!-- /results -->\n")
    monkeypatch.setattr(results_page, "pages", lambda: [page])
    monkeypatch.setattr(results_page, "ROOT", results)
    monkeypatch.setattr(results_page, "rewritten", lambda text: rewritten(text, results))
    monkeypatch.setattr("sys.argv", ["results_page", "--check"])
    with pytest.raises(SystemExit):
        results_page.main()
    monkeypatch.setattr("sys.argv", ["results_page"])
    results_page.main()
    assert "-->43.9<!--" in page.read_text()
    assert capsys.readouterr().out == "page.md: differs\npage.md: written\n"
