"""The local app: a page, uploads, a queue and downloads, for one user on one machine.

It listens on 127.0.0.1 alone. A random token, which only the address we print holds, guards every
request that does something; the browser sends it in a header, so that no other page can. Requests
under a foreign name (`Host`) or from a foreign page (`Origin`) are refused. Nothing is logged,
nothing leaves the machine, and the temporary folder goes with the server.
"""

from __future__ import annotations

import json
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltenet.errors import MissingError, UsageError
from ltenet.io import LOADERS
from ltenet.viewer.guarding import HOST, Handler, guard, json_answer
from ltenet.viewer.jobs import Jobs
from ltenet.viewer.page import app_html, policy
from ltenet.viewer.uploads import BYTE_LIMIT, check_beginning, checked_suffix, display_name
from ltenet.viewer.work import EFFORTS

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

#: Uploaded files that may wait for somebody to match them; then the oldest goes.
_FILE_LIMIT = 8


def serve(*, port: int = 0, announce: Callable[[str], None]) -> None:
    """Run the app until it is interrupted.

    Parameters
    ----------
    port
        Where to listen; 0 takes a free one.
    announce
        Called with the address, token included, once the port is ours.
    """
    uvicorn = _imported("uvicorn")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"port {port} cannot be used ({error}); a free one from 1024 to 65535 is needed; "
            "leave --port out to get one"
        ) from None
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    with (
        _ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="ltenet-app-", ignore_cleanup_errors=True) as folder,
    ):
        app = build_app(Path(folder), token=token, port=port)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        announce(f"http://{HOST}:{port}/#{token}")
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            listener.close()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a terminal that closes, or whoever ends us politely, leave no files behind either."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = [(number, signal.signal(number, end)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def build_app(folder: Path, *, token: str, port: int) -> Starlette:
    """Return the ASGI application; files go to `folder`."""
    _imported("starlette")
    from starlette.applications import Starlette
    from starlette.routing import Route

    state = _State(folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        state.jobs = Jobs(state.results)
        yield
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


class _State:
    """What the handlers share: the uploaded files and the jobs."""

    jobs: Jobs

    def __init__(self, folder: Path) -> None:
        self.uploads, self.results = folder / "uploads", folder / "results"
        self.uploads.mkdir()
        self.results.mkdir()
        self._names: dict[str, str] = {}

    async def upload(self, request: Request) -> Response:
        """Take one file as the body, never more of it than is allowed."""
        name = request.query_params.get("name", "")
        suffix = checked_suffix(name)
        while len(self._names) >= _FILE_LIMIT:  # left behind by pages that were closed
            oldest = next(iter(self._names))
            del self._names[oldest]
            (self.uploads / oldest).unlink(missing_ok=True)
        stem = secrets.token_hex(8)
        path = self.uploads / f"{stem}{suffix}"
        size = 0
        try:
            with path.open("xb") as stream:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > BYTE_LIMIT:
                        raise UsageError(
                            f"more than {BYTE_LIMIT:,} bytes came; a smaller file is needed; "
                            "reduce the shape, or match it with `ltenet match`"
                        )
                    stream.write(chunk)
            check_beginning(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._names[path.name] = display_name(name)
        return json_answer({"id": path.name, "name": display_name(name), "bytes": size})

    async def add_job(self, request: Request) -> Response:
        """Queue a pair of uploaded files."""
        wanted = await _small_json(request)
        model, effort = wanted.get("model", "auto"), wanted.get("effort", "fine")
        known_options = model in _models() and effort in EFFORTS
        pair = [wanted.get("source"), wanted.get("target")]
        known = all(isinstance(file, str) and file in self._names for file in pair)
        if not known or pair[0] == pair[1] or not known_options:
            raise UsageError(
                "a pair that is not known came; two uploaded files and one of the models are "
                "needed; upload the files again"
            )
        names = [self._names[str(file)] for file in pair]
        job = self.jobs.add(
            self.uploads / str(pair[0]),
            self.uploads / str(pair[1]),
            source_name=names[0],
            target_name=names[1],
            model=str(model),
            effort=str(effort),
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
        """Send a result; its name is looked up in a list, never joined from what came."""
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
        }
    )


def _models() -> list[str]:
    """List the shipped weights, without `ltenet.model`: only the worker shall load torch."""
    folders = (files("ltenet") / "weights").iterdir()
    return ["auto", *sorted(entry.name for entry in folders if entry.is_dir())]


async def _small_json(request: Request) -> dict[str, Any]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > 10_000:
            raise UsageError("a long request came; a short one is needed; use the page")
    try:
        wanted = json.loads(body)
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict):
        raise UsageError("a request that is not JSON came; an object is needed; use the page")
    return wanted


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingError(
            f"{name} is not installed; the app needs it; install it with: pip install 'ltenet[app]'"
        ) from None
