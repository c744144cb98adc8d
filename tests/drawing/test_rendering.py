from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from ltenet.drawing.bitmap_font import text_mask
from ltenet.drawing.rendering import contact_sheet, render, write_png
from ltenet.errors import InputError, UsageError

SQUARE = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
TWO_FACES = np.array([[0, 1, 2], [0, 2, 3]])
RED, BLUE = (255, 0, 0), (0, 0, 255)


def front(points: np.ndarray, faces: np.ndarray | None = None, **options: object) -> np.ndarray:
    settings = {"size": (40, 40), "yaw": 0.0, "pitch": 0.0, "span": 4.0, **options}
    return render(points, faces, **settings)  # type: ignore[arg-type]


def test_a_square_covers_the_middle_and_nothing_else() -> None:
    image = front(SQUARE, TWO_FACES, colors=RED)
    assert image.shape == (40, 40, 3)
    assert image.dtype == np.uint8
    drawn = (image != 255).any(axis=2)
    expected = np.zeros((40, 40), bool)
    expected[10:30, 10:30] = True
    np.testing.assert_array_equal(drawn, expected)
    inside = image[12:28, 12:28].reshape(-1, 3)
    assert (inside[:, 0] > 150).all()
    assert (inside[:, 1:] < 60).all()


def test_both_sides_of_a_face_look_the_same() -> None:
    np.testing.assert_array_equal(
        front(SQUARE, TWO_FACES, colors=RED), front(SQUARE, TWO_FACES[:, ::-1], colors=RED)
    )


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearer_face_hides_the_farther_one(order: int) -> None:
    points = np.concatenate([SQUARE, SQUARE + np.array([0, 0, 1])])
    colors = np.array([BLUE] * 4 + [RED] * 4, np.uint8)
    faces = np.concatenate([TWO_FACES, TWO_FACES + 4])[::order]
    middle = front(points, faces, colors=colors)[20, 20]
    assert middle[0] > 150 > middle[2]


def test_balls_hide_each_other_too() -> None:
    points = np.array([[0.0, 0, 0], [0, 0, 1.0]])
    image = front(points, colors=np.array([BLUE, RED], np.uint8), span=2.0)
    middle = image[20, 20]
    assert middle[0] > 150 > middle[2]


def test_colours_blend_between_vertices() -> None:
    colors = np.array([RED, BLUE, BLUE, RED], np.uint8)
    row = front(SQUARE, TWO_FACES, colors=colors)[20, 12:28].astype(int)
    assert (np.diff(row[:, 0]) <= 0).all()
    assert (np.diff(row[:, 2]) >= 0).all()


def test_left_stays_left_and_up_stays_up() -> None:
    points = np.array([[1.0, 1, 0], [-1, -1, 0]])
    image = front(points, colors=np.array([RED, BLUE], np.uint8))
    red = np.argwhere((image[..., 0] > 150) & (image[..., 2] < 100)).mean(axis=0)
    blue = np.argwhere((image[..., 2] > 150) & (image[..., 0] < 100)).mean(axis=0)
    assert red[0] < 20 < blue[0]  # rows run down
    assert red[1] > 20 > blue[1]


def test_yaw_turns_the_front_to_the_viewers_right() -> None:
    nose = np.array([[0.0, 0, 1], [0, 0, -1]])
    colors = np.array([RED, BLUE], np.uint8)
    image = front(nose, yaw=60.0, colors=colors)
    red = np.argwhere((image[..., 0] > 150) & (image[..., 2] < 100)).mean(axis=0)
    assert red[1] > 22


def test_the_whole_shape_fits() -> None:
    points = np.random.default_rng(0).normal(size=(500, 3)) * (1, 3, 1)
    image = render(points, size=(60, 90), background=(0, 0, 0))
    drawn = (image > 0).any(axis=2)
    assert drawn.any()
    assert not drawn[0].any()
    assert not drawn[-1].any()


def test_edges_are_smooth_and_the_same_input_gives_the_same_picture() -> None:
    triangle = np.array([[-1.0, -1, 0], [1, -0.8, 0], [0, 1, 0]])
    image = front(triangle, np.array([[0, 1, 2]]), colors=(0, 0, 0))
    assert len(np.unique(image)) > 3
    again = front(triangle, np.array([[0, 1, 2]]), colors=(0, 0, 0))
    np.testing.assert_array_equal(image, again)


