"""Refine a correspondence of any origin: this package, a file, another program."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.io import load
from ltenet.matching.alignment import turn_of_map
from ltenet.matching.networks import Networks, read_networks
from ltenet.matching.preparation import prepare
from ltenet.method.model import LTENet
from ltenet.method.neighbors import TopK
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.map_features import joined, map_features
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent, Method, Mutual, OneToOne, Options, Transport
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import nearest_points
from ltenet.refinement.proposal import RefinedMap
from ltenet.refinement.soft_partners import around, weighted_mean
from ltenet.shape import Shape

#: Most points of a shape that go through the network; features of the others are interpolated.
_EMBEDDED = 2048
#: Embedded points from which a feature is interpolated.
_BETWEEN = 3


class _Side(NamedTuple):
    """One shape in the frame of refinement."""

    points: Tensor  # (N, 3) float32, radius 0.5
    faces: Tensor | None  # (F, 3)
    features: Tensor | None  # (N, D)


def refine(
    correspondence: Correspondence | ArrayLike,
    source: Shape | ArrayLike | str | os.PathLike[str] | None = None,
    target: Shape | ArrayLike | str | os.PathLike[str] | None = None,
    *,
    how: Method = "coherent",
    model: LTENet | str | os.PathLike[str] | None = None,
    trust: float = 0.5,
    one_to_one: OneToOne = "auto",
    fill: bool = True,
    neighbors: int = 10,
) -> Correspondence:
    """Improve a map, without labels.

    Parameters
    ----------
    correspondence
        The map, or (N,) target points with -1 for unmatched ones.
    source, target
        The shapes: `Shape`s, (N, 3) points, or files. By default those attached to the
        correspondence.
    how
        "coherent" makes the map that of a smooth deformation, "spectral" that of a near-isometry
        (ZoomOut); "ot" spreads it evenly over the target; "mutual" keeps mutual nearest neighbours
        and fills in the rest; "linear" matches the features of the model after a linear map fitted
        to the current matches; "none" only adds neighbours and weights.
    model
        Weights by name or folder, or a model, whose features complement the map; without it, only
        the map and the shapes are used. Shapes are oriented if the weights have a network for that.
        Required by "linear".
    trust
        Weight of the map against the features of the model, from 0 to 1.
    one_to_one
        True if both shapes hold the same points; "auto" tests this.
    fill
        Whether unmatched points may receive a partner.
    neighbors
        Target points of a soft partner, at most.

    Returns
    -------
    Correspondence
        With scores, neighbours and weights. `details` holds the method ("refined"), whether its map
        was accepted, and the energies before and after. A map that raises the energy is not
        accepted, and the input is returned.
    """
    current = _as_correspondence(correspondence, target)
    source_shape = _as_shape("source", source, current.source, len(current))
    target_shape = _as_shape("target", target, current.target, current.target_size)
    if not 0.0 <= trust <= 1.0:
        raise InputError(f"got trust={trust}, expected a weight from 0 to 1; try the default")
    if how == "linear" and model is None:
        raise UsageError(
            "got how='linear' without a model, expected one that provides features; "
            "try model='human', or how='coherent'"
        )
    if not current.matched.any():
        raise InputError(
            "got a correspondence without any matched point, expected at least one; "
            "try matching the shapes first"
        )
    network = _networks(model)
    lying = source_shape
    if network is not None and network.relative:
        lying = source_shape.rotated(turn_of_map(current, source_shape, target_shape))
    sides = _side(lying, network), _side(target_shape, network)
    with torch.no_grad():
        pair = _pair(current, *sides, trust=trust, model_alone=how == "linear")
        start = torch.tensor(current.indices)  # (N,)
        options: dict[Method, Options] = {
            "coherent": Coherent(one_to_one=one_to_one),
            "ot": Transport(one_to_one=one_to_one),
            "mutual": Mutual(fill=fill),
        }
        result = refine_pair(pair, options.get(how, how), start=start, neighbors=neighbors)
    if result.accepted:
        refined = _refined(current, result, fill=fill)
    else:
        refined = _kept(current, result, pair.target, neighbors)
    details = {
        **current.details,
        "refined": how,
        "refinement_accepted": result.accepted,
        "energy_before": round(result.input_energy, 4),
        "energy": round(result.energy, 4),
        "mirrored": round(result.mirrored, 4),
        "same_points": result.same_points,
    }
    return replace(refined, details=details, source=source_shape, target=target_shape)


def _networks(model: LTENet | str | os.PathLike[str] | None) -> Networks | None:
    if model is None:
        return None
    if isinstance(model, LTENet):
        return Networks("model", Path(), model, None)
    return read_networks(os.fspath(model))


def _as_correspondence(given: Correspondence | ArrayLike, target: object) -> Correspondence:
    if isinstance(given, Correspondence):
        return given
    indices = np.asarray(given)
    if target is None:
        raise InputError(
            f"got a map of shape {indices.shape} without shapes, expected both shapes; "
            "try passing source and target"
        )
    size = len(_as_shape("target", target, None, None))
    return Correspondence(indices, size)


def _as_shape(name: str, given: Any, attached: Shape | None, count: int | None) -> Shape:
    if given is None:
        if attached is None:
            raise InputError(
                f"got no {name} and a correspondence without one, expected its points; "
                f"try passing the {name} shape"
            )
        return attached
    if isinstance(given, str | os.PathLike):
        given = load(given)
    shape = given if isinstance(given, Shape) else Shape(np.asarray(given), name=name)
    if count is not None and len(shape) != count:
        raise InputError(
            f"got a {name} with {len(shape)} points and a map of {count}, expected equal numbers; "
            "try the shape that belongs to the map"
        )
    return shape


def _side(shape: Shape, networks: Networks | None) -> _Side:
    faces = None if shape.faces is None or len(shape.faces) == 0 else torch.tensor(shape.faces)
    if networks is None:
        points = torch.from_numpy(shape.normalized().points.astype(np.float32))  # (N, 3)
        return _Side(points, faces, None)
    prepared = prepare(shape, [networks], points=_EMBEDDED, clean=False)[0][0]
    points = torch.from_numpy(prepared.all_points().astype(np.float32))  # (N, 3)
    if prepared.sample.complete:
        return _Side(points, faces, prepared.embedded.features)
    near = nearest_points(points, prepared.points, _BETWEEN)  # (N, 3)
    shares = 1 / (near.squares + 1e-8)  # (N, 3)
    soft = TopK(near.indices, shares / shares.sum(dim=1, keepdim=True))
    return _Side(points, faces, weighted_mean(prepared.embedded.features, soft))


def _pair(
    current: Correspondence, source: _Side, target: _Side, *, trust: float, model_alone: bool
) -> Pair:
    """Both shapes, with features that encode the current map."""
    neighbors, weights = (torch.tensor(array) for array in current.soft())  # (N, K), (N, K)
    positions = weighted_mean(target.points, TopK(neighbors, weights.float()))  # (N, 3)
    sure = torch.tensor(current.matched).float()  # (N,)
    if current.scores is not None:
        sure = sure * (0.1 + 0.9 * torch.tensor(current.scores).float())
    features = map_features(source.points, target.points, positions, sure)  # (N, D), (M, D)
    if source.features is not None and target.features is not None:
        own = source.features, target.features
        features = own if model_alone else joined(own, features, share=trust)
    shapes = zip((source, target), features, ("source", "target"), strict=True)
    return Pair(*(EmbeddedShape(s.points, f, faces=s.faces, name=name) for s, f, name in shapes))


def _refined(current: Correspondence, result: RefinedMap, *, fill: bool) -> Correspondence:
    indices = result.indices.numpy().copy()  # (N,)
    if not fill:
        indices[~current.matched] = UNMATCHED
    return replace(
        current,
        indices=indices,
        scores=result.confidence.double().clamp(0, 1).numpy(),
        neighbors=result.neighbors.numpy(),
        weights=_unit_sums(result.weights),
    )


def _kept(
    current: Correspondence, result: RefinedMap, target: EmbeddedShape, neighbors: int
) -> Correspondence:
    """Complete the input with what it lacks."""
    scores = current.scores
    if scores is None:
        scores = result.confidence.double().clamp(0, 1).numpy()  # (N,)
    if current.neighbors is not None:
        return replace(current, scores=scores)
    # Unmatched points need neighbours too; those of the refined map are the best available.
    indices = torch.tensor(current.indices)  # (N,)
    matched = (indices >= 0)[:, None]  # (N, 1)
    places = torch.where(matched, target.points[indices], result.positions)  # (N, 3)
    near = target.nearest(places, neighbors).indices  # (N, K)
    soft = around(places, target.points, near)  # (N, K) each
    return replace(
        current, scores=scores, neighbors=soft.indices.numpy(), weights=_unit_sums(soft.scores)
    )


def _unit_sums(weights: Tensor) -> Any:
    values = weights.double().numpy()  # (N, K)
    return values / values.sum(axis=1, keepdims=True)
