"""The picture of one shape on both: the right places, and none across a seam."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from ltenet.cli import main
from ltenet.correspondence import Correspondence
from ltenet.io import save
from ltenet.io.maps import write_map
from ltenet.io.textures import TexturedMesh, write_textured
from ltenet.shape import Shape
from ltenet.viewer import view
from ltenet.viewer.packing import unpack
from ltenet.viewer.report import scene_of
from ltenet.viewer.textures import build_texture, texture_of
from tools.chromium import Browser

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'ltenet[texture]'")

STAGE = "window.ltenet.viewer.stage"


def tube(rows: int = 9, around: int = 16, seam: bool = True) -> TexturedMesh:
    """A tube with one seam: left half of its picture red, right half blue."""
    height, angle = np.meshgrid(
        np.linspace(-1, 1, rows), np.arange(around) * 2 * np.pi / around, indexing="ij"
    )
    points = np.stack([np.sin(angle), 1.5 * height, np.cos(angle)], axis=-1).reshape(-1, 3)
    faces, uv = [], []
    for row in range(rows - 1):
        for column in range(around):
            right = (column + 1) % around
            end = column + 1 if seam else right
            square = [(row, column, column), (row, right, end), (row + 1, right, end)]
            square.append((row + 1, column, column))
            for corners in ((0, 1, 2), (0, 2, 3)):
                chosen = [square[corner] for corner in corners]
                faces.append([r * around + c for r, c, _ in chosen])
                uv += [(place / around, r / (rows - 1)) for r, _, place in chosen]
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[:, :32, 0] = picture[:, 32:, 2] = 230
    count = len(faces)
    corners = np.arange(3 * count).reshape(-1, 3)
    shape = Shape(points, np.array(faces), name="tube")
    return TexturedMesh(shape, np.array(uv), corners, (picture,), np.zeros(count, np.int64))


def identity(shape: Shape) -> Correspondence:
    return Correspondence(np.arange(len(shape)), len(shape))


@pytest.mark.parametrize("giver", ["source", "target"])
def test_an_identity_carries_the_places_and_leaves_out_the_seam(giver: str) -> None:
    mesh = tube()
    ends = (mesh, mesh.shape) if giver == "source" else (mesh.shape, mesh)
    scene = scene_of(*ends, identity(mesh.shape))
    assert scene.description["texture"]["giver"] == giver
    arrays = unpack(scene.arrays)
    receiver = "target" if giver == "source" else "source"
    own, carried = (
        {name: arrays[f"{side}_corner_{name}"] for name in ("points", "faces", "uv", "layer")}
        for side in (giver, receiver)
    )
    # The same triangles, corner by corner.
    for side in (own, carried):
        corners = side["points"][side["faces"][:, 0], 0]
        np.testing.assert_array_equal(corners.reshape(-1, 3), mesh.shape.faces)
    assert (own["layer"] == 1).all()
    shown = carried["layer"][carried["faces"][:, 0], 0].reshape(-1, 3)
    torn = (shown == 0).any(axis=1)  # (F,)
    # Two triangles of each of the eight squares at the seam, at the most one square beside it.
    assert 16 <= torn.sum() <= 32
    places = [
        s["uv"][s["faces"][:, 0]].astype(float).reshape(-1, 3, 2) / 65535 for s in (own, carried)
    ]
    whole = np.flatnonzero(~torn)
    apart = np.abs(places[0][whole] - places[1][whole])
    # A point on the seam has two places: at 0 and at 1.
    apart[..., 0] = np.minimum(apart[..., 0], 1 - apart[..., 0])
    assert apart.max() < 1e-3


def test_clouds_get_the_colours_of_the_picture() -> None:
    mesh = tube()
    cloud = Shape(mesh.shape.points)
    texture = build_texture(mesh.shape, cloud, identity(cloud), mesh, "source")
    assert "target_corner_points" not in texture.arrays
    colors = texture.arrays["target_texture_colors"]
    x = mesh.shape.points[:, 0]
    assert (colors[x > 0.5, 0] > 200).all()  # the first half of the way round
    assert (colors[x < -0.5, 2] > 200).all()


def test_without_a_picture_there_is_a_warning_and_no_texture(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_textured(tube(), tmp_path / "tube.obj")
    assert texture_of(tmp_path / "tube.obj") is not None
    (tmp_path / "tube.png").write_bytes(b"not a picture")
    with caplog.at_level(logging.WARNING):
        assert texture_of(tmp_path / "tube.obj") is None
    assert "the texture is left out" in caplog.text
    assert texture_of(tmp_path / "tube.png") is None


@pytest.mark.parametrize("suffix", [".obj", ".glb"])
def test_the_page_shows_the_picture_on_both(
    browser: Browser, tmp_path: Path, screenshots: Path, suffix: str
) -> None:
    mesh = tube(seam=suffix == ".obj")
    write_textured(mesh, tmp_path / f"tube{suffix}")
    source = texture_of(tmp_path / f"tube{suffix}")
    assert source is not None
    target = Shape(source.shape.points * (1, 0.7, 1), source.shape.faces, name="short")
    save(target, tmp_path / "short.ply")
    write_map(tmp_path / "map.txt", np.arange(len(target)))
    names = [str(tmp_path / name) for name in (f"tube{suffix}", "short.ply", "map.txt")]
    assert main(["view", *names, "-o", str(tmp_path / "report.html")]) == 0
    page = browser.open((tmp_path / "report.html").as_uri() + "#mode=texture", size=(900, 560))
    page.wait_for("window.ltenet && window.ltenet.ready")
    modes = page.run("[...document.querySelectorAll('.mode')].map(e => e.textContent)")
    assert modes[:2] == ["Map", "Texture"]
    assert "The source's own texture" in page.run("document.querySelector('.note').textContent")
    # Each half is in sight from its side: red from the right of the tube, blue from the left.
    for turn, strong, weak in ((1.57, 0, 2), (-1.57, 2, 0)):
        seen = page.run(
            f"(() => {{ const s = {STAGE}, yaw = {turn};"
            " s.both.forEach(({orbit}) => { orbit.goal.yaw = yaw; orbit.goal.pitch = 0;"
            " orbit.jump(); }); s.draw(); const gl = s.renderer.getContext();"
            " return s.shown.map(({rect: r}) => { const p = new Uint8Array(4);"
            "  gl.readPixels((r.x + r.width / 2) * s.density, (r.height / 2) * s.density, 1, 1,"
            "   gl.RGBA, gl.UNSIGNED_BYTE, p); return [...p]; }); })()"
        )
        for color in seen:
            assert color[strong] > 120
            assert color[weak] < 60
    page.screenshot(screenshots / f"texture_{suffix[1:]}.png")
    assert page.errors == []
    page.close()


def test_without_texture_the_pattern_is_named_as_such(browser: Browser, tmp_path: Path) -> None:
    shape = tube().shape
    view(shape, shape, np.arange(len(shape)), save=tmp_path / "report.html")
    page = browser.open((tmp_path / "report.html").as_uri() + "#mode=Checker", size=(900, 560))
    page.wait_for("window.ltenet && window.ltenet.ready")
    assert "Checker" in page.run("document.querySelector('.mode[aria-checked=true]').textContent")
    assert "checker pattern" in page.run("document.querySelector('.note').textContent")
    page.close()
