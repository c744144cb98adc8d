"""The app as its user meets it: two files in, a map out; and who is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ltenet.correspondence import Correspondence
from ltenet.io import load, save
from ltenet.shape import Shape
from tools.chromium import Browser, Page

pytest.importorskip(
    "uvicorn", reason="the app's server is not installed: pip install 'ltenet[app]'"
)
pytest.importorskip("starlette", reason="the app's server is not installed")

HOSTILE = "<img src=x onerror=alert(1)>"


class Served(NamedTuple):
    """A running app, and a way to ask it."""

    address: str
    token: str
    process: subprocess.Popen[str]
    temporary: Path

    def ask(
        self, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        sent = {
            "X-Ltenet-Token": self.token,
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        request = urllib.request.Request(
            self.address + path, data=body, method=method, headers=sent
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def json(self, path: str, **more: Any) -> Any:
        return json.loads(self.ask(path, **more)[1])

    def upload(self, name: str, content: bytes) -> str:
        answer = self.json(f"api/files?name={name}", method="PUT", body=content)
        return str(answer["id"])

    def add(self, source: str, target: str) -> str:
        order = {"source": source, "target": target, "model": "human", "effort": "quick"}
        return str(self.json("api/jobs", method="POST", body=json.dumps(order).encode())["id"])


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    temporary = tmp_path_factory.mktemp("app")
    process = subprocess.Popen(
        [sys.executable, "-m", "ltenet", "app", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    match = re.search(r"(http://127\.0\.0\.1:\d+/)#(\S+)", process.stderr.readline())
    assert match is not None
    served = Served(match[1], match[2], process, temporary)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            served.ask("api/about")
            break
        except urllib.error.URLError:
            time.sleep(0.1)
    yield served
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert list(temporary.glob("ltenet-app*")) == []  # no file is left behind


@pytest.fixture(scope="module")
def small(
    people: tuple[Shape, Shape], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Two small clouds; the name of the first one is hostile."""
    folder = tmp_path_factory.mktemp("files")
    rows = np.arange(0, len(people[0]), 4)
    paths = folder / f"{HOSTILE}.ply", folder / "sitter.ply"
    for shape, path in zip(people, paths, strict=True):
        save(shape.subset(rows), path)
    return paths


def finished(app: Served, job: str, seconds: float = 180) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        state: dict[str, Any] = app.json(f"api/jobs/{job}")
        if state["state"] not in ("queued", "running"):
            return state
        time.sleep(0.1)
    raise AssertionError(f"not finished within {seconds} s: {state}")


