"""Which way a shape faces: a small network that finds the frame of a body, once for each shape.

The network of the embedding reads coordinates, so it wants shapes upright and facing +z. This one
sees what no rotation changes: how far points are from the middle, and how their neighbourhoods of
several sizes are curved. From these it weighs the points twice, and the weighted sums of the
points themselves are the directions of up and front,

    up = sum_i a_i x_i,    front = sum_i b_i x_i.

If the shape turns, the weights stay and the directions turn with it: there is nothing to search,
and whatever way a scan comes in costs the same. Left follows from up and front.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ltenet.edgeconv import EdgeConv
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.graph import neighbor_graphs
from ltenet.neighbors import farthest_point_sample, knn_graph
from ltenet.shape import FloatArray, normalizing_matrix

#: File of the network beside the weights of the embedding that it belongs to.
FILE = "orientation.safetensors"
#: Points that the network sees, spread evenly over the shape.
POINTS = 512
#: Sizes of the neighbourhoods whose curvature is measured.
SCALES = (8, 24, 72)
_WIDTHS, _DILATIONS, _NEIGHBORS = (64, 96, 128), (1, 4, 12), 16
_CHANNELS = 256
_SLOPE, _MOMENTUM = 0.2, 0.1


class Frame(NamedTuple):
    """Where a body's own axes point.

    Attributes
    ----------
    rotation
        (3, 3) turns the shape upright: left to +x, up to +y, front to +z.
    certainty
        From 0 to about 1: how clearly the two directions were seen, the lesser of both.
    """

    rotation: FloatArray
    certainty: float


class Orienter(nn.Module):
    """The network: (B, N, 3) points, centred and of one size -> (B, 2, 3) up and front."""

    def __init__(self) -> None:
        super().__init__()
        inputs = (1 + 5 * len(SCALES), *_WIDTHS[:-1])
        self.norm = nn.BatchNorm1d(inputs[0], momentum=_MOMENTUM)
        self.layers = nn.ModuleList(
            EdgeConv(*channels, slope=_SLOPE, momentum=_MOMENTUM)
            for channels in zip(inputs, _WIDTHS, strict=True)
        )
        self.local = nn.Linear(sum(_WIDTHS), _CHANNELS)
        # What the whole shape looks like reaches every point through the pooled features.
        self.whole = nn.Linear(2 * _CHANNELS, _CHANNELS)
        self.joined = nn.Linear(_CHANNELS, _CHANNELS // 2)
        self.weigh = nn.Linear(_CHANNELS // 2, 2)

    def forward(self, points: Tensor) -> Tensor:
        """Find up and front, of length 1 where the network is sure and shorter elsewhere."""
        batch, count = points.shape[:2]
        features = self.norm(torch.cat([invariants(shape) for shape in points]))  # (B N, C)
        graphs = neighbor_graphs(list(points), _NEIGHBORS, _DILATIONS)
        outputs = []
        for layer, graph in zip(self.layers, graphs, strict=True):
            features = layer(features, graph)  # (B N, C)
            outputs.append(features)
        local = self.local(torch.cat(outputs, dim=1)).view(batch, count, -1)  # (B, N, C)
        pooled = torch.cat([local.amax(dim=1), local.mean(dim=1)], dim=1)  # (B, 2 C)
        hidden = F.leaky_relu(local + self.whole(pooled)[:, None], _SLOPE)  # (B, N, C)
        hidden = F.leaky_relu(self.joined(hidden), _SLOPE)  # (B, N, C / 2)
        weights = self.weigh(hidden)  # (B, N, 2)
        centred = points - points.mean(dim=1, keepdim=True)  # (B, N, 3)
        # Divided by the spread of the points: weights of about one give vectors of about one.
        return torch.einsum("bnc,bnd->bcd", weights, centred) / (0.3 * count)

    @torch.no_grad()
    def frame(self, points: NDArray[np.floating]) -> Frame:
        """Find the frame of a shape, given by at least four (N, 3) points."""
        seen = self.eval()(torch.from_numpy(evened(points))[None])[0]  # (2, 3)
        rotation = rotation_from(seen.double()).numpy()  # (3, 3)
        return Frame(rotation, float(seen.norm(dim=1).min()))

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the network into the folder of the weights that it belongs to."""
        state = {name: value.contiguous() for name, value in self.state_dict().items()}
        with atomic_path(Path(folder) / FILE, force=force) as path:
            save_file(state, path, metadata={"format": "pt"})

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Orienter | None:
        """Load the network from a folder of weights; None if these have none."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        network = cls()
        try:
            state = load_file(path)
            expected = network.state_dict()
            network.load_state_dict({key: value.to(expected[key]) for key, value in state.items()})
        except (SafetensorError, OSError, RuntimeError, KeyError) as error:
            raise InputError(
                f"{path}: the orientation network cannot be read ({error}); a complete file of "
                "this version is needed; copy the folder again"
            ) from None
        return network.eval()


def evened(points: NDArray[np.floating]) -> NDArray[np.float32]:
    """Choose what the network sees of (N, 3) points: `POINTS` spread evenly, normalised."""
    if len(points) < POINTS:
        points = np.resize(points, (POINTS, 3))  # small shapes are repeated
    middle = points.mean(axis=0)  # (3,)
    start = int(np.square(points - middle).sum(axis=1).argmax())  # whatever the order of points
    chosen = points[farthest_point_sample(points, POINTS, start=start)]  # (POINTS, 3)
    matrix = normalizing_matrix(chosen)  # (4, 4)
    seen: NDArray[np.float32] = (chosen @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32)
    return seen


def invariants(points: Tensor) -> Tensor:
    """Measure what no rotation changes about each of (N, 3) points: (N, 1 + 5 scales)."""
    centred = points - points.mean(dim=0)  # (N, 3)
    radii = centred.norm(dim=1, keepdim=True)  # (N, 1)
    outward = centred / radii.clamp_min(1e-6)  # (N, 3)
    neighbors = knn_graph(points, min(max(SCALES), len(points)))  # (N, k)
    offsets = points[neighbors] - points[:, None]  # (N, k, 3)
    channels = [radii]
    for scale in SCALES:
        near = offsets[:, :scale]  # (N, s, 3)
        middle = near.mean(dim=1)  # (N, 3)
        spread = near - middle[:, None]  # (N, s, 3)
        covariance = spread.transpose(1, 2) @ spread / near.shape[1]  # (N, 3, 3)
        values = torch.linalg.eigvalsh(covariance).clamp_min(0).sqrt()  # (N, 3)
        channels += [
            middle.norm(dim=1, keepdim=True),  # (N, 1)
            (middle * outward).sum(dim=1, keepdim=True),  # (N, 1)
            values,
        ]
    return torch.cat(channels, dim=1)


def rotation_from(directions: Tensor) -> Tensor:
    """(..., 2, 3) up and front -> (..., 3, 3) rotations that bring them to +y and +z."""
    up = F.normalize(directions[..., 0, :], dim=-1)  # (..., 3)
    front = directions[..., 1, :]  # (..., 3)
    front = F.normalize(front - (front * up).sum(-1, keepdim=True) * up, dim=-1)  # (..., 3)
    left = torch.linalg.cross(up, front)  # (..., 3)
    return torch.stack([left, up, front], dim=-2)
