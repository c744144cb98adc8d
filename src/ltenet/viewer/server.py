"""The local app: a page, uploads, a queue and downloads, for one user on one machine.

It listens on 127.0.0.1 alone. A random token, which only the address we print holds, guards every
request that does something; the browser sends it in a header, so that no other page can. Requests
under a foreign name (`Host`) or from a foreign page (`Origin`) are refused. Nothing is logged,
nothing leaves the machine, and the temporary folder goes with the server.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ltenet.errors import UsageError
from ltenet.io import LOADERS
from ltenet.matching.known_pairs import MOST
from ltenet.viewer.checking import Checker
from ltenet.viewer.guarding import Handler, body_of, guard, json_answer
from ltenet.viewer.jobs import Jobs
from ltenet.viewer.listening import imported, listen, open_browser
from ltenet.viewer.page import app_html, policy
from ltenet.viewer.pairs import checked_pairs
from ltenet.viewer.uploads import BYTE_LIMIT, check_beginning, checked_suffix, display_name
from ltenet.viewer.work import EFFORTS

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

#: Most uploaded files that wait to be matched; beyond, the oldest is removed.
_FILE_LIMIT = 8
#: Most concurrent uploads.
_UPLOAD_LIMIT = 4
#: Most bytes of a request other than an upload.
_SMALL = 10_000


def serve(*, port: int = 0, announce: Callable[[str], None], browser: bool = False) -> None:
    """Run the app until it is interrupted.

    Parameters
    ----------
    port
        Port to listen on; 0 takes a free one.
    announce
        Called with the address, token included, once the server listens.
    browser
        Open the browser then.
    """

    def ready(address: str, folder: Path) -> None:
        announce(address)
        if browser:
            open_browser(address, folder)

    listen(lambda folder, token, port: build_app(folder, token=token, port=port), port, ready)


def build_app(folder: Path, *, token: str, port: int) -> Starlette:
    """Return the ASGI application; files go to `folder`."""
    imported("starlette")
    from starlette.applications import Starlette
    from starlette.routing import Route

    state = _State(folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        state.jobs, state.checker = Jobs(state.results), Checker()
        yield
        state.checker.close()
        state.jobs.close()

    def guarded(handler: Handler) -> Handler:
        return guard(handler, token=token, port=port)

    return Starlette(
        routes=[
            Route("/", guard(_page, token=None, port=port)),
            Route("/api/about", guarded(_about)),
            Route("/api/files", guarded(state.upload), methods=["PUT"]),
            Route("/api/jobs", guarded(state.list_jobs), methods=["GET"]),
            Route("/api/jobs", guarded(state.add_job), methods=["POST"]),
            Route("/api/jobs/{job}", guarded(state.show_job), methods=["GET"]),
            Route("/api/jobs/{job}", guarded(state.cancel_job), methods=["DELETE"]),
            Route("/api/jobs/{job}/{name}", guarded(state.download), methods=["GET"]),
        ],
        lifespan=lifespan,
    )


class _Uploaded(NamedTuple):
    """A file that waits to be matched: its name on the page, and how many points it has."""

    name: str
    points: int


class _State:
    """State shared by the handlers: uploaded files and jobs."""

    jobs: Jobs
    checker: Checker

    def __init__(self, folder: Path) -> None:
        self.uploads, self.results = folder / "uploads", folder / "results"
        self.uploads.mkdir()
        self.results.mkdir()
        self._names: dict[str, _Uploaded] = {}
        self._uploading = 0

    async def upload(self, request: Request) -> Response:
        """Receive one file as the body, up to the size limit, and see whether it can be read."""
        name = request.query_params.get("name", "")
        suffix = checked_suffix(name)
        if self._uploading >= _UPLOAD_LIMIT:
            return json_answer({"error": "other files are being uploaded; try again"}, 429)
        while len(self._names) >= _FILE_LIMIT:  # left behind by pages that were closed
            oldest = next(iter(self._names))
            del self._names[oldest]
            (self.uploads / oldest).unlink(missing_ok=True)
        stem = secrets.token_hex(8)
        path = self.uploads / f"{stem}{suffix}"
        size = 0
        self._uploading += 1
        try:
            with path.open("xb") as stream:
                async for chunk in body_of(request, BYTE_LIMIT):
                    size += len(chunk)
                    stream.write(chunk)
            check_beginning(path)
            # Not here: a hostile file may take time and memory. In a thread: others must not wait.
            points = await asyncio.to_thread(self.checker.check, path, display_name(name))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            self._uploading -= 1
        self._names[path.name] = _Uploaded(display_name(name), points)
        answer = {"id": path.name, "name": display_name(name), "bytes": size, "points": points}
        return json_answer(answer)

    async def add_job(self, request: Request) -> Response:
        """Queue a pair of uploaded files."""
        wanted = await _small_json(request)
        model, effort = wanted.get("model", "auto"), wanted.get("effort", "fine")
        known_options = model in _models() and isinstance(effort, str) and effort in EFFORTS
        pair = [wanted.get("source"), wanted.get("target")]
        known = all(isinstance(file, str) and file in self._names for file in pair)
        if not known or pair[0] == pair[1] or not known_options:
            raise UsageError(
                "got a pair or options that are not known, expected two uploaded files and one of "
                "the models; try to upload the files again"
            )
        source, target = (self._names[str(file)] for file in pair)
        pairs = checked_pairs(wanted.get("pairs"), (source.points, target.points))
        job = self.jobs.add(
            self.uploads / str(pair[0]),
            self.uploads / str(pair[1]),
            source_name=source.name,
            target_name=target.name,
            model=str(model),
            effort=str(effort),
            pairs=pairs,
        )
        for file in pair:
            del self._names[str(file)]
        return json_answer(job.described())

    async def list_jobs(self, _: Request) -> Response:
        return json_answer({"jobs": [job.described() for job in self.jobs.all()]})

    async def show_job(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["job"])
        return json_answer(job.described()) if job else json_answer({"error": "no such job"}, 404)

    async def cancel_job(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            return json_answer({"error": "no such job"}, 404)
        self.jobs.cancel(job)
        return json_answer(job.described())

    async def download(self, request: Request) -> Response:
        """Send a result; its name must be in a list, so that no request can form a path."""
        from starlette.responses import FileResponse

        job = self.jobs.get(request.path_params["job"])
        offered = [] if job is None else [file["name"] for file in job.described()["downloads"]]
        name = request.path_params["name"]
        if job is None or name not in (*offered, *(("scene.json", "scene.bin") if offered else ())):
            return json_answer({"error": "no such file"}, 404)
        return FileResponse(
            job.order.output / name, filename=name, media_type="application/octet-stream"
        )


async def _page(_: Request) -> Response:
    from starlette.responses import HTMLResponse

    rules = policy(connect="'self'") + "; frame-ancestors 'none'"
    return HTMLResponse(app_html(), headers={"Content-Security-Policy": rules})


async def _about(_: Request) -> Response:
    return json_answer(
        {
            "models": _models(),
            "efforts": list(EFFORTS),
            "suffixes": list(LOADERS),
            "bytes": BYTE_LIMIT,
            "pairs": MOST,
        }
    )


def _models() -> list[str]:
    """List the shipped weights without importing torch, which only the worker loads."""
    folders = (files("ltenet") / "weights").iterdir()
    return ["auto", *sorted(entry.name for entry in folders if entry.is_dir())]


async def _small_json(request: Request) -> dict[str, Any]:
    body = b"".join([chunk async for chunk in body_of(request, _SMALL)])
    try:
        wanted = json.loads(body)
    except (ValueError, RecursionError):
        wanted = None
    if not isinstance(wanted, dict):
        raise UsageError("got a request that is no JSON object, expected one; try the page")
    return wanted