def test_upload_explore_download(
    app: Served, browser: Browser, small: tuple[Path, Path], tmp_path: Path, screenshots: Path
) -> None:
    page = browser.open(f"{app.address}#{app.token}")
    page.wait_for("window.ltenet && window.ltenet.ready")
    assert app.token not in page.run("location.href")
    page.screenshot(screenshots / "app.png")
    page.choose_file("#file-source", small[0])
    page.choose_file("#file-target", small[1])
    page.run("document.querySelector('#model').value = 'human'")
    page.run("document.querySelector('#effort').value = 'quick'")
    page.wait_for("!document.querySelector('.primary').disabled")
    page.click_on(".primary")
    page.wait_for("!!document.querySelector('.job')")
    page.screenshot(screenshots / "app_job.png")
    page.wait_for("!!window.ltenet.viewer", seconds=240)
    shares = page.run("window.ltenet.viewer.stage.coverage()")
    assert min(shares.values()) > 0.02
    assert page.run("document.querySelector('.label b').textContent") == HOSTILE
    assert page.run("document.querySelectorAll('img').length") == 0
    page.screenshot(screenshots / "app_viewer.png")
    page.call("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    for name in ("map.npz", "report.html"):
        page.click_on(f"[data-name='{name}']")
        deadline = time.monotonic() + 60
        while not (tmp_path / name).is_file() and time.monotonic() < deadline:
            page.run("new Promise((done) => setTimeout(done, 50))")
    source, target = (load(path) for path in small)
    found = Correspondence.load(tmp_path / "map.npz", source=source, target=target)
    right = np.linalg.norm(found.positions() - target.points, axis=1) < 0.1 * target.diameter
    assert right.mean() > 0.6
    assert HOSTILE not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(url.startswith((app.address, "data:", "blob:")) for url in page.requests)
    assert page.errors == []
    page.close()


STAGE = "window.ltenet.app.viewer.stage"


def click_point(page: Page, side: str, index: int) -> int:
    """Click on a point of the stage; returns the one that is under the pointer."""
    x, y, found = page.run(
        f"(() => {{ const s = {STAGE}, v = s.views.{side};"
        f" const q = v.project(v.positionOf({index}, 0)), b = s.root.getBoundingClientRect();"
        " return [b.left + q.x, b.top + q.y, s.pick(q).index]; })()"
    )
    page.click(x, y)
    return int(found)


def rows_of(page: Page) -> list[str]:
    rows = page.run("[...document.querySelectorAll('.pairs li')].map((e) => e.textContent)")
    return [row.replace(",", "") for row in rows]


@pytest.mark.slow
def test_click_known_pairs_and_match_again(
    app: Served,
    browser: Browser,
    people: tuple[Shape, Shape],
    tmp_path: Path,
    screenshots: Path,
) -> None:
    files = tmp_path / "walker.ply", tmp_path / "sitter.ply"
    for shape, path in zip(people, files, strict=True):
        save(shape, path)
    page = browser.open(f"{app.address}#{app.token}")
    page.wait_for("window.ltenet && window.ltenet.ready")
    page.choose_file("#file-source", files[0])
    page.choose_file("#file-target", files[1])
    page.run("document.querySelector('#model').value = 'human'")
    page.run("document.querySelector('#effort').value = 'quick'")
    page.wait_for("!document.querySelector('.primary').disabled")
    page.click_on(".primary")
    page.wait_for("!!window.ltenet.app.viewer", seconds=240)
    first = page.run("window.ltenet.app.jobs.at(-1).id")
    page.run(f"{STAGE}.settings.animated = false")
    # Before: a click keeps a point, and there is nothing to match with.
    assert page.run("document.querySelector('.again').hidden")
    points = people[0].points
    ends = [int(points[:, axis].argmax()) for axis in (0, 1)]
    page.click_on(".choose")
    page.wait_for("document.querySelector('.choose').ariaPressed === 'true'")
    clicked = []
    for index in ends:
        source = click_point(page, "source", index)
        page.wait_for(f"{STAGE}.marks.some((mark) => mark.open)")
        assert "partner on the target" in page.run(
            "document.querySelector('.known .note').textContent"
        )
        clicked.append((source, click_point(page, "target", index)))
        page.wait_for(f"document.querySelectorAll('.pairs li').length === {len(clicked)}")
    assert rows_of(page) == [f"{n}{i} → {j}" for n, (i, j) in enumerate(clicked, 1)]
    assert page.run(f"{STAGE}.pinned") is None  # clicks were meant for the pairs
    page.screenshot(screenshots / "app_pairs.png")
    # A third one, half of which is dropped by Escape and then all of it removed again.
    click_point(page, "source", int(points[:, 1].argmin()))
    page.key("Escape")
    assert page.run(f"{STAGE}.marks.filter((mark) => mark.open).length") == 0
    extra = click_point(page, "source", int(points[:, 1].argmin()))
    click_point(page, "target", int(points[:, 1].argmin()))
    page.wait_for("document.querySelectorAll('.pairs li').length === 3")
    assert str(extra) in rows_of(page)[2]
    page.click_on(".pairs li:nth-child(3) .remove")
    page.wait_for("document.querySelectorAll('.pairs li').length === 2")
    page.key("Escape")
    assert page.run("document.querySelector('.choose').ariaPressed") == "false"
    page.click_on(".again")
    page.wait_for("!window.ltenet.app.viewer")
    page.screenshot(screenshots / "app_again.png")
    page.wait_for("!!window.ltenet.app.viewer", seconds=240)
    second = page.run("window.ltenet.app.jobs.at(-1).id")
    assert second != first
    assert rows_of(page) == [f"{n}{i} → {j}" for n, (i, j) in enumerate(clicked, 1)]
    page.screenshot(screenshots / "app_steered.png")
    lines = app.ask(f"api/jobs/{second}/map.txt")[1].split()
    for source, target in clicked:
        assert int(lines[source]) == target
    assert app.json(f"api/jobs/{second}")["pairs"] == [list(pair) for pair in clicked]
    assert page.errors == []
    page.close()


def test_wrong_pairs_are_refused(app: Served, small: tuple[Path, Path]) -> None:
    files = [app.upload(f"shape{n}.ply", path.read_bytes()) for n, path in enumerate(small)]
    order = {"source": files[0], "target": files[1], "model": "human", "effort": "quick"}
    body = json.dumps({**order, "pairs": [[0, 10**9]]}).encode()
    status, answer = app.ask("api/jobs", method="POST", body=body)
    assert status == 400
    assert "expected those of source and target" in json.loads(answer)["error"]
    body = json.dumps({**order, "pairs": [[0, 1]]}).encode()
    status, answer = app.ask("api/jobs", method="POST", body=body)  # the files are still there
    assert status == 200
    app.ask(f"api/jobs/{json.loads(answer)['id']}", method="DELETE")


@pytest.mark.slow
def test_results_are_complete_and_inputs_removed(app: Served, small: tuple[Path, Path]) -> None:
    job = app.add(*(app.upload(f"shape{n}.ply", path.read_bytes()) for n, path in enumerate(small)))
    state = finished(app, job)
    assert state["state"] == "done", state["message"]
    stages = [stage["name"] for stage in state["stages"]]
    assert stages[0] == "read"
    assert {"embed", "refine", "write"} <= set(stages)
    assert all(stage["share"] == 1.0 for stage in state["stages"])
    offered = [file["name"] for file in state["downloads"]]
    assert {"map.npz", "map.txt", "source_colored.ply", "report.html"} <= set(offered)
    assert {"source_wrapped.ply", "target_wrapped.ply"} <= set(offered)
    for name in offered:
        status, content = app.ask(f"api/jobs/{job}/{name}")
        assert status == 200
        assert content
    assert list(app.temporary.glob("ltenet-app*/uploads/*")) == []


@pytest.mark.slow
def test_two_jobs_queue_and_cancel_works(app: Served, small: tuple[Path, Path]) -> None:
    contents = [path.read_bytes() for path in small]
    jobs = [
        app.add(app.upload("a.ply", contents[0]), app.upload("b.ply", contents[1])) for _ in "12"
    ]
    states = [app.json(f"api/jobs/{job}")["state"] for job in jobs]
    assert states[1] == "queued"
    assert app.ask(f"api/jobs/{jobs[1]}", method="DELETE")[0] == 200
    assert finished(app, jobs[1])["state"] == "cancelled"
    app.ask(f"api/jobs/{jobs[0]}", method="DELETE")
    assert finished(app, jobs[0])["state"] == "cancelled"
    # The worker that was ended has a successor.
    again = app.add(app.upload("a.ply", contents[0]), app.upload("b.ply", contents[1]))
    assert finished(app, again)["state"] == "done"


def test_a_damaged_file_is_told_at_upload(app: Served, small: tuple[Path, Path]) -> None:
    good = app.upload("good.ply", small[1].read_bytes())
    content = small[1].read_bytes()[:-100]
    status, answer = app.ask("api/files?name=cut%20off.ply", method="PUT", body=content)
    message = json.loads(answer)["error"]
    assert status == 400
    assert message.startswith("cut off: got")
    assert "/" not in message.split(";")[0]
    assert app.ask("api/jobs", method="POST", body=json.dumps({"source": good}).encode())[0] == 400
    assert len(list(app.temporary.glob("ltenet-app*/uploads/*"))) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Ltenet_Token": "wrong"}, 401),
        ({"X_Ltenet_Token": ""}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_strangers_are_refused(app: Served, headers: dict[str, str], status: int) -> None:
    assert app.ask("api/jobs", **headers)[0] == status
    assert app.ask("api/files?name=a.ply", method="PUT", body=b"ply", **headers)[0] == status


def test_the_page_needs_no_token_but_our_name(app: Served) -> None:
    assert app.ask("", X_Ltenet_Token="")[0] == 200
    assert app.ask("", Host="evil.example")[0] == 421
    with urllib.request.urlopen(app.address, timeout=30) as answer:
        headers = answer.headers
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] is None


def test_odd_requests_are_refused(app: Served) -> None:
    before = set(app.temporary.glob("ltenet-app*/uploads/*"))  # of other tests
    assert app.ask("api/files?name=a.exe", method="PUT", body=b"MZ")[0] == 400
    assert app.ask("api/files?name=a.ply", method="PUT", body=b"MZ")[0] == 400
    assert app.ask("api/jobs", method="POST", body=b"[]")[0] == 400
    assert app.ask("api/jobs", method="POST", body=b"{" * 20_000)[0] == 400
    order = json.dumps({"source": "../../etc/passwd", "target": ["x"]}).encode()
    assert app.ask("api/jobs", method="POST", body=order)[0] == 400
    assert app.ask("api/jobs/nobody")[0] == 404
    assert app.ask("api/jobs/nobody/map.npz")[0] == 404
    assert app.ask("api/jobs/nobody/..%2f..%2fetc%2fpasswd")[0] == 404
    assert set(app.temporary.glob("ltenet-app*/uploads/*")) == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="these signals are not known there")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_no_way_to_end_leaves_files(name: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ltenet", "app", "--no-browser"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    assert "127.0.0.1" in process.stderr.readline()
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("ltenet-app*/uploads")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)  # the server takes over the signals
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=30)
    assert list(tmp_path.glob("ltenet-app*")) == []


def test_without_the_token_the_page_says_so(app: Served, browser: Browser) -> None:
    page = browser.open(app.address)
    page.wait_for("!!document.querySelector('.failure')")
    assert "token" in page.run("document.querySelector('.failure').textContent")
    page.close()