def test_faces_outside_the_picture_and_without_area_do_no_harm() -> None:
    points = np.concatenate([SQUARE, SQUARE + 100, np.zeros((3, 3))])
    faces = np.concatenate([TWO_FACES, TWO_FACES + 4, [[8, 9, 10]]])
    assert front(points, faces, span=1000.0).shape == (40, 40, 3)
    one = render(np.zeros((1, 3)), size=(20, 20))
    assert (one != 255).any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colors": np.zeros((3, 3), np.uint8)}, "for 4 points"),
        ({"colors": np.zeros((4, 3))}, "try scaling floats"),
        ({"colors": (0, 0, 300)}, "or one triple of 0..255"),
        ({"size": (0, 5)}, "1 to 8192"),
    ],
)
def test_wrong_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        front(SQUARE, TWO_FACES, **options)


def test_wrong_points() -> None:
    with pytest.raises(InputError, match=r"\(N, 3\)"):
        render(np.zeros((4, 2)))


def decoded(path: Path) -> np.ndarray:
    """Read a PNG without filters back, checking every checksum."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + data)
        chunks[kind] = data
        place += 12 + length
    width, height, depth, color, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    channels = {0: 1, 2: 3, 6: 4}[color]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1, 4)])
def test_png_holds_the_pixels(tmp_path: Path, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    write_png(tmp_path / "a.png", image)
    np.testing.assert_array_equal(decoded(tmp_path / "a.png"), image.reshape(*shape[:2], -1))
    with pytest.raises(UsageError, match="exists"):
        write_png(tmp_path / "a.png", image)
    write_png(tmp_path / "a.png", image, force=True)


@pytest.mark.parametrize("image", [np.zeros((4, 4, 3)), np.zeros((4, 4, 2), np.uint8)])
def test_no_picture(tmp_path: Path, image: np.ndarray) -> None:
    with pytest.raises(InputError, match="uint8"):
        write_png(tmp_path / "a.png", image)
    assert list(tmp_path.iterdir()) == []


def test_contact_sheet_places_tiles_and_captions() -> None:
    tiles = [np.full((30, 50, 3), shade, np.uint8) for shade in (10, 20, 30)]
    sheet = contact_sheet(
        tiles, columns=2, captions=["one", "", "a caption beyond the width"], gap=4
    )
    assert sheet.shape == (2 * (30 + 14 + 4) + 4, 2 * 54 + 4, 3)
    assert (sheet[4:34, 4:54] == 10).all()
    assert (sheet[4:34, 58:108] == 20).all()
    assert (sheet[52:82, 4:54] == 30).all()
    assert (sheet[34:48, 4:54] < 60).any()  # ink below the first
    assert (sheet[34:48, 58:108] == 255).all()
    assert (sheet[82:96, 54:] == 255).all()  # the long caption is cut


@pytest.mark.parametrize(
    ("tiles", "columns", "captions", "words"),
    [
        ([], 2, None, "at least one"),
        ([np.zeros((2, 2, 3), np.uint8)], 0, None, "0 columns"),
        ([np.zeros((2, 2, 3), np.uint8), np.zeros((3, 2, 3), np.uint8)], 2, None, "one size"),
        ([np.zeros((2, 2, 3), np.uint8)], 1, ["a", "b"], "2 captions"),
    ],
)
def test_wrong_sheets(
    tiles: list[np.ndarray], columns: int, captions: list[str] | None, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        contact_sheet(tiles, columns=columns, captions=captions)


def test_font_has_all_of_ascii() -> None:
    text = "".join(map(chr, range(32, 127)))
    mask = text_mask(text)
    assert mask.shape == (8, 6 * len(text))
    glyphs = mask.reshape(8, -1, 6).swapaxes(0, 1)
    assert len({glyph.tobytes() for glyph in glyphs}) == len(text)
    assert not glyphs[0].any()
    assert not glyphs[:, :, 5].any()
    picture = ["".join(" #"[int(bit)] for bit in row) for row in text_mask("A")]
    assert picture == [
        " ###  ",
        "#   # ",
        "#   # ",
        "#   # ",
        "##### ",
        "#   # ",
        "#   # ",
        "      ",
    ]
    np.testing.assert_array_equal(text_mask("ä"), text_mask("?"))
    assert text_mask("A", scale=3).shape == (24, 18)
