"""The report in a real browser: it draws, answers to the pointer and the keys, and stays shut."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.shape import Shape
from ltenet.viewer import notebook_html, view
from ltenet.viewer.colors import ColorFrame, position_colors
from tools.chromium import Browser, Page

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"alert(1)\">"
STAGE = "window.ltenet.viewer.stage"


@pytest.fixture(scope="module")
def report(
    tmp_path_factory: pytest.TempPathFactory,
    people: tuple[Shape, Shape],
    rough_map: Correspondence,
) -> Path:
    """Two people with every kind of thing to show."""
    source, target = people
    labels = np.digitize(target.points[:, 1], np.linspace(-0.5, 0.5, 5))
    colors = np.tile(np.array([[200, 40, 40], [40, 40, 200]], np.uint8), (len(target), 1))
    dressed = Shape(target.points, target.faces, colors[: len(target)], labels, name="sitter")
    path = tmp_path_factory.mktemp("report") / "report.html"
    view(source, dressed, rough_map, save=path, truth=np.arange(len(source)))
    return path


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    page = opened(browser, report)
    yield page
    assert page.errors == []
    page.close()


def opened(browser: Browser, path: Path, **options: object) -> Page:
    options = {"size": (900, 560), **options}  # software drawing: few pixels
    page = browser.open(path.as_uri(), **options)  # type: ignore[arg-type]
    page.wait_for("window.ltenet && window.ltenet.ready")
    page.run(f"{STAGE}.settings.animated = false")
    return page


def covered(page: Page) -> dict[str, float]:
    shares: dict[str, float] = page.run(f"{STAGE}.coverage()")
    return shares


def screen_position(page: Page, side: str, index: int) -> tuple[float, float]:
    x, y, left, top = page.run(
        f"(() => {{ const s = {STAGE}, v = s.views.{side}; const p = v.positionOf({index}, 0);"
        " const q = v.project(p), b = s.root.getBoundingClientRect();"
        " return [q.x, q.y, b.left, b.top]; })()"
    )
    return left + x, top + y


def test_the_report_draws_and_asks_nobody(page: Page, screenshots: Path) -> None:
    shares = covered(page)
    assert all(0.05 < share < 0.6 for share in shares.values())
    assert set(shares) == {"source", "target"}
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.requests)
    assert page.run("document.title") == "walker → sitter"
    page.screenshot(screenshots / "report.png")


def test_pointing_finds_the_partner(
    page: Page, people: tuple[Shape, Shape], rough_map: Correspondence, screenshots: Path
) -> None:
    source, _ = people
    # Far from its neighbours, so that pixels do not matter, and nearest to the camera of those.
    spacing = KDTree(source.points).query(source.points, k=2)[0][:, 1]
    lonely = np.flatnonzero((spacing > np.quantile(spacing, 0.9)) & rough_map.matched)
    index = page.run(
        f"(() => {{ const v = {STAGE}.views.source; let best = 0, least = 1e9;"
        f" for (const i of {lonely.tolist()}) {{ const p = v.positionOf(i, 0);"
        "  const d = p.distanceTo(v.camera.position);"
        "  if (v.faces(i, p) && d < least) { least = d; best = i; } } return best; })()"
    )
    wanted = np.array(screen_position(page, "source", index))
    page.mouse("Moved", *wanted)
    found = page.wait_for(f"{STAGE}.hovered")
    assert found["side"] == "source"
    index = found["index"]  # itself, or one that is as good as under the pointer
    assert np.abs(screen_position(page, "source", index) - wanted).max() < 3
    ends = page.run("[...document.querySelectorAll('.end b')].map(e => e.textContent)")
    assert [end.replace(",", "") for end in ends] == [str(index), str(rough_map.indices[index])]
    text = page.run("document.querySelector('.selected').textContent")
    assert "confidence" in text
    assert "true partner" in text
    page.click(*wanted)
    page.wait_for(f"{STAGE}.pinned")
    page.screenshot(screenshots / "partner.png")
    page.key("Escape")
    assert page.run(f"{STAGE}.selection") is None


def test_pointing_at_the_target_leads_back(page: Page) -> None:
    index = page.run(f"{STAGE}.views.target.shape.partner.findIndex((i) => i >= 0)")
    page.run(f"{STAGE}.select('target', {index})")
    back = page.run(f"{STAGE}.views.target.shape.partner[{index}]")
    ends = page.run("[...document.querySelectorAll('.end b')].map(e => e.textContent)")
    assert [end.replace(",", "") for end in ends] == [str(back), str(index)]


def test_every_colour_mode_draws_something_else(page: Page, screenshots: Path) -> None:
    modes = page.run("[...document.querySelectorAll('.mode')].map(e => e.dataset.mode)")
    assert modes == [
        "map", "pattern", "confidence", "error", "distance", "overlap", "labels", "colors", "plain",
    ]  # fmt: skip
    pictures = {}
    for number, mode in enumerate(modes):
        if number % 2:
            page.key(str(number + 1))
        else:
            page.click_on(f".mode[data-mode={mode}]")
        assert page.run(f"{STAGE}.settings.mode") == mode
        assert page.run("document.querySelector('.mode[aria-checked=true]').dataset.mode") == mode
        assert min(covered(page).values()) > 0.05
        pictures[mode] = page.run(
            f"(() => {{ {STAGE}.draw(); return {STAGE}.canvas.toDataURL(); }})()"
        )
        page.screenshot(screenshots / f"mode_{mode}.png")
    assert len(set(pictures.values())) == len(modes)


def test_the_overlap_is_told_for_both_shapes(
    page: Page, people: tuple[Shape, Shape], rough_map: Correspondence
) -> None:
    """Shares against an oracle: partners in the map, and target points near one."""
    target = people[1]
    near = KDTree(rough_map.positions(target)[rough_map.matched]).query(target.points)[0]
    shares = [rough_map.matched.mean(), (near < 0.03 * target.diameter).mean()]
    page.click_on(".mode[data-mode=overlap]")
    texts = page.run(
        "[...document.querySelectorAll('.overlap-row span')].map((e) => e.textContent)"
    )
    assert texts == [
        f"{100 * share:.1f} % in common, {100 - 100 * share:.1f} % without partner"
        for share in shares
    ]
    assert page.run("document.querySelectorAll('.hatched').length") == 0
    chips = page.run("[...document.querySelectorAll('.chip')].map((e) => e.textContent)")
    assert chips == ["in common", "no partner"]
    page.click_on(".mode[data-mode=map]")
    assert page.run("document.querySelectorAll('.hatched').length") == 1


def test_the_colours_are_those_of_python(page: Page) -> None:
    rng = np.random.default_rng(4)
    frame = ColorFrame(rng.normal(size=3), 0.3 + rng.random(3))
    points = rng.normal(size=(40, 3))
    shown = page.run(
        f"{points.tolist()}.map((p) => window.ltenet.positionColor(...p, "
        f"{{middle: {frame.middle.tolist()}, reach: {frame.reach.tolist()}}}))"
    )
    assert np.abs(np.array(shown) - position_colors(points, frame)).max() <= 1


def test_the_morph_ends_on_the_target(
    page: Page, people: tuple[Shape, Shape], rough_map: Correspondence, screenshots: Path
) -> None:
    _, target = people
    page.run("window.ltenet.viewer.set({morph: 1})")
    index = int(np.flatnonzero(rough_map.matched)[100])
    place = page.run(f"{STAGE}.views.source.positionOf({index}, 1).toArray()")
    low, size = target.points.min(axis=0), np.ptp(target.points, axis=0)
    expected = (target.points[rough_map.indices[index]] - low - size / 2) / (
        np.linalg.norm(size) / 2
    )
    np.testing.assert_allclose(place, expected, atol=1e-4)
    page.screenshot(screenshots / "morph.png")
    page.run("window.ltenet.viewer.set({morph: 0})")
    page.key("m")
    page.wait_for(f"{STAGE}.settings.morph > 0")
    page.key("m")


def test_keys_and_switches(page: Page) -> None:
    page.key("l")
    assert page.run(f"{STAGE}.settings.lines") == 80
    page.key("c")
    page.key("ArrowLeft")
    assert page.run(f"{STAGE}.settings.linked") is False
    page.key("?")
    assert page.run("document.querySelector('.help').hidden") is False
    page.key("Escape")
    assert page.run("document.querySelector('.help').hidden") is True
    page.click_on("[data-setting=wire]")
    assert page.run(f"{STAGE}.settings.wire") is True
    page.key("v")
    assert set(covered(page)) == {"source"}
    page.key("n")
    assert page.run(f"{STAGE}.pinned.side") == "source"


def test_own_cameras_go_their_own_ways(page: Page) -> None:
    page.click_on("[data-setting=linked]")
    x, y = screen_position(page, "target", 0)
    page.mouse("Pressed", x, y, button="left", clickCount=1)
    for step in range(1, 6):
        page.mouse("Moved", x + 12 * step, y, button="left", buttons=1)
    page.mouse("Released", x + 60, y, button="left")
    yaws = page.run(f"[{STAGE}.views.source.orbit.goal.yaw, {STAGE}.views.target.orbit.goal.yaw]")
    assert yaws[1] < yaws[0] - 0.2


def test_light_and_dark(browser: Browser, report: Path, screenshots: Path) -> None:
    page = opened(browser, report, dark=True)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.run(paper) == "rgb(18, 20, 25)"
    page.screenshot(screenshots / "dark.png")
    page.key("t")
    assert page.run(paper) == "rgb(244, 245, 247)"
    assert page.errors == []
    page.close()


def test_on_a_phone_the_views_stand_above_each_other(
    browser: Browser, report: Path, screenshots: Path
) -> None:
    page = opened(browser, report, size=(390, 844))
    assert page.run(f"{STAGE}.root.dataset.layout") == "column"
    assert min(covered(page).values()) > 0.03
    assert page.run("document.documentElement.scrollWidth") <= 390
    page.screenshot(screenshots / "phone.png")
    page.click_on(".handle")
    assert page.run("document.querySelector('.panel').getBoundingClientRect().height") > 400
    page.screenshot(screenshots / "phone_panel.png")
    assert page.errors == []
    page.close()


def test_a_finger_finds_the_partner(browser: Browser, report: Path, screenshots: Path) -> None:
    page = opened(browser, report, size=(390, 844))
    page.call("Emulation.setTouchEmulationEnabled", {"enabled": True})
    page.tap(*screen_position(page, "source", page.run(f"{STAGE}.order[0]")))
    picked = page.wait_for(f"{STAGE}.pinned")
    assert picked["side"] == "source"
    # Told at once, without opening the panel.
    top, height = page.run(
        "(() => { const b = document.querySelector('.end').getBoundingClientRect();"
        " return [b.top, innerHeight - b.bottom]; })()"
    )
    assert top > 500
    assert height > 0
    page.screenshot(screenshots / "phone_point.png")
    assert page.errors == []
    page.close()


def test_on_a_projector_texts_grow(browser: Browser, report: Path, screenshots: Path) -> None:
    page = opened(browser, report, size=(1920, 1080))
    assert page.run("document.querySelector('.mode').getBoundingClientRect().height") > 44
    assert page.run("document.querySelector('.scroll').scrollWidth") <= 430
    assert page.run("document.documentElement.scrollWidth") <= 1920
    page.run(f"{STAGE}.select('source', 608)")
    page.screenshot(screenshots / "projector.png")
    assert page.errors == []
    page.close()


def test_pointing_draws_no_shape_anew(page: Page) -> None:
    page.wait_for(f"!{STAGE}._frame")
    page.run(
        f"(() => {{ window.draws = 0; const s = {STAGE}, d = s.draw;"
        " s.draw = () => { window.draws += 1; d.call(s); }; })()"
    )
    for index in page.run(f"{STAGE}.order.slice(0, 8)"):
        page.mouse("Moved", *screen_position(page, "source", index))
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.run(f"{STAGE}.hovered") is not None
    assert page.run("window.draws") == 0
    # At rest the depth of the picture is kept, and says the same as a look at the place itself.
    kept, fresh = page.run(
        f"(() => {{ const s = {STAGE}, v = s.views.source;"
        " const at = v.project(v.positionOf(s.order[3], 0)), kept = s.pick(at);"
        " s.picker.seen.source = ''; return [kept, s.pick(at)]; })()"
    )
    assert kept == fresh


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path, screenshots: Path) -> None:
    rng = np.random.default_rng(5)
    shape = Shape(rng.normal(size=(300, 3)), name=HOSTILE, labels=np.arange(300) % 3)
    map_ = Correspondence(np.arange(300), 300, details={HOSTILE: HOSTILE})
    view(shape, shape, map_, save=tmp_path / "hostile.html", title=HOSTILE)
    page = opened(browser, tmp_path / "hostile.html")
    page.key("n")
    page.run("document.querySelector('details').open = true")
    assert page.run("document.title") == HOSTILE
    assert page.run("document.querySelector('.label b').textContent") == HOSTILE
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.errors == []
    page.screenshot(screenshots / "hostile.png")
    page.close()


def test_the_policy_holds_against_injected_scripts(page: Page) -> None:
    page.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.bad = 1';"
        " document.body.append(s); })()"
    )
    assert page.run("window.bad === undefined")
    assert (
        page.run("fetch('https://example.org/').then(() => 'sent', () => 'refused')") == "refused"
    )
    assert any("Content Security Policy" in error for error in page.errors)
    page.errors.clear()


def test_a_large_cloud(browser: Browser, tmp_path: Path, screenshots: Path) -> None:
    rng = np.random.default_rng(6)
    ball = rng.normal(size=(60_000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    order = rng.permutation(len(ball))
    path = tmp_path / "large.html"
    view(ball, (ball * (1, 1.4, 0.8))[order], np.argsort(order), save=path)
    page = opened(browser, path)
    assert min(covered(page).values()) > 0.1
    x, y = screen_position(page, "source", 0)
    page.click(x, y)
    picked = page.wait_for(f"{STAGE}.pinned")
    assert picked["side"] == "source"
    page.screenshot(screenshots / "large.png")
    assert page.errors == []
    page.close()


def test_a_notebook_frame_shows_the_viewer(
    browser: Browser, tmp_path: Path, people: tuple[Shape, Shape], rough_map: Correspondence
) -> None:
    shown = notebook_html(rough_map.attached(*people))
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'>{shown}", encoding="utf-8")
    page = browser.open(file.as_uri())
    # The frame is sandboxed, so it can only be looked at from outside: an empty one is a few
    # thousand bytes as a picture, one with two shapes many times that.
    deadline = time.monotonic() + 60
    while len(page.screenshot(tmp_path / "shot.png")) < 60_000 and time.monotonic() < deadline:
        page.run("new Promise((done) => setTimeout(done, 200))")
    assert (tmp_path / "shot.png").stat().st_size > 60_000
    assert page.errors == []
    page.close()
