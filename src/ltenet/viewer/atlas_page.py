"""The report of an atlas, one HTML file: mean, modes as sliders, variance as colour, specimens."""

from __future__ import annotations

import base64
import html
from functools import lru_cache
from importlib.resources import files

import numpy as np

from ltenet.collections.atlas import Atlas
from ltenet.collections.atlas_files import Statistics
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.viewer.page import Bundle, inert_json, policy

#: Modes with a slider, specimens with a thumbnail, and points of a thumbnail.
_MODES, _SPECIMENS, _POINTS = 6, 120, 600
#: Vertices and faces beyond which the mean is drawn as a sample of its points.
_VERTICES, _FACES = 8_000, 30_000


@lru_cache(maxsize=1)
def _bundle() -> Bundle:
    folder = files("ltenet.viewer") / "atlas"
    return Bundle(
        (folder / "atlas.js").read_text(encoding="utf-8"),
        (folder / "atlas.css").read_text(encoding="utf-8"),
    )


def atlas_html(atlas: Atlas, statistics: Statistics, *, title: str = "Atlas") -> str:
    """Return the page; it needs no network and runs no script but its own."""
    count = len(atlas.mean)
    faces = atlas.mean.faces
    drawn = faces is not None and count <= _VERTICES and len(faces) <= _FACES
    rows = np.arange(count) if drawn else _spread(count, _VERTICES)  # (v,)
    model = statistics.model
    few = _spread(count, _POINTS)  # (p,)
    deviations = np.sqrt(model.variances[:_MODES])  # (k,)
    description = {
        "title": title,
        "facts": _facts(atlas, statistics),
        "mean": _text(model.mean[rows]),
        "variance": _text(statistics.variance[rows]),
        "faces": faces.tolist() if drawn and faces is not None else [],
        "modes": [
            {"moves": _text(deviation * mode[rows]), "explained": float(share)}
            for mode, deviation, share in zip(
                model.modes, deviations, model.explained, strict=False
            )
        ],
        "specimens": [
            {
                "name": one.name,
                "outlier": one.name in statistics.outliers,
                "points": _text(points[few]),
                "scores": np.round(scores[: len(deviations)] / deviations, 3).tolist(),
            }
            for one, points, scores in list(
                zip(atlas.registered, atlas.procrustes.aligned, model.scores, strict=True)
            )[:_SPECIMENS]
        ],
    }
    script, style = _bundle()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(connect="'none'", page=_bundle())}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
<h1 id="title"></h1>
<p id="facts"></p>
<main><canvas id="view" width="1120" height="1120"></canvas><div id="controls"></div></main>
<div id="specimens"></div>
<noscript>This page draws in 3-D and needs JavaScript; it needs no network.</noscript>
<script type="application/json" id="description">{inert_json(description)}</script>
<script>{script}</script>
</body>
</html>
"""


def _facts(atlas: Atlas, statistics: Statistics) -> str:
    quality = statistics.quality
    parts = [
        f"{len(atlas.registered)} specimens, {len(atlas.mean):,} vertices",
        "red: varies much, blue: little (standard deviation)",
        f"with {len(quality.compactness)} modes: compactness {quality.compactness[-1]:.3g}, "
        f"generalisation {quality.generalisation[-1]:.3g}, "
        f"specificity {quality.specificity[-1]:.3g}",
        f"outliers: {', '.join(statistics.outliers) or 'none'}",
    ]
    if atlas.failed:
        parts.append(f"not registered: {', '.join(name for name, _ in atlas.failed)}")
    return "; ".join(parts)


def _spread(count: int, most: int) -> IntArray:
    """At most `most` rows of `count`, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _text(values: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
