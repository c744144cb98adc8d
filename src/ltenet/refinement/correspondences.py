"""Refine a correspondence of any origin: made here, read from a file, made by another program."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.io import load
from ltenet.model import LTENet, find_weights
from ltenet.neighbors import TopK
from ltenet.orientation import Orienter
from ltenet.preparation import prepare
from ltenet.refinement.evidence import joined, map_features
from ltenet.refinement.methods import Method, refine_pair
from ltenet.refinement.pair import EmbeddedPair, RefinedMap
from ltenet.refinement.soft import around, weighted_mean
from ltenet.shape import Shape
from ltenet.transport import nearest_points

#: Most points of a shape that go through the network; features of the others are interpolated.
_EMBEDDED = 2048
#: Embedded points that a feature is interpolated from.
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
    one_to_one: bool | Literal["auto"] = "auto",
    fill: bool = True,
    neighbors: int = 10,
) -> Correspondence:
    """Improve a map, without labels.

    Parameters
    ----------
    correspondence
        The map, or (N,) target points with -1 for unmatched ones.
    source, target
        The shapes: as `Shape`, as (N, 3) points, or as files. By default those that are attached
        to the correspondence.
    how
        "coherent" makes the map that of a smooth deformation, "spectral" that of a nearly
        isometric one (ZoomOut); "ot" spreads it evenly over the target; "mutual" keeps matches
        that hold both ways; "linear" matches the features of the model after a linear map that
        fits the current matches; "none" only adds neighbours and weights.
    model
        Weights by name or folder, or a model. Its features are then heard beside the map; without
        it, the map and the two shapes are all there is. Shapes are turned upright where the
        weights have a network for that. "linear" needs one.
    trust
        Share of the map against the features of the model, from 0 to 1.
    one_to_one
        True if both shapes hold the same points, see `refine_pair`.
    fill
        Whether points without a partner may get one. False leaves them without.
    neighbors
        Target points of the soft partner, at most.

    Returns
    -------
    Correspondence
        With scores, neighbours and weights. `details` holds "refined" (how), whether that was
        accepted, and the energies before and after. Where the refined map scores worse than the
        one that came, that one is returned.
    """
    current = _as_correspondence(correspondence, target)
    source_shape = _as_shape("source", source, current.source, len(current))
    target_shape = _as_shape("target", target, current.target, current.target_size)
    if not 0.0 <= trust <= 1.0:
        raise InputError(
            f"trust {trust} came; a share from 0 to 1 is needed; leave it out for the default"
        )
    if how == "linear" and model is None:
        raise UsageError(
            "how='linear' came without a model; features are needed for a linear map between "
            "them; pass model='human', or refine with how='coherent'"
        )
    if not current.matched.any():
        raise InputError(
            "a correspondence without any matched point came; at least one is needed to refine; "
            "match the shapes first"
        )
    network = _Network.of(model)
    sides = _side(source_shape, network), _side(target_shape, network)
    with torch.no_grad():
        pair = _pair(current, *sides, trust=trust, model_alone=how == "linear")
        start = torch.tensor(current.indices)  # (N,)
        options: dict[str, Any] = {"one_to_one": one_to_one, "fill": fill, "neighbors": neighbors}
        result = refine_pair(pair, how, start=start, **options)
    refined = _kept(current, result, sides[1].points, neighbors)
    if result.accepted:
        refined = _refined(current, result, fill=fill)
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


class _Network(NamedTuple):
    """A model, and the network that turns shapes for it, if its weights have one."""

    model: LTENet
    orienter: Orienter | None

    @classmethod
    def of(cls, model: LTENet | str | os.PathLike[str] | None) -> _Network | None:
        if model is None:
            return None
        if isinstance(model, LTENet):
            return cls(model, None)
        folder = find_weights(os.fspath(model))
        return cls(LTENet.from_pretrained(folder), Orienter.from_pretrained(folder))


def _as_correspondence(given: Correspondence | ArrayLike, target: object) -> Correspondence:
    if isinstance(given, Correspondence):
        return given
    indices = np.asarray(given)
    if target is None:
        raise InputError(
            f"a map of shape {indices.shape} came without shapes; both shapes are needed; "
            "pass source and target"
        )
    size = len(_as_shape("target", target, None, None))
    return Correspondence(indices, size)


def _as_shape(name: str, given: Any, attached: Shape | None, count: int | None) -> Shape:
    if given is None:
        if attached is None:
            raise InputError(
                f"no {name} came and none is attached to the correspondence; its points are "
                f"needed; pass the {name} shape"
            )
        return attached
    if isinstance(given, str | os.PathLike):
        given = load(given)
    shape = given if isinstance(given, Shape) else Shape(np.asarray(given), name=name)
    if count is not None and len(shape) != count:
        raise InputError(
            f"the {name} has {len(shape)} points, the map {count}; they must agree; "
            "check that map and shape belong together"
        )
    return shape


def _side(shape: Shape, network: _Network | None) -> _Side:
    faces = None if shape.faces is None or len(shape.faces) == 0 else torch.tensor(shape.faces)
    if network is None:
        points = torch.from_numpy(shape.normalized().points.astype(np.float32))  # (N, 3)
        return _Side(points, faces, None)
    prepared = prepare(shape, network.model, network.orienter, points=_EMBEDDED)
    points = torch.from_numpy(prepared.all_points().astype(np.float32))  # (N, 3)
    if prepared.complete:
        return _Side(points, faces, prepared.features)
    near = nearest_points(points, prepared.points, _BETWEEN)  # (N, 3)
    shares = 1 / (near.squares + 1e-8)  # (N, 3)
    soft = TopK(near.indices, shares / shares.sum(dim=1, keepdim=True))
    return _Side(points, faces, weighted_mean(prepared.features, soft))


def _pair(
    current: Correspondence, source: _Side, target: _Side, *, trust: float, model_alone: bool
) -> EmbeddedPair:
    """Points of both shapes, and features that hold the current map."""
    neighbors, weights = (torch.tensor(array) for array in current.soft())  # (N, K), (N, K)
    positions = weighted_mean(target.points, TopK(neighbors, weights.float()))  # (N, 3)
    sure = torch.tensor(current.matched).float()  # (N,)
    if current.scores is not None:
        sure = sure * (0.1 + 0.9 * torch.tensor(current.scores).float())
    features = map_features(source.points, target.points, positions, sure)  # (N, D), (M, D)
    if source.features is not None and target.features is not None:
        own = source.features, target.features
        features = own if model_alone else joined(own, features, share=trust)
    return EmbeddedPair(source.points, target.points, *features, source.faces, target.faces)


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
    current: Correspondence, result: RefinedMap, target: Tensor, neighbors: int
) -> Correspondence:
    """Complete the map that came with what it lacks."""
    scores = current.scores
    if scores is None:
        scores = result.confidence.double().clamp(0, 1).numpy()  # (N,)
    if current.neighbors is not None:
        return replace(current, scores=scores)
    # What has no partner still needs neighbours; those of the refined map are the best known.
    indices = torch.tensor(current.indices)  # (N,)
    places = torch.where((indices >= 0)[:, None], target[indices], result.positions)  # (N, 3)
    soft = around(places, target, neighbors)  # (N, K) each
    return replace(
        current, scores=scores, neighbors=soft.indices.numpy(), weights=_unit_sums(soft.scores)
    )


def _unit_sums(weights: Tensor) -> Any:
    values = weights.double().numpy()  # (N, K)
    return values / values.sum(axis=1, keepdims=True)
