"""The app under load and bad manners: silent and slow clients, many jobs, odd requests."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip(
    "uvicorn", reason="the app's server is not installed: pip install 'ltenet[app]'"
)
pytest.importorskip("starlette", reason="the app's server is not installed")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ends the app by signals")

START = (
    "import sys, ltenet.viewer.listening as listening, ltenet.viewer.guarding as guarding\n"
    "listening.HEADER_SECONDS = guarding.CHUNK_SECONDS = 1.0\n"
    "listening.CONNECTIONS = 12\n"
    "from ltenet.cli import main\n"
    "sys.exit(main(['app', *sys.argv[1:]]))\n"
)
CLOUD = "".join(f"{i % 7} {i % 5} {i % 3}.{i}\n" for i in range(60)).encode()


class App(NamedTuple):
    port: int
    token: str

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"X-Ltenet-Token": self.token})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def started(folder: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START, *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", **environment},
    )


def address_of(process: subprocess.Popen[str]) -> App:
    assert process.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", process.stderr.readline())
    assert found is not None
    return App(int(found[1]), found[2])


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    process = started(tmp_path_factory.mktemp("app"), "--no-browser")
    yield address_of(process)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "Traceback" not in told
    assert len(told.splitlines()) < 20  # no flood


def closed(client: socket.socket) -> bool:
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def test_headers_must_arrive(app: App) -> None:
    with app.connect() as silent, app.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost:")
        start = time.monotonic()
        assert closed(silent)
        assert closed(slow)
        assert time.monotonic() - start < 15


def test_bodies_must_arrive(app: App) -> None:
    with app.connect() as slow:
        slow.sendall(
            b"PUT /api/files?name=a.xyz HTTP/1.1\r\n"
            + f"Host: 127.0.0.1:{app.port}\r\nX-Ltenet-Token: {app.token}\r\n".encode()
            + b"Content-Length: 1000\r\n\r\n0 0 0\n"
        )
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_silent_clients_make_room(app: App) -> None:
    clients = [app.connect() for _ in range(60)]
    try:
        start = time.monotonic()
        assert app.ask("GET", "/api/about")[0] == 200
        assert time.monotonic() - start < 10
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b'"text"',
        b"[" * 9000,
        b"\xff\xfe",
        b'{"source": 1, "target": [], "model": {}, "effort": []}',
        b'{"source": {"a": 1}, "target": null, "model": ["auto"], "effort": {"fine": 1}}',
        b'{"effort": ["fine"]}',
        b'{"source": 1e999}',
        b'{"source": ' + b"9" * 6000 + b"}",
    ],
)
def test_requests_of_the_wrong_type_are_the_clients_fault(app: App, body: bytes) -> None:
    status, answer = app.ask("POST", "/api/jobs", body)
    assert status == 400
    assert "expected" in answer["error"]


def test_fifty_jobs_stay_bounded(app: App) -> None:
    statuses = []
    slow = [app.connect() for _ in range(4)]  # clients that never end their request
    for client in slow:
        client.sendall(b"PUT /api/files?name=a.xyz HTTP/1.1\r\nHost:")
    for _ in range(54):
        pair = [app.ask("PUT", f"/api/files?name={n}.xyz", CLOUD)[1]["id"] for n in "ab"]
        order = {"source": pair[0], "target": pair[1], "model": "human", "effort": "quick"}
        statuses.append(app.ask("POST", "/api/jobs", json.dumps(order).encode())[0])
    assert statuses[:50] == [200] * 50
    assert 400 in statuses[50:]
    start = time.monotonic()
    jobs = app.ask("GET", "/api/jobs")[1]["jobs"]
    assert time.monotonic() - start < 5
    queued = [job for job in jobs if job["state"] == "queued"]
    assert 40 < len(queued) <= 50
    assert len(jobs) <= 50 + 1 + 12
    for client in slow:
        client.close()
    for job in jobs:
        assert app.ask("DELETE", f"/api/jobs/{job['id']}")[0] == 200


def test_the_browser_is_led_on_by_a_private_page(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\n"
        "import json, os, re, sys, urllib.parse, urllib.request\n"
        "page = urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[1]).path)\n"
        "content = open(page).read()\n"
        "address = re.search(r'url=(http[^#]*)', content)[1]\n"
        "status = urllib.request.urlopen(address, timeout=10).status\n"
        "told = [sys.argv[1:], content, os.stat(page).st_mode,\n"
        "        os.stat(os.path.dirname(page)).st_mode, status]\n"
        f"open({str(note)!r} + '.part', 'w').write(json.dumps(told))\n"
        f"os.rename({str(note)!r} + '.part', {str(note)!r})\n"
    )
    browser.chmod(0o700)
    process = started(tmp_path, BROWSER=f"{browser} %s")
    try:
        app = address_of(process)
        deadline = time.monotonic() + 30
        while not note.is_file() and time.monotonic() < deadline:
            time.sleep(0.05)
        arguments, content, page_mode, folder_mode, status = json.loads(note.read_text())
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert app.token not in " ".join(arguments)
    assert arguments[0].startswith("file://")
    assert app.token in content
    assert stat.S_IMODE(page_mode) == 0o600
    assert stat.S_IMODE(folder_mode) == 0o700
    assert status == 200  # the server listened when the browser opened
    assert process.returncode == 130
    assert list(tmp_path.glob("ltenet-app*")) == []


def test_folders_of_killed_apps_are_swept(tmp_path: Path) -> None:
    first = started(tmp_path, "--no-browser")
    address_of(first)
    first.kill()
    first.communicate(timeout=30)
    (left,) = tmp_path.glob("ltenet-app*")
    second = started(tmp_path, "--no-browser")
    address_of(second)
    try:
        assert not left.exists()
        assert len(list(tmp_path.glob("ltenet-app*"))) == 1
    finally:
        second.send_signal(signal.SIGHUP)
        second.communicate(timeout=30)
    assert second.returncode == 129
