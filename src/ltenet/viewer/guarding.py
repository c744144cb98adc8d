"""Access control of the app: own host, own origin, and the token."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from ltenet.errors import LTENetError, UsageError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
TOKEN_HEADER = "x-ltenet-token"
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

#: Seconds until the next chunk of a body, and until all of it, must arrive.
CHUNK_SECONDS = 15.0
BODY_SECONDS = 600.0

logger = logging.getLogger(__name__)

Handler = Callable[["Request"], Awaitable["Response"]]


def guard(handler: Handler, *, token: str | None, port: int) -> Handler:
    """Refuse other hosts, other origins and, if a token is set, requests without it."""
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    origins = {f"http://{host}" for host in hosts}

    async def guarded(request: Request) -> Response:
        headers = request.headers
        site = headers.get("sec-fetch-site", "none")
        if headers.get("host") not in hosts:
            response = json_answer({"error": "unknown host"}, 421)
        elif headers.get("origin", next(iter(origins))) not in origins or (
            token is not None and site not in ("same-origin", "none")
        ):
            response = json_answer({"error": "cross-site request"}, 403)
        elif token is not None and not secrets.compare_digest(
            headers.get(TOKEN_HEADER, "").encode(), token.encode()
        ):
            response = json_answer({"error": "open the address that ltenet app printed"}, 401)
        else:
            response = await _answered(handler, request)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        return response

    return guarded


async def _answered(handler: Handler, request: Request) -> Response:
    """Answer errors with one sentence, without a traceback for every bad request."""
    from starlette.requests import ClientDisconnect

    try:
        return await handler(request)
    except LTENetError as error:
        return json_answer({"error": str(error)}, 400)
    except (ClientDisconnect, asyncio.TimeoutError):
        return json_answer({"error": "the request did not arrive in time"}, 408)
    except OSError as error:
        return json_answer({"error": f"the app cannot write ({error.strerror or error})"}, 507)
    except Exception as error:
        logger.error("%s %s: unexpected %r", request.method, request.url.path, error)
        return json_answer({"error": f"unexpected {type(error).__name__}"}, 500)


async def body_of(request: Request, most: int) -> AsyncIterator[bytes]:
    """Yield the body of a request in chunks, within the limits of size and time."""
    chunks = request.stream()
    size, deadline = 0, asyncio.get_running_loop().time() + BODY_SECONDS
    while True:
        left = deadline - asyncio.get_running_loop().time()
        try:
            chunk = await asyncio.wait_for(chunks.__anext__(), max(0.0, min(left, CHUNK_SECONDS)))
        except StopAsyncIteration:
            return
        size += len(chunk)
        if size > most:
            raise UsageError(
                f"got more than {most:,} bytes, expected at most that; try to reduce the shape, "
                "or `ltenet match`"
            )
        yield chunk


def json_answer(data: object, status: int = 200) -> Response:
    """Answer with JSON."""
    from starlette.responses import JSONResponse

    return JSONResponse(data, status_code=status)
