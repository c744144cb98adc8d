"""One self-contained HTML page for a scene, with a policy that forbids network access.

Names and details of files are data: they stand in a JSON block in which no markup can begin, and
the page writes them as text. The policy of the page allows the two blocks of our own bundle by
their hashes and nothing else: no other script, no request, no frame.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from ltenet.viewer.scene import Scene

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Cg fill='none' stroke='%23668cff' stroke-width='3'%3E%3Ccircle cx='9' cy='16' r='5'/%3E"
    "%3Ccircle cx='23' cy='16' r='5'/%3E%3Cpath d='M14 16h4'/%3E%3C/g%3E%3C/svg%3E"
)


class Bundle(NamedTuple):
    """The built page: its script and its style."""

    script: str
    style: str


@lru_cache(maxsize=1)
def bundle() -> Bundle:
    """Read the built assets."""
    assets = files("ltenet.viewer") / "assets"
    return Bundle(
        (assets / "viewer.js").read_text(encoding="utf-8"),
        (assets / "style.css").read_text(encoding="utf-8"),
    )


def report_html(scene: Scene) -> str:
    """Return the report: bundle and scene in one page."""
    title = str(scene.description["title"])
    data = (
        f'<script type="application/json" id="description">{inert_json(scene.description)}</script>'
        f'\n<script type="text/plain" id="arrays">{scene.arrays.base64}</script>'
    )
    return _page(title, "report", data, connect="'none'")


def app_html() -> str:
    """Return the page of the app, which may fetch only from its own server."""
    return _page("ltenet", "app", "", connect="'self'")


def inert_json(data: object) -> str:
    """JSON that is safe inside a script element: without tags or comments."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def policy(*, connect: str, page: Bundle | None = None) -> str:
    """Content security policy of the pages; `connect` lists the origins they may fetch from.

    `page` holds script and style where they are not those of the viewer.
    """
    script, style = page or bundle()
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data: blob:",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _page(title: str, kind: str, data: str, *, connect: str) -> str:
    script, style = bundle()
    return f"""<!doctype html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(connect=connect)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{html.escape(title)}</title>
<link rel="icon" href="{_ICON}">
<style>{style}</style>
</head>
<body>
<div id="root" data-page="{kind}"></div>
<noscript>This page draws in 3-D and needs JavaScript; it needs no network.</noscript>
{data}
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
