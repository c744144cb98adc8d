"""Files: shapes, maps, landmarks, values and textures, read and written."""

from __future__ import annotations

from ltenet.io.shapes import LOADERS, SAVERS, load, save

__all__ = ["LOADERS", "SAVERS", "load", "save"]
