"""All that the page shows, ready to embed: quantised arrays, and a description for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet import __version__
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.rotations import rotation_degrees
from ltenet.matching.summary import summarize
from ltenet.metrics import TOLERANCES
from ltenet.shape import Shape
from ltenet.viewer.cloud_normals import cloud_normals, folded
from ltenet.viewer.colors import color_frame
from ltenet.viewer.figures import (
    REACH,
    Truth,
    displacements,
    measure,
    sources_of,
    unit_length,
)
from ltenet.viewer.packing import STEPS, Packed, UnsignedArray, pack, quantize
from ltenet.viewer.textures import Texture

#: Longest text of a name or a detail on the page.
_LONGEST = 400
#: A source rotated by more than this against its target, in degrees, is shown aligned with it.
_TURNED_AWAY = 50.0


@dataclass(frozen=True)
class Scene:
    """What the page shows.

    Attributes
    ----------
    description
        Names, sizes, figures and settings; plain, finite values for JSON.
    arrays
        Points, faces, colours and the map.
    """

    description: dict[str, Any]
    arrays: Packed


def build_scene(
    source: Shape,
    target: Shape,
    correspondence: Correspondence,
    *,
    truth: IntArray | None = None,
    texture: Texture | None = None,
    title: str | None = None,
) -> Scene:
    """Describe two shapes and the map between them.

    Parameters
    ----------
    source, target
        The shapes of the map.
    correspondence
        The map.
    truth
        (N,) true target point of each source point, -1 if unknown.
    texture
        A texture on both shapes.
    title
        Heading of the page; the names of the shapes by default.
    """
    if len(source) != len(correspondence) or len(target) != correspondence.target_size:
        raise InputError(
            f"got a map of {len(correspondence)} points onto {correspondence.target_size} for "
            f"shapes of {len(source)} and {len(target)}, expected the sizes to agree; try the "
            "shapes in the other order, or those that the map belongs to"
        )
    positions = correspondence.positions(target)  # (N, 3)
    matched = correspondence.matched  # (N,)
    unit = unit_length(target)
    measured = None if truth is None else measure(correspondence, truth, target)
    moved, rotation = displacements(source, positions, matched, unit)
    arrays: dict[str, UnsignedArray] = {
        **_shape_arrays("source", source),
        **_shape_arrays("target", target),
        "partner": (correspondence.indices + 1).astype(np.uint32),
        "back": (sources_of(positions, target) + 1).astype(np.uint32),
    }
    scalars = {
        "confidence": correspondence.scores,
        "error": None if measured is None else measured.errors,
        "distance": moved,
    }
    ranges = {}
    for name, values in scalars.items():
        if values is not None:
            top = 1.0 if name == "confidence" else _top(values)
            arrays[name] = _steps(values, top)
            ranges[name] = top
    if correspondence.neighbors is not None:
        low, size = _box(target.points)
        filled = np.where(matched[:, None], positions, low)  # (N, 3)
        arrays["place"] = quantize(filled, low, size)
    if measured is not None:
        arrays["truth"] = (measured.indices + 1).astype(np.uint32)
    if texture is not None:
        arrays |= texture.arrays
    frame = color_frame(target.points)
    packed = pack(arrays)
    turned = rotation_degrees(rotation)
    description = {
        "format": 1,
        "made_by": f"ltenet {__version__}",
        "title": _text(title) if title else f"{_text(source.name)} \u2192 {_text(target.name)}",
        "source": _shape_description(source),
        "target": _shape_description(target),
        "color_frame": {"middle": frame.middle.tolist(), "reach": frame.reach.tolist()},
        "rotation": rotation.tolist(),
        "turned": bool(turned > _TURNED_AWAY),
        "diameter": unit,
        "ranges": ranges,
        "texture": None if texture is None else texture.description,
        "figures": _figures(correspondence, measured, arrays["back"]),
        "curve": None
        if measured is None
        else {"tolerances": TOLERANCES.tolist(), "accuracy": measured.curve.tolist()},
        "details": [[_text(key), _text(value)] for key, value in _flat(correspondence.details)],
        "arrays": packed.table,
    }
    return Scene(description, packed)


def _shape_arrays(name: str, shape: Shape) -> dict[str, UnsignedArray]:
    low, size = _box(shape.points)
    arrays: dict[str, UnsignedArray] = {f"{name}_points": quantize(shape.points, low, size)}
    if shape.faces is not None and len(shape.faces):
        arrays[f"{name}_faces"] = shape.faces.reshape(-1).astype(np.uint32)
    else:
        arrays[f"{name}_normals"] = folded(cloud_normals(shape.points))
    if shape.colors is not None:
        arrays[f"{name}_colors"] = shape.colors[:, :3]
    if shape.labels is not None:
        arrays[f"{name}_labels"] = np.unique(shape.labels, return_inverse=True)[1].astype(np.uint32)
    return arrays


def _shape_description(shape: Shape) -> dict[str, Any]:
    low, size = _box(shape.points)
    return {
        "name": _text(shape.name),
        "points": len(shape),
        "faces": 0 if shape.faces is None else len(shape.faces),
        "low": low.tolist(),
        "size": size.tolist(),
        "labels": None if shape.labels is None else np.unique(shape.labels).tolist(),
    }


def _figures(
    correspondence: Correspondence, measured: Truth | None, back: UnsignedArray
) -> list[dict[str, Any]]:
    """List the figures of the page in order: name, value, and format."""
    summary = summarize(correspondence)
    rows: list[tuple[str, float | str | None, str]] = [
        ("verdict", summary.verdict, "text"),
        ("right as a whole", summary.probability, "share"),
        ("mean probability", summary.mean_probability, "share"),
        ("weights", summary.model, "text"),
        ("matched", summary.matched, "share"),
        ("coverage", summary.coverage, "share"),
        (f"target within {REACH:.0%} of a partner", float((back > 0).mean()), "share"),
        ("symmetry", summary.symmetry, "text"),
        ("doubts", ", ".join(summary.doubts) or "none", "text"),
    ]
    if measured is not None:
        rows += [
            ("within 1 %", measured.within(0.01), "share"),
            ("within 5 %", measured.within(0.05), "share"),
            ("within 10 %", measured.within(0.10), "share"),
            ("mean error", measured.mean, "percent of the diameter"),
            ("area under the curve", measured.auc, "number"),
        ]
    return [
        {"name": name, "value": _text(value) if isinstance(value, str) else value, "kind": kind}
        for name, value, kind in rows
        if isinstance(value, str) or (value is not None and np.isfinite(value))
    ]


def _box(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    low: FloatArray = points.min(axis=0)
    return low, points.max(axis=0) - low


def _top(values: FloatArray) -> float:
    """End of a colour scale: the 98th percentile, robust to outliers."""
    finite = values[np.isfinite(values)]
    return max(float(np.percentile(finite, 98)), 1e-6) if len(finite) else 1.0


def _steps(values: FloatArray, top: float) -> NDArray[np.uint16]:
    """0 for no value, then 1 to 65535 for 0 to four times the end of the scale."""
    shares = np.clip(values / (4 * top), 0, 1)
    steps = 1 + np.round(shares * (STEPS - 1))
    return np.where(np.isfinite(values), steps, 0).astype(np.uint16)


def _flat(details: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in details.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _text(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"
