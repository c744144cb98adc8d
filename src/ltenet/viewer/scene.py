"""Everything the page shows, ready to be embedded: quantised arrays, and a description in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet import __version__
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.metrics import TOLERANCES
from ltenet.shape import FloatArray, IntArray, Shape
from ltenet.viewer.cloud_normals import cloud_normals, folded
from ltenet.viewer.colors import color_frame
from ltenet.viewer.figures import Truth, diameter, displacements, measure, sources_of
from ltenet.viewer.packing import STEPS, Packed, UnsignedArray, pack, quantize
from ltenet.viewer.textures import Texture

#: Longest text of a name or a detail that the page shows.
_LONGEST = 400
#: A source that stands more than this away from its target is shown turned onto it, in degrees.
_TURNED_AWAY = 50.0


@dataclass(frozen=True)
class Scene:
    """What the page shows.

    Attributes
    ----------
    description
        Names, sizes, figures and settings; plain values for JSON, nothing that is not finite.
    arrays
        The points, faces, colours and the map.
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
        The shapes that the map belongs to.
    correspondence
        The map.
    truth
        (N,) true target point of each source point, -1 where it is not known.
    texture
        A picture on both shapes.
    title
        What stands at the head of the page; the names of the shapes by default.
    """
    if len(source) != len(correspondence) or len(target) != correspondence.target_size:
        raise InputError(
            f"a map of {len(correspondence)} points onto {correspondence.target_size} came for "
            f"shapes of {len(source)} and {len(target)}; they must agree; "
            "check the order of the shapes, and that the map belongs to them"
        )
    positions = correspondence.positions(target)  # (N, 3)
    matched = correspondence.matched  # (N,)
    unit = diameter(target)
    measured = None if truth is None else measure(correspondence, truth, target, unit)
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
    turned = float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))))
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
    """List what the page shows, in order: a name, a value, and how to write it."""
    rows: list[tuple[str, float, str]] = [
        ("matched", float(correspondence.matched.mean()), "share"),
        ("target reached", float((back > 0).mean()), "share"),
    ]
    if correspondence.scores is not None and correspondence.matched.any():
        mean = float(correspondence.scores[correspondence.matched].mean())
        rows.append(("mean confidence", mean, "share"))
    if measured is not None:
        rows += [
            ("within 1 %", measured.within(0.01), "share"),
            ("within 5 %", measured.within(0.05), "share"),
            ("within 10 %", measured.within(0.10), "share"),
            ("mean error", measured.mean, "percent of the diameter"),
            ("area under the curve", measured.auc, "number"),
        ]
    return [
        {"name": name, "value": value, "kind": kind}
        for name, value, kind in rows
        if np.isfinite(value)
    ]


def _box(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    low: FloatArray = points.min(axis=0)
    return low, points.max(axis=0) - low


def _top(values: FloatArray) -> float:
    """End of a colour scale: the 98th percentile, so that one outlier does not swallow it all."""
    finite = values[np.isfinite(values)]
    return max(float(np.percentile(finite, 98)), 1e-6) if len(finite) else 1.0


def _steps(values: FloatArray, top: float) -> NDArray[np.uint16]:
    """0 for no value, then 1 to 65535 for 0 to four times the top of the scale."""
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
