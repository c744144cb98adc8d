"""A colour for each position on the target: perceptually even, and safe for the colour-blind.

Colours are chosen in Oklab, where equal steps look equal. Left and right differ in blue and yellow,
which everybody tells apart, so that a flipped map shows; top and bottom differ in lightness, and in
green and red for those who see them; front and back a little in both.

The page computes the same colours on the graphics card: `viewer-src/src/shaders.js`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray

#: Colour of points without a partner.
UNMATCHED_COLOR = (158, 160, 166)

#: Lightness, green-red and blue-yellow (Oklab) in the middle, and their change along x, y and z.
_MIDDLE = np.array([0.70, 0.02, 0.0])
_ALONG = np.array([[0.0, 0.0, 0.165], [0.135, -0.12, 0.0], [0.03, 0.05, 0.0]])

#: Share of the standard deviation at which an axis is half way to its last colour. A small one
#: spends colours on the body rather than on the empty space between outstretched hands.
_SOFTNESS = 0.8

_LMS_FROM_LAB = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_RGB_FROM_LMS = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


class ColorFrame(NamedTuple):
    """Where the colours of a shape are anchored.

    Attributes
    ----------
    middle
        (3,) position of the middle colour.
    reach
        (3,) distance from it, along each axis, of 71 % of the change.
    """

    middle: FloatArray
    reach: FloatArray


def color_frame(points: FloatArray) -> ColorFrame:
    """Frame of (N, 3) points: their median and their spread."""
    spread = points.std(axis=0)  # (3,)
    # A flat shape has no extent along one axis, and so no change of colour.
    least = max(float(spread.max()) * 1e-3, 1e-12)
    return ColorFrame(np.median(points, axis=0), _SOFTNESS * np.maximum(spread, least))


def position_colors(positions: FloatArray, frame: ColorFrame) -> NDArray[np.uint8]:
    """(N, 3) colours of (N, 3) positions; `UNMATCHED_COLOR` for NaN."""
    away = (positions - frame.middle) / frame.reach  # (N, 3)
    bent = away / np.sqrt(1 + np.square(away))  # (N, 3) in -1..1
    lab = _MIDDLE + bent @ _ALONG  # (N, 3)
    linear = np.power(lab @ _LMS_FROM_LAB.T, 3) @ _RGB_FROM_LMS.T  # (N, 3)
    linear = np.clip(linear, 0, 1)
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    unmatched = np.isnan(positions).any(axis=1)  # (N,)
    shown[unmatched] = 0
    colors: NDArray[np.uint8] = np.round(255 * shown).astype(np.uint8)
    colors[unmatched] = UNMATCHED_COLOR
    return colors
