"""Measures of the points of a shape that no rotation changes."""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.method.neighbors import knn_graph

#: Sizes of the neighbourhoods whose curvature is measured.
SCALES = (16, 48, 144)


def invariants(points: Tensor, scales: tuple[int, ...] = SCALES) -> Tensor:
    """Measure what no rotation changes about each of (N, 3) points: (N, 1 + 5 scales)."""
    centred = points - points.mean(dim=0)  # (N, 3)
    radii = centred.norm(dim=1, keepdim=True)  # (N, 1)
    outward = centred / radii.clamp_min(1e-6)  # (N, 3)
    neighbors = knn_graph(points, min(max(scales), len(points)))  # (N, k)
    offsets = points[neighbors] - points[:, None]  # (N, k, 3)
    channels = [radii]
    for scale in scales:
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
