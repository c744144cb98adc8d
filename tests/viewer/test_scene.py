"""What goes into the page: packed arrays, colours, figures, inert text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import ltenet.viewer
from ltenet.correspondence import Correspondence
from ltenet.data.augmentation import random_rotation
from ltenet.errors import InputError, UsageError
from ltenet.shape import Shape
from ltenet.viewer import Report, notebook_html, view
from ltenet.viewer.cloud_normals import cloud_normals, folded
from ltenet.viewer.colors import UNMATCHED_COLOR, color_frame, position_colors
from ltenet.viewer.figures import (
    displacements,
    measure,
    sources_of,
    unit_length,
)
from ltenet.viewer.packing import pack, quantize, unpack
from ltenet.viewer.page import bundle, inert_json
from ltenet.viewer.picture import picture
from ltenet.viewer.scene import build_scene

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>&\u2028"


@given(
    st.sampled_from([np.uint8, np.uint16, np.uint32]).flatmap(
        lambda kind: arrays_of.arrays(kind, st.tuples(st.integers(0, 40), st.integers(1, 3)))
    )
)
def test_packing_loses_nothing(values: np.ndarray) -> None:
    other = np.arange(5, dtype=np.uint32)
    arrays = unpack(pack({"other": other, "values": values}))
    np.testing.assert_array_equal(arrays["values"], values)
    np.testing.assert_array_equal(arrays["other"][:, 0], other)


def test_packing_is_the_same_twice_and_small() -> None:
    steps = np.arange(30_000, dtype=np.uint32)
    assert pack({"a": steps}) == pack({"a": steps})
    assert len(pack({"a": steps}).blob) < steps.nbytes / 100


@given(arrays_of.arrays(np.float64, (20, 3), elements=st.floats(-1e3, 1e3)))
def test_quantised_points_are_within_half_a_step(points: np.ndarray) -> None:
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    back = low + quantize(points, low, size) / 65535 * size
    assert (np.abs(back - points) <= size / 65535 * 0.5 + 1e-9).all()


def test_left_and_right_differ_for_the_colour_blind(people: tuple[Shape, Shape]) -> None:
    """A deuteranope (Machado et al. 2009) sees blue on one side and yellow on the other."""
    _, target = people
    frame = color_frame(target.points)
    reach = np.array([[-2.0, 0, 0], [2.0, 0, 0]]) * frame.reach
    display = position_colors(frame.middle + reach, frame) / 255
    linear = np.where(display <= 0.04045, display / 12.92, ((display + 0.055) / 1.055) ** 2.4)
    deuteranope = np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    )
    seen = linear @ deuteranope.T
    right, left = seen[:, 2] - seen[:, :2].mean(axis=1)
    assert right > 0.2
    assert left < -0.2


def test_the_middle_has_the_middle_colour() -> None:
    frame = color_frame(np.random.default_rng(0).normal(size=(100, 3)))
    # Oklab (0.70, 0.02, 0) in sRGB, computed by hand.
    colors = position_colors(np.stack([frame.middle, np.full(3, np.nan)]), frame)
    assert np.abs(colors[0].astype(int) - (170, 152, 160)).max() <= 3
    assert tuple(colors[1]) == UNMATCHED_COLOR


def test_a_flat_shape_has_colours() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert len(np.unique(position_colors(points, color_frame(points)), axis=0)) == 3


def test_normals_of_a_plane_and_of_a_ball() -> None:
    rng = np.random.default_rng(1)
    plane = np.c_[rng.random((200, 2)), np.zeros(200)]
    assert np.abs(cloud_normals(plane)[:, 2]).min() > 0.999
    ball = rng.normal(size=(4000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    assert np.median(np.abs(np.sum(cloud_normals(ball) * ball, axis=1))) > 0.99
    assert cloud_normals(np.zeros((2, 3))).tolist() == [[0, 0, 1]] * 2


def test_folded_normals_come_back() -> None:
    rng = np.random.default_rng(2)
    normals = rng.normal(size=(500, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    x, y = (folded(normals) / 127.5 - 1).T
    z = 1 - np.abs(x) - np.abs(y)
    x, y = (
        np.where(z < 0, (1 - np.abs(y)) * np.where(x < 0, -1, 1), x),
        np.where(z < 0, (1 - np.abs(x)) * np.where(y < 0, -1, 1), y),
    )
    back = np.stack([x, y, z], axis=1)
    back /= np.linalg.norm(back, axis=1, keepdims=True)
    assert np.sum(back * normals, axis=1).min() > 0.999


def test_errors_and_curve_by_hand() -> None:
    target = Shape(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [10, 0, 0]]))
    found = Correspondence(np.array([0, 0, -1, 3]), 4)
    measured = measure(found, np.array([0, 1, 2, -1]), target)
    diameter = np.sqrt(101)
    np.testing.assert_allclose(measured.errors, [0, 1 / diameter, np.nan, np.nan])
    assert measured.within(0.01) == pytest.approx(1 / 3)  # the unmatched one counts as wrong
    assert measured.within(0.1) == pytest.approx(2 / 3)
    assert measured.mean == pytest.approx(0.5 / diameter)


def test_a_truth_that_does_not_fit_is_refused() -> None:
    target = Shape(np.eye(3))
    with pytest.raises(InputError, match="a truth of shape"):
        measure(Correspondence(np.arange(3), 3), np.array([0, 1]), target)
    with pytest.raises(InputError, match="0 known points"):
        measure(Correspondence(np.arange(3), 3), np.array([-1, -1, -1]), target)
    with pytest.raises(InputError, match="a truth onto 5 points"):
        view(np.eye(3), np.eye(3), np.arange(3), truth=Correspondence(np.arange(3), 5))


def test_the_unit_of_errors_is_the_diameter() -> None:
    assert unit_length(Shape(np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0]]))) == np.sqrt(8)
    assert unit_length(Shape(np.zeros((20_000, 3)))) == 1.0


def test_what_no_partner_is_near_is_not_reached() -> None:
    target = Shape(np.array([[0.0, 0, 0], [0.01, 0, 0], [1, 0, 0]]))
    assert sources_of(np.array([[np.nan] * 3, [0.0, 0, 0]]), target).tolist() == [1, 1, -1]
    assert sources_of(np.full((2, 3), np.nan), target).tolist() == [-1, -1, -1]


def test_a_turned_copy_lies_upon_its_original(people: tuple[Shape, Shape]) -> None:
    source, _ = people
    turn = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    target = Shape(3 * source.points @ turn.T + 5)
    matched = np.ones(len(source), bool)
    moved, rotation = displacements(source, target.points, matched, unit_length(target))
    assert moved.max() < 1e-9
    np.testing.assert_allclose(rotation, turn, atol=1e-9)
    scene = build_scene(source, target, Correspondence(np.arange(len(source)), len(target)))
    assert scene.description["turned"]


def test_the_scene_holds_what_it_was_given(
    people: tuple[Shape, Shape], rough_map: Correspondence
) -> None:
    source, target = people
    truth = np.arange(len(source))
    scene = build_scene(source, target, rough_map, truth=truth)
    arrays = unpack(scene.arrays)
    np.testing.assert_array_equal(arrays["partner"][:, 0].astype(int) - 1, rough_map.indices)
    np.testing.assert_array_equal(arrays["source_faces"].reshape(-1, 3), source.faces)
    np.testing.assert_array_equal(arrays["truth"][:, 0].astype(int) - 1, truth)
    figures = {row["name"]: row["value"] for row in scene.description["figures"]}
    assert figures["matched"] == pytest.approx(rough_map.matched.mean())
    assert figures["within 1 %"] < 0.95 < figures["matched"] + 0.1
    assert ["options.points", "1024"] in scene.description["details"]
    json.dumps(scene.description, allow_nan=False)


def test_shapes_of_another_size_are_refused(people: tuple[Shape, Shape]) -> None:
    source, target = people
    with pytest.raises(InputError, match="try the shapes in the other order"):
        build_scene(source, target.subset([0, 1]), Correspondence(np.arange(3), 4))


def test_degenerate_pairs_have_a_report() -> None:
    view(np.zeros((1, 3)), np.zeros((1, 3)), [-1])
    view(np.zeros((4, 3)), np.zeros((2, 3)), [0, 1, -1, 0], truth=[0, -1, 1, 0])


def test_nothing_in_a_name_can_become_markup(tmp_path: Path) -> None:
    shape = Shape(np.eye(3), name=HOSTILE)
    details = {HOSTILE: HOSTILE, "nested": {"k": [HOSTILE]}}
    map_ = Correspondence(np.arange(3), 3, details=details, source=shape, target=shape)
    page = view(shape, shape, map_, save=tmp_path / "report.html").html
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    scripts = re.findall(r"<script\b", page)
    assert len(scripts) == 3
    assert "<img src=x" not in page
    assert page.count("</script>") == 3
    start = page.index('id="description">') + len('id="description">')
    description = json.loads(page[start : page.index("</script>", start)])
    assert description["source"]["name"] == HOSTILE
    assert "http://" not in page.replace("http://www.w3.org/", "")
    framed = notebook_html(map_)
    assert framed is not None
    assert framed.count("<") == 2  # the frame alone; all else is escaped
    assert "</script" not in bundle().script


def test_json_for_a_page_is_inert_and_whole() -> None:
    text = inert_json({"a": HOSTILE})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": HOSTILE}


def test_the_page_may_not_reach_out() -> None:
    page = view(np.eye(3), np.eye(3), [0, 1, 2]).html
    match = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert match is not None
    rules = dict(rule.split(" ", 1) for rule in match[1].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'none'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in match[1]
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_the_bundle_is_small() -> None:
    assets = Path(ltenet.viewer.__file__).parent / "assets"
    assert sum(file.stat().st_size for file in assets.iterdir()) <= 1_000_000


def test_the_same_map_gives_the_same_report(
    people: tuple[Shape, Shape], rough_map: Correspondence
) -> None:
    first, second = (view(*people, rough_map).html for _ in range(2))
    assert first == second


def test_reports_do_not_replace_files(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("mine")
    with pytest.raises(UsageError, match="file that exists"):
        view(np.eye(3), np.eye(3), [0, 1, 2], save=file)
    assert file.read_text() == "mine"
    view(np.eye(3), np.eye(3), [0, 1, 2], save=file, force=True)
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_notebooks_show_a_frame(people: tuple[Shape, Shape], rough_map: Correspondence) -> None:
    assert notebook_html(rough_map) is None
    shown = notebook_html(rough_map.attached(*people))
    assert shown is not None
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    assert Report("<p>")._repr_html_().endswith('srcdoc="&lt;p&gt;"></iframe>')


def test_the_picture_shows_both(people: tuple[Shape, Shape], rough_map: Correspondence) -> None:
    image = picture(*people, rough_map, size=(120, 140))
    half = image.shape[1] // 2
    for side in (image[:140, :half], image[:140, half:]):
        assert 0.05 < (side < 250).any(axis=2).mean() < 0.8


def test_the_picture_is_upright_and_from_one_side(
    people: tuple[Shape, Shape], rough_map: Correspondence
) -> None:
    source, target = people
    turns = [random_rotation("any", np.random.default_rng(seed)) for seed in (1, 2)]
    plain = picture(source, target, rough_map, size=(60, 70)).astype(int)
    known = replace(rough_map, details={"upright": turns[1].T.tolist()})
    turned = picture(
        source.rotated(turns[0]), target.rotated(turns[1]), known, size=(60, 70)
    ).astype(int)
    shown, expected = ((image < 250).any(axis=2) for image in (turned, plain))
    assert (shown != expected).mean() < 0.03
    for odd in ("text", [[1, 2], [3]], np.ones((3, 3)).tolist(), None):
        strange = replace(rough_map, details={"upright": odd})
        np.testing.assert_array_equal(picture(source, target, strange, size=(60, 70)), plain)
