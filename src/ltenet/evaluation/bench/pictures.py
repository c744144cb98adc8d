"""Pairs as pictures: the target in colours, and the source in those that the map brings it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.data.pairs import BenchmarkPair
from ltenet.drawing.rendering import Image, contact_sheet, render, write_png
from ltenet.evaluation.bench.scoring import PairScores
from ltenet.geometry.arrays import FloatArray, IntArray

_TILE = 260
_GREY = 150  # points whose truth is not known


def draw_pairs(
    pairs: Sequence[tuple[PairScores, BenchmarkPair, IntArray]], path: Path, *, force: bool = False
) -> None:
    """Write one row per pair: target, source as predicted, source as it should be.

    Parameters
    ----------
    pairs
        Scores, points and (N,) predicted target points of each.
    path
        PNG file.
    force
        Replace it if it is there.
    """
    tiles: list[Image] = []
    captions: list[str] = []
    for scores, drawn, indices in pairs:
        colors = position_colors(drawn.target, drawn.target)  # (M, 3)
        truth = position_colors(drawn.truth, drawn.target)  # (N, 3)
        accuracy = f"{100 * scores.point.accuracy[24]:.0f}% in 5%"
        tiles += [
            _tile(drawn.target, drawn.target_faces, colors),
            _tile(drawn.source, drawn.source_faces, colors[indices]),
            _tile(drawn.source, drawn.source_faces, truth),
        ]
        captions += [scores.target, f"{scores.source}: {accuracy}", "as it should be"]
    write_png(path, contact_sheet(tiles, columns=3, captions=captions), force=force)


def position_colors(points: FloatArray, frame: FloatArray) -> NDArray[np.uint8]:
    """(N, 3) colours by place inside the box of (M, 3) other points; grey where there is none."""
    low, high = frame.min(axis=0), frame.max(axis=0)  # (3,), (3,)
    shares = (points - low) / np.maximum(high - low, 1e-12)  # (N, 3)
    known = np.isfinite(shares).all(axis=1)  # (N,)
    colors = np.full(points.shape, _GREY, np.uint8)
    colors[known] = np.round(30 + 210 * np.clip(shares[known], 0, 1)).astype(np.uint8)
    return colors


def _tile(points: FloatArray, faces: IntArray | None, colors: NDArray[np.uint8]) -> Image:
    return render(points, faces, colors=colors, size=(_TILE, _TILE), yaw=20.0, pitch=8.0)
