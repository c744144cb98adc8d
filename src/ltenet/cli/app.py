"""`ltenet app`: match by drag and drop in the browser. What it does and refuses: docs/viewer.md."""

from __future__ import annotations

from dataclasses import dataclass

from ltenet.cli.command import Command, Result
from ltenet.cli.output import say


@dataclass(frozen=True, kw_only=True)
class App(Command):
    """Start the app on this machine and open it in the browser; end it with Ctrl-C.

    Drop two files, watch the stages, explore the map, download it. Files stay on this machine and
    are removed when the app ends.
    """

    port: int = 0
    """Where to listen on 127.0.0.1; 0 takes a free port."""
    no_browser: bool = False
    """Only print the address."""

    def run(self) -> Result:
        """Serve until interrupted."""
        from ltenet.viewer.server import serve

        addresses: list[str] = []

        def announce(address: str) -> None:
            addresses.append(address)
            say(f"ltenet app at {address}\nend it with Ctrl-C")

        serve(port=self.port, announce=announce, browser=not self.no_browser)
        return Result({"address": addresses[0]}, "the app has ended")


COMMAND = App
