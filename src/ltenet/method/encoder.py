"""DGCNN, the embedding network: (N, 3) points -> (N, D) features.

EdgeConv layers one after another (see `edgeconv`); their outputs are concatenated and mapped to D.
Blocks of attention may follow (see `context`); the paper's network has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.errors import InputError
from ltenet.method.batchnorm import batch_norm, folded_affine
from ltenet.method.context import ContextBlock
from ltenet.method.edgeconv import EdgeConv
from ltenet.method.frameless import INPUTS, FramelessInput, Inputs, input_channels
from ltenet.method.graph import NeighborGraph, neighbor_graphs

#: Far beyond any use; a damaged configuration must not take all memory.
_MOST_LAYERS, _LARGEST = 64, 2**16
#: Names of the networks; `encoders` resolves them.
KINDS = ("dgcnn", "pointnet", "spectral")


@dataclass(frozen=True)
class EncoderConfig:
    """What the network looks like; the defaults are the paper's.

    Attributes
    ----------
    widths
        Output channels of the EdgeConv layers; their number is the depth.
    dimension
        Channels of the embedding, the paper's D.
    neighbors
        Neighbours of each point, itself included.
    dilations
        How far apart the neighbours are, layer by layer: with dilation d every d-th of the
        nearest ones is taken. One number for each width, or none for the paper's 1 throughout.
    dynamic
        Find the neighbours anew in the features of each layer instead of once in 3-D.
    slope
        Negative slope of LeakyReLU.
    momentum
        Share of a new batch in the running statistics of BatchNorm.
    kind
        "dgcnn", the paper's; "pointnet" or "spectral" in its place, see `encoders`. These have no
        neighbours, dilations or dynamic graphs.
    functions
        Eigenfunctions that the spectral network works with.
    inputs
        What the first layer reads of each point: the paper's "coordinates", or what no rotation
        changes: "invariants", or these with coordinates along "axes" that the network finds
        itself; see `frameless`.
    surface
        Where the surface is known, points that are far along it are no neighbours, however close
        in space.
    context
        Blocks of attention among all points of a shape that follow, see `context`.
    """

    widths: tuple[int, ...] = (96, 192, 384, 768)
    dimension: int = 512
    neighbors: int = 27
    dilations: tuple[int, ...] = ()
    dynamic: bool = False
    slope: float = 0.2
    momentum: float = 0.1
    kind: Literal["dgcnn", "pointnet", "spectral"] = "dgcnn"
    functions: int = 64
    inputs: Inputs = "coordinates"
    surface: bool = False
    context: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        object.__setattr__(self, "dilations", tuple(self.dilations))
        if self.dilations and (len(self.dilations) != len(self.widths) or min(self.dilations) < 1):
            raise InputError(
                f"encoder: got dilations {self.dilations} for {len(self.widths)} layers, expected "
                "one of at least 1 for each; try leaving them out, for 1 throughout"
            )
        numbers = (*self.widths, self.dimension, self.neighbors)
        if len(self.widths) > _MOST_LAYERS or max(numbers) > _LARGEST:
            raise InputError(
                f"encoder: got {len(self.widths)} layers and sizes up to {max(numbers)}, expected "
                f"at most {_MOST_LAYERS} and {_LARGEST}; try the paper's network"
            )
        if not self.widths or min(numbers) < 1:
            raise InputError(
                f"encoder: got widths {self.widths}, dimension {self.dimension} and "
                f"{self.neighbors} neighbours, expected at least one layer and positive numbers; "
                "try leaving them out, for the paper's network"
            )
        if self.kind not in KINDS:
            raise InputError(
                f"encoder: got the kind {self.kind!r}, expected one of {', '.join(KINDS)}; try the "
                "paper's dgcnn"
            )
        if self.kind != "dgcnn" and (self.dilations or self.dynamic):
            raise InputError(
                f"encoder: got dilations {self.dilations} and dynamic {self.dynamic} for "
                f"{self.kind}, expected neither: it has no graph; try leaving them out"
            )
        if self.surface and (self.kind != "dgcnn" or self.dynamic):
            raise InputError(
                f"encoder: got surface for {self.kind} and dynamic {self.dynamic}, expected dgcnn "
                "with one graph in 3-D; try leaving it out"
            )
        if self.kind != "dgcnn" and self.inputs != "coordinates":
            raise InputError(
                f"encoder: got inputs {self.inputs!r} for {self.kind}, expected coordinates: only "
                "dgcnn reads others; try leaving them out"
            )
        if not 2 <= self.functions <= _LARGEST:
            raise InputError(
                f"encoder: got {self.functions} eigenfunctions, expected 2 to {_LARGEST}; try 64"
            )
        if not 0 <= self.context <= _MOST_LAYERS or (self.context and self.kind != "dgcnn"):
            raise InputError(
                f"encoder: got {self.context} blocks of context for {self.kind}, expected 0 to "
                f"{_MOST_LAYERS}, and for dgcnn only; try leaving them out"
            )
        if self.inputs not in INPUTS:
            raise InputError(
                f"encoder: got inputs {self.inputs!r}, expected one of {', '.join(INPUTS)}; try "
                "the paper's coordinates"
            )
        if not 0 <= self.slope <= 1:
            raise InputError(
                f"encoder: got a LeakyReLU slope of {self.slope}, expected 0 to 1, where maximum "
                "and activation commute; try DGCNN's 0.2"
            )


class DGCNN(nn.Module):
    """The network. Shapes of a batch may differ in size; they share the statistics of BatchNorm.

    Input and output are (B, N, 3) -> (B, N, D), or a sequence of (N_s, 3) -> a list of (N_s, D).
    """

    def __init__(self, config: EncoderConfig | None = None) -> None:
        super().__init__()
        self.config = config or EncoderConfig()
        inputs = (input_channels(self.config.inputs), *self.config.widths[:-1])
        self.layers = nn.ModuleList(
            EdgeConv(*channels, slope=self.config.slope, momentum=self.config.momentum)
            for channels in zip(inputs, self.config.widths, strict=True)
        )
        self.head = nn.Linear(sum(self.config.widths), self.config.dimension, bias=False)
        self.norm = nn.BatchNorm1d(self.config.dimension, momentum=self.config.momentum)
        self.shared = False
        # Last, so that the layers of the paper's network begin with the same weights.
        self.input = (
            None
            if self.config.inputs == "coordinates"
            else FramelessInput(
                self.config.inputs, slope=self.config.slope, momentum=self.config.momentum
            )
        )
        self.context = nn.ModuleList(
            ContextBlock(self.config.dimension) for _ in range(self.config.context)
        )

    def share_statistics(self) -> None:
        """Let BatchNorm see the batches of all processes as one, from now on."""
        for layer in self.modules():
            if isinstance(layer, (DGCNN, EdgeConv)):
                layer.shared = True

    def forward(
        self, shapes: Tensor | Sequence[Tensor], graphs: Sequence[NeighborGraph] | None = None
    ) -> Tensor | list[Tensor]:
        """Embed a batch of shapes; `graphs` are what `graphs_of` made of them, if known."""
        sizes = [len(points) for points in shapes]
        graphs = graphs or self.graphs_of(shapes)
        # (M, 3) coordinates or (M, C), M = sum of the sizes
        features = torch.cat(list(shapes)) if self.input is None else self.input(shapes, graphs)
        outputs = []
        for depth, layer in enumerate(self.layers):
            if self.config.dynamic and depth > 0:
                graphs = self.graphs_of(features.split(sizes))
            features = layer(features, graphs[depth])  # (M, C)
            outputs.append(features)
        features = self._embed(torch.cat(outputs, dim=1))  # (M, D)
        for block in self.context:
            features = block(features, sizes)  # (M, D)
        if isinstance(shapes, Tensor):
            return features.view(len(sizes), -1, self.config.dimension)  # (B, N, D)
        return list(features.split(sizes))

    def graphs_of(
        self, shapes: Tensor | Sequence[Tensor], along: Sequence[Tensor | None] | None = None
    ) -> list[NeighborGraph]:
        """Neighbours of every point of a batch, as one graph for each layer.

        Parameters
        ----------
        shapes
            The points.
        along
            (N_s, L) coordinates along the surface of each shape, see `knn_graph`, or None; used if
            the settings say so.
        """
        dilations = self.config.dilations or (1,) * len(self.layers)
        along = along if self.config.surface else None
        return neighbor_graphs(list(shapes), self.config.neighbors, dilations, along)

    def _embed(self, features: Tensor) -> Tensor:
        """Last linear layer: (M, sum of widths) -> (M, D)."""
        if self.training:
            features = self._normalized(self.head(features))  # (M, D)
        else:
            scale, shift = folded_affine(self.norm)
            features = F.linear(features, self.head.weight * scale[:, None], shift)  # (M, D)
        return F.leaky_relu(features, self.config.slope, inplace=not self.training)

    def _normalized(self, features: Tensor) -> Tensor:
        """BatchNorm of (M, D) features."""
        return batch_norm(features, self.norm, shared=self.shared)
