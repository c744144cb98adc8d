"""README runs as it stands, and every command and link of the documentation is real."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ltenet import cli

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"]

_BLOCK = re.compile(
    r"^(?P<skip><!-- not run: [^>]+ -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


class Block(NamedTuple):
    """A fenced block; `runs` is False if the comment above it says `<!-- not run: why -->`."""

    language: str
    code: str
    runs: bool


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m["language"], m["code"], m["skip"] is None) for m in _BLOCK.finditer(text)]


def commands(page: Path) -> list[str]:
    """Commands of ltenet in the shell blocks of a page, without comments."""
    found = []
    for block in blocks(page):
        if block.language in ("bash", "sh", "console"):
            for line in block.code.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["ltenet"] and "..." not in words:
                    found.append(shlex.join(words[1:]))
    return found


@pytest.mark.slow
def test_readme_runs_from_top_to_bottom(tmp_path: Path) -> None:
    source = str(ROOT / "src")
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    interpreters = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
    run = [block for block in blocks(README) if block.runs]
    assert {block.language for block in run} == {"bash", "python"}
    for block in run:
        result = subprocess.run(
            [*interpreters[block.language], block.code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1200,
        )
        assert result.returncode == 0, f"{block.code}\n{result.stderr}"
    written = {path.name for path in tmp_path.iterdir()}
    assert {"map.npz", "map.html", "map.png", "wrapped.ply", "again.html", "report.html"} <= written


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 160


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands(page):
        try:
            cli._parse(shlex.split(command))
        except SystemExit:
            pytest.fail(f"ltenet {command}\n{capsys.readouterr().err}")


def test_every_verb_is_on_its_page() -> None:
    page = (README.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [verb for verb in cli.VERBS if f"`{verb}" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link
