"""How the app listens: bounds on connections and waiting, the browser, and the end.

Whoever connects and says nothing, or says it slowly, is let go; beyond `CONNECTIONS`, whoever was
silent for longest makes room. The browser is given a page of this user alone that leads on to the
address, because everybody on the machine can read the command line of a browser.
"""

from __future__ import annotations

import contextlib
import html
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ltenet.errors import MissingError, UsageError
from ltenet.files import working_folder
from ltenet.viewer.guarding import HOST

#: Connections at a time; a browser opens about six.
CONNECTIONS = 64
#: Seconds in which the headers of a request must arrive.
HEADER_SECONDS = 10.0
#: Seconds for which the page that leads the browser on stays.
REDIRECT_SECONDS = 60.0


def listen(
    application: Callable[[Path, str, int], Any], port: int, ready: Callable[..., None]
) -> None:
    """Serve an application until it is interrupted.

    Parameters
    ----------
    application
        Makes it, given a folder of its own, the token and the port.
    port
        Where to listen; 0 takes a free one.
    ready
        Called with the address, token included, and the folder once the server listens.
    """
    uvicorn = imported("uvicorn")
    listener = _bound(port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    with contextlib.closing(listener), working_folder("ltenet-app") as folder:
        config = uvicorn.Config(
            application(folder, token, port),
            http=_bounded_protocol(),
            ws="none",
            log_level="critical",  # what goes wrong is told by the answers
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )

        class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets=sockets)
                if self.started:
                    ready(f"http://{HOST}:{port}/#{token}", folder)

        Server(config).run(sockets=[listener])


def open_browser(address: str, folder: Path) -> None:
    """Open the browser with a page in the app's folder that leads on to the address, once."""
    page = folder / f"open-{secrets.token_hex(8)}.html"
    link = html.escape(address)
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={link}"><title>ltenet</title>'
            f'<a href="{link}">Open the app</a>\n'
        )
    forget = threading.Timer(REDIRECT_SECONDS, lambda: page.unlink(missing_ok=True))
    forget.daemon = True
    forget.start()
    # In a thread: browsers in the terminal would keep the server from answering them.
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()


def imported(name: str) -> Any:
    """Import a package of the extra `app`."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingError(
            f"got no package {name}, expected it for the app; try: pip install 'ltenet[app]'"
        ) from None


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"got port {port}, which cannot be used ({error}), expected a free one from 1024 to "
            "65535; try without --port"
        ) from None
    return listener


def _bounded_protocol() -> type[Any]:
    """HTTP as uvicorn speaks it, with time-outs and a bound on connections."""
    base: Any = imported("uvicorn.protocols.http.h11_impl").H11Protocol

    class BoundedProtocol(base):  # type: ignore[misc]
        heard = 0.0
        _late: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.heard = self.loop.time()
            self._watch()
            if len(self.connections) > CONNECTIONS:
                silent = min(self.connections, key=lambda one: one.heard)
                silent.transport.abort()

        def data_received(self, data: bytes) -> None:
            self.heard = self.loop.time()
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel()
            super().connection_lost(exc)

        def _watch(self) -> None:
            """Wait for the rest of the headers, but not for ever."""
            waiting = self.cycle is None or self.cycle.response_complete
            if not waiting:
                self._cancel()
            elif self._late is None:
                self._late = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

        def _cancel(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return BoundedProtocol
