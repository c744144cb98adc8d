"""GeoFMNet [Donati et al. 2020] with DiffusionNet features [Sharp et al. 2022].

Learned features give descriptors, their coefficients a functional map that is drawn to commute with
the Laplacians, and the loss is its distance from the true map. The published features are KPConv;
DiffusionNet's authors put theirs in their place, and so do we.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.diffusion import DiffusionNet
from ltenet.evaluation.peers.learned.functional_layer import projected, regularized_map, true_map
from ltenet.evaluation.peers.learned.partner_rows import PartnerRows
from ltenet.evaluation.peers.learned.spectral_learner import (
    SpectralLearner,
    SpectralPeer,
    SpectralTensors,
)
from ltenet.evaluation.peers.learned.spectral_shapes import Needs, ShapeTensors


@dataclass(frozen=True)
class GeoFMNetConfig:
    """Sizes of the network; the defaults are those of DiffusionNet's authors, for fewer points.

    Attributes
    ----------
    functions
        Size of the functional map.
    diffusion_functions
        Functions of the basis in which features are diffused.
    width, blocks, dropout
        Of DiffusionNet.
    outputs
        Descriptors.
    regularizer
        Weight of the term that commutes with the Laplacians, for surfaces of area 1.
    pool
        Shapes to train on.
    """

    functions: int = 30
    diffusion_functions: int = 64
    width: int = 128
    blocks: int = 4
    dropout: float = 0.5
    outputs: int = 128
    regularizer: float = 1e-3
    pool: int = 400

    def __post_init__(self) -> None:
        if not 1 <= self.functions <= self.diffusion_functions or min(self.width, self.blocks) < 1:
            raise InputError(
                f"geofmnet: got a map of {self.functions} among {self.diffusion_functions} "
                f"functions and {self.blocks} blocks of {self.width}, expected at most as many, "
                "and at least one block; try the defaults by leaving them out"
            )


class GeoFMNetLoss(NamedTuple):
    """The loss of a step: squared distance of the maps, a mean over pairs."""

    total: Tensor


class GeoFMNet(SpectralLearner):
    """The network, supervised."""

    system = "geofmnet"
    settings = GeoFMNetConfig
    supervised = True

    def __init__(self, config: GeoFMNetConfig) -> None:
        super().__init__(config)
        self.features = DiffusionNet(
            3, config.outputs, width=config.width, blocks=config.blocks, dropout=config.dropout
        )

    def needs(self) -> Needs:
        """Functions and gradients."""
        return Needs(self.config.diffusion_functions, gradients=True)

    def map_between(self, source: ShapeTensors, target: ShapeTensors) -> Tensor:
        """(k, k) functional map from source to target."""
        count = min(self.config.functions, len(source.values), len(target.values))
        a, b = (
            projected(
                shape.functions[:, :count],
                shape.masses,
                self.features(shape.points, shape.surface()),
            )
            for shape in (source, target)
        )  # (k, c) each
        values = source.values[:count], target.values[:count]  # (k,) each
        return regularized_map(a, b, *values, weight=self.config.regularizer)

    def loss(self, pairs: Sequence[SpectralTensors], progress: float) -> GeoFMNetLoss:
        """Squared distance from the true maps."""
        losses = []
        for pair, source, target in pairs:
            found = self.map_between(source, target)  # (k, k)
            size = len(found)
            partners = PartnerRows.of(pair)
            partners = partners._replace(weights=partners.weights.to(found.dtype))
            truth = true_map(source.functions[:, :size], target.functions[:, :size], partners)
            losses.append((found - truth).square().sum())
        return GeoFMNetLoss(torch.stack(losses).mean())


class GeoFMNetPeer(SpectralPeer):
    """GeoFMNet as a method."""

    network = GeoFMNet
