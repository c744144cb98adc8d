"""Progress: shares that only rise, and a bar with share and time on a terminal."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

from ltenet.cli.progress import progress, stages
from ltenet.matching.config import MatchConfig


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with stages("embed") as show:
        show("embed", 0.0)
        show("refine", 0.25)
        show("refine", 0.5)
    shown = terminal.getvalue()
    assert "refining the map" in shown
    assert "50%" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"50% \d:\d\d:\d\d so far, [-:\d]{7} left", plain)
    # Nothing is said of the time left where the share is not known.
    assert re.search(r"embedding both shapes \S+ +\d:\d\d:\d\d so far *[\r\n]", plain)


def test_items_pass_unchanged_with_and_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(progress(range(3), "counting")) == [0, 1, 2]
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert list(progress(iter(range(3)), "counting", total=3)) == [0, 1, 2]
    assert "counting" in terminal.getvalue()


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with stages("embed") as show:
        show("refine", 0.5)
    assert capsys.readouterr().err == ""


def test_refinement_says_how_far_it_is() -> None:
    from ltenet.bodies.humans import HumanGenerator
    from ltenet.matching.matcher import Matcher
    from ltenet.shape import Shape

    generator = HumanGenerator()
    source, target = (
        Shape(generator.draw(3, index).vertices[::40], name=str(index)) for index in (0, 1)
    )
    told: list[tuple[str, float]] = []
    matcher = Matcher(
        MatchConfig(model="human", points=100), progress=lambda *event: told.append(event)
    )
    matcher.match(source, target)
    embedded = [share for stage, share in told if stage == "embed"]
    assert embedded == sorted(embedded)
    assert len({share for share in embedded if 0 < share < 1}) >= 4
    shares = [share for stage, share in told if stage == "refine"]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert len({share for share in shares if 0.1 < share < 1}) >= 4


def test_long_transfers_say_how_far_they_are() -> None:
    from ltenet.bodies.humans import HumanGenerator
    from ltenet.correspondence import Correspondence
    from ltenet.io.textures import TexturedMesh
    from ltenet.shape import Shape
    from ltenet.transferring.transfer import transfer

    generator = HumanGenerator()
    faces = generator.template.faces.astype(np.int64)
    source, target = (Shape(generator.draw(3, index).vertices, faces) for index in (0, 1))
    corr = Correspondence(np.arange(len(source)), len(target), source=source, target=target)
    uv = source.points[:, :2] - source.points[:, :2].min(axis=0)
    pixels = np.zeros((8, 8, 3), np.uint8)
    painted = np.zeros(len(faces), np.int64)
    giver = TexturedMesh(target, uv / uv.max(), faces, (pixels,), painted)
    onto = TexturedMesh(source, uv / uv.max(), faces, (np.zeros((300, 300, 3), np.uint8),), painted)
    for what, values, receiver in (("texture", giver, onto), ("deformation", target, source)):
        told: list[tuple[str, float]] = []
        transfer(
            corr,
            values,
            what=what,  # type: ignore[call-overload]
            onto=receiver,
            direction="pull",
            progress=lambda *event, told=told: told.append(event),
        )
        shares = [share for stage, share in told if stage == "carry"]
        assert shares == sorted(shares)
        assert shares[0] > 0
        assert shares[-1] > 0.8
