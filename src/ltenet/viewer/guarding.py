"""Who may ask the app: its own page, under its own name, with the token."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ltenet.errors import LTENetError

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

Handler = Callable[["Request"], Awaitable["Response"]]


def guard(handler: Handler, *, token: str | None, port: int) -> Handler:
    """Refuse foreign names, foreign pages and, where there is a token, everybody without it."""
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    origins = {f"http://{host}" for host in hosts}

    async def guarded(request: Request) -> Response:
        headers = request.headers
        site = headers.get("sec-fetch-site", "none")
        if headers.get("host") not in hosts:
            response = json_answer({"error": "this name is not ours"}, 421)
        elif headers.get("origin", next(iter(origins))) not in origins or (
            token is not None and site not in ("same-origin", "none")
        ):
            response = json_answer({"error": "other pages may not ask"}, 403)
        elif token is not None and not secrets.compare_digest(
            headers.get(TOKEN_HEADER, "").encode(), token.encode()
        ):
            response = json_answer({"error": "open the address that ltenet app printed"}, 401)
        else:
            try:
                response = await handler(request)
            except LTENetError as error:
                response = json_answer({"error": str(error)}, 400)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        return response

    return guarded


def json_answer(data: object, status: int = 200) -> Response:
    """Answer with JSON."""
    from starlette.responses import JSONResponse

    return JSONResponse(data, status_code=status)
