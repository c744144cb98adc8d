"""The method written plainly: every edge, every difference, every inverse, all under autograd.

What `ltenet` computes is checked against this in the tests and timed against it in
`benchmarks.compute`. Nothing here is clever, on purpose.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.edgeconv import EdgeConv
from ltenet.encoder import DGCNN


class ReferenceDGCNN(nn.Module):
    """The network of the paper with every edge.

    It shares the parameters and running statistics of a `DGCNN`, so that both can be compared.

    Parameters
    ----------
    encoder
        Whose weights to use.
    convolution
        Edges as the pixels of a 1 x 1 convolution, channels first, as DGCNN is usually written;
        False takes them as the rows of one matrix product, which is quicker on a CPU.
    """

    def __init__(self, encoder: DGCNN, *, convolution: bool = True) -> None:
        super().__init__()
        self.encoder = encoder
        self.convolution = convolution

    def forward(self, points: Tensor) -> Tensor:
        """Embed (B, N, 3) -> (B, N, D)."""
        k, slope = self.encoder.config.neighbors, self.encoder.config.slope
        indices = torch.cdist(points, points).topk(k, largest=False).indices  # (B, N, k)
        features, outputs = points, []
        for layer in self.encoder.layers:
            assert isinstance(layer, EdgeConv)
            neighbors = torch.stack([f[i] for f, i in zip(features, indices, strict=True)])
            center = features[:, :, None].expand_as(neighbors)  # (B, N, k, C)
            edges = torch.cat([neighbors - center, center], dim=-1)  # (B, N, k, 2 C)
            apply = self._convolved if self.convolution else self._multiplied
            features = F.leaky_relu(apply(edges, layer), slope).amax(dim=2)  # (B, N, C')
            outputs.append(features)
        features = self.encoder.head(torch.cat(outputs, dim=-1))  # (B, N, D)
        features = self.encoder.norm(features.flatten(0, 1)).view(features.shape)
        return F.leaky_relu(features, slope)

    @staticmethod
    def _convolved(edges: Tensor, layer: EdgeConv) -> Tensor:
        """Convolution and BatchNorm of (B, N, k, 2 C) -> (B, N, k, C')."""
        norm = layer.norm
        images = edges.permute(0, 3, 1, 2).contiguous()  # (B, 2 C, N, k)
        images = F.conv2d(images, layer.weight[:, :, None, None])  # (B, C', N, k)
        if norm.training and norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
        images = F.batch_norm(
            images,
            norm.running_mean,
            norm.running_var,
            norm.weight,
            norm.bias,
            norm.training,
            norm.momentum or 0.0,
            norm.eps,
        )
        return images.permute(0, 2, 3, 1)

    @staticmethod
    def _multiplied(edges: Tensor, layer: EdgeConv) -> Tensor:
        """Matrix product and BatchNorm of (B, N, k, 2 C) -> (B, N, k, C')."""
        edges = edges @ layer.weight.T  # (B, N, k, C')
        normalized: Tensor = layer.norm(edges.flatten(0, 2)).view(edges.shape)
        return normalized


def locally_linear_weights(
    source: Tensor, target: Tensor, indices: Tensor, gamma: float = 1.0
) -> Tensor:
    """Weights (B, N, K) by inverting each (G + gamma I), as the paper writes it."""
    neighbors = torch.stack([f[i] for f, i in zip(target, indices, strict=True)])  # (B, N, K, D)
    differences = source[:, :, None] - neighbors  # (B, N, K, D)
    gram = differences @ differences.transpose(-1, -2)  # (B, N, K, K)
    k = indices.shape[-1]
    inverse = torch.linalg.inv(gram + gamma * torch.eye(k, dtype=gram.dtype))  # (B, N, K, K)
    weights: Tensor = inverse.sum(dim=-1)  # (B, N, K)
    return weights / weights.sum(dim=-1, keepdim=True)


def log_kernel_mean(first: Tensor, second: Tensor, sigma: float) -> Tensor:
    """Log of the sum of all kernels (B,), the listing of the paper."""
    differences = first.unsqueeze(2) - second.unsqueeze(1)  # (B, N, M, 3)
    exponents = differences.square().sum(dim=-1).div(2 * sigma**2).mul(-0.5)  # (B, N, M)
    exponents = exponents - 0.5 * math.log(2 * math.pi) - math.log(math.sqrt(2) * sigma)
    return torch.logsumexp(exponents.flatten(1), dim=1)


def cauchy_schwarz(rebuilt: Tensor, real: Tensor, sigma: float = 0.01) -> Tensor:
    """Cauchy-Schwarz divergence (B,) from dense differences, the listing of the paper."""
    return (
        -log_kernel_mean(rebuilt, real, sigma)
        + 0.5 * log_kernel_mean(rebuilt, rebuilt, sigma)
        + 0.5 * log_kernel_mean(real, real, sigma)
    )


def reconstruct(weights: Tensor, indices: Tensor, points: Tensor) -> Tensor:
    """Weighted means (B, N, 3) of neighbours."""
    neighbors = torch.stack([p[i] for p, i in zip(points, indices, strict=True)])  # (B, N, K, 3)
    return (weights[..., None] * neighbors).sum(dim=2)


def smoothness(points: Tensor, rebuilt: Tensor, k: int = 10, alpha: float = 8.0) -> Tensor:
    """How far neighbours are torn apart (B,)."""
    indices = torch.cdist(points, points).topk(k, largest=False).indices  # (B, N, k)

    def squared_edges(shape: Tensor) -> Tensor:
        ends = torch.stack([p[i] for p, i in zip(shape, indices, strict=True)])  # (B, N, k, 3)
        return (ends - shape[:, :, None]).square().sum(dim=-1)

    nearness = torch.exp(-squared_edges(points) / alpha)  # (B, N, k)
    return (nearness * squared_edges(rebuilt)).mean(dim=(1, 2))


def objective(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    *,
    k: int = 10,
    gamma: float = 1.0,
    sigma: float = 0.01,
) -> Tensor:
    """Evaluate the paper's objective with its weights 1, 1 and 10."""

    def rebuild(queries: Tensor, keys: Tensor, points: Tensor, *, itself: bool) -> Tensor:
        similarity = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(1, 2)
        if itself:
            diagonal = torch.eye(similarity.shape[1], dtype=torch.bool)
            similarity = similarity.masked_fill(diagonal, -math.inf)
        indices = similarity.topk(k, dim=-1).indices  # (B, N, K)
        return reconstruct(locally_linear_weights(queries, keys, indices, gamma), indices, points)

    target_hat = rebuild(source_features, target_features, target, itself=False)
    source_hat = rebuild(target_features, source_features, source, itself=False)
    source_tilde = rebuild(source_features, source_features, source, itself=True)
    target_tilde = rebuild(target_features, target_features, target, itself=True)
    cross = cauchy_schwarz(source_hat, source, sigma) + cauchy_schwarz(target_hat, target, sigma)
    itself = cauchy_schwarz(source_tilde, source, sigma) + cauchy_schwarz(
        target_tilde, target, sigma
    )
    smooth = smoothness(source, target_hat) + smoothness(target, source_hat)
    return (cross + itself + 10 * smooth).mean()
