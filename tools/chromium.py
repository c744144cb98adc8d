"""A headless Chromium over a pipe: just enough of the DevTools protocol for our tests.

No driver and no package stand between: Chromium reads commands from one pipe and writes answers and
events to another, as JSON texts that end with a NUL.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe",
)
#: Seconds to wait for an answer: drawing in software on a busy machine takes its time.
_PATIENCE = 180
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Path of the browser, or None."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium with a profile of its own."""

    def __init__(self, executable: str, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def pipes() -> None:
            # Chromium expects its ends as descriptors 3 and 4; they may stand in each other's way.
            source, sink = os.dup(to_browser), os.dup(from_browser)
            os.dup2(source, 3)
            os.dup2(sink, 4)

        self._process = subprocess.Popen(
            [executable, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=pipes,
            close_fds=False,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._pages: dict[str, Page] = {}

    def open(self, url: str, *, size: tuple[int, int] = (1280, 800), dark: bool = False) -> Page:
        """Open a page and wait until it has loaded."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, session["sessionId"], target)
        self._pages[page.session] = page
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            page.call(f"{domain}.enable")
        page.resize(*size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", {"features": [scheme]})
        page.call("Page.navigate", {"url": url})
        page.wait_for("document.readyState === 'complete'")
        return page

    def call(
        self, method: str, parameters: dict[str, Any] | None = None, session: str | None = None
    ) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def close(self) -> None:
        """End the browser."""
        try:
            self.call("Browser.close")
            self._process.wait(timeout=10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise RuntimeError("Chromium has ended")
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        page = self._pages.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page.note(message["method"], message["params"])
        return message


class Page:
    """One tab: what it says, what it asks the network for, and hands to use it."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target
        self.errors: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a method of the DevTools protocol for this page."""
        return self.browser.call(method, parameters, self.session)

    def note(self, method: str, parameters: dict[str, Any]) -> None:
        """Keep errors and requests."""
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(str(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript, and wait for what it promises."""
        answer = self.call(
            "Runtime.evaluate",
            {"expression": expression, "awaitPromise": True, "returnByValue": True},
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60.0) -> Any:
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = self.run(expression)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{expression} was not true within {seconds} s; errors: {self.errors}")

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Give the page another size, in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", metrics)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send one event of the mouse."""
        self.call("Input.dispatchMouseEvent", {"type": f"mouse{kind}", "x": x, "y": y, **more})

    def click(self, x: float, y: float) -> None:
        """Move to a place and click there."""
        self.mouse("Moved", x, y)
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def click_on(self, selector: str) -> None:
        """Click the middle of an element, after bringing it into view."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.click(*box)

    def tap(self, x: float, y: float) -> None:
        """Touch a place with a finger, and lift it."""
        for kind, points in (("Start", [{"x": x, "y": y}]), ("End", [])):
            self.call("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **text})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def choose_file(self, selector: str, path: Path) -> None:
        """Give a file to an `<input type=file>`."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
        self.call("DOM.setFileInputFiles", {"files": [str(path)], "nodeId": node})

    def screenshot(self, path: Path) -> bytes:
        """Save a picture of the page."""
        content = base64.b64decode(self.call("Page.captureScreenshot")["data"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return content

    def close(self) -> None:
        """Close the page."""
        self.browser.call("Target.closeTarget", {"targetId": self.target})
