"""Polygons and strips of any length, cut into triangles."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ltenet.geometry.arrays import IntArray


class Polygons(NamedTuple):
    """Polygons of any length, one after another.

    Attributes
    ----------
    lengths
        (P,) corners of each polygon.
    corners
        (C,) their corners.
    """

    lengths: IntArray
    corners: IntArray

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Polygons:
        """Pack lists of corners, which may come one at a time."""
        lengths, corners = array("q"), array("q")
        for items in lists:
            before = len(corners)
            corners.extend(items)
            lengths.append(len(corners) - before)
        return cls(np.array(lengths, np.int64), np.array(corners, np.int64))


def fan(polygons: Polygons) -> IntArray:
    """(F, 3) triangles around the first corner of each polygon; order and winding are kept."""
    counts = np.maximum(polygons.lengths - 2, 0)  # (P,)
    first = np.repeat(np.cumsum(polygons.lengths) - polygons.lengths, counts)  # (F,)
    step = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts) + 1  # (F,)
    places = np.stack([first, first + step, first + step + 1], axis=1)  # (F, 3)
    triangles: IntArray = polygons.corners[places].reshape(-1, 3)
    return triangles


def strip(corners: IntArray) -> IntArray:
    """(F, 3) triangles of a strip; -1 starts a new one. Flat triangles only join parts."""
    windows = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)  # (C - 2, 3)
    begins = np.concatenate([[0], np.flatnonzero(corners == -1) + 1])  # (S,)
    places = np.arange(len(windows))
    start = begins[np.searchsorted(begins, places, side="right") - 1]  # (C - 2,)
    odd = (places - start) % 2 == 1
    windows[odd] = windows[odd][:, [1, 0, 2]]
    a, b, c = windows.T
    triangles: IntArray = windows[(windows >= 0).all(axis=1) & (a != b) & (b != c) & (c != a)]
    return triangles
