"""LTENet on one page: the paper in its own order, with nothing but PyTorch.

He, Emami, Ranka, Rangarajan: *Learning Canonical Embeddings for Unsupervised Shape Correspondence
with Locally Linear Transformations*. Equation numbers are the paper's. B pairs of shapes with N
source and M target points, K neighbours, D channels; batch first, points second, channels last.

Training and matching, in full::

    network = DGCNN()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, weight_decay=5e-4)
    for source, target in pairs:                                # (B, N, 3), (B, M, 3)
        loss = objective(source, target, network(source), network(target))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.eval()
    partners = match(network(source), network(target))          # (B, N) indices into the target

Every edge and every inverse is written out, so this is slow. The other modules here compute the
same numbers fast, with the same weights: tests compare them in float64, gradients included, and
`benchmarks.compute` compares the speed. For what the paper leaves open see docs/deviations.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def gather(values: Tensor, indices: Tensor) -> Tensor:
    """Rows (B, N, K, C) of (B, M, C) values at (B, N, K) indices."""
    return torch.stack([rows[chosen] for rows, chosen in zip(values, indices, strict=True)])


def nearest_points(points: Tensor, k: int) -> Tensor:
    """Find the k nearest of (B, N, 3) points, each its own first: (B, N, k) indices."""
    return torch.cdist(points, points).topk(k, largest=False).indices


# --- The embedding F: a variant of DGCNN [Wang et al. 2019], the one of DPC [Lang et al. 2021] ----


class EdgeConv(nn.Module):
    """One layer: a linear map of [f_j - f_i, f_i], BatchNorm, LeakyReLU, maximum over j."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, 2 * inputs))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # as torch's own convolutions
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, features: Tensor, indices: Tensor) -> Tensor:
        """Map (B, N, C) features with (B, N, k) neighbours to (B, N, C')."""
        neighbors = gather(features, indices)  # (B, N, k, C)
        center = features[:, :, None].expand_as(neighbors)  # (B, N, k, C)
        edges = torch.cat([neighbors - center, center], dim=-1) @ self.weight.T  # (B, N, k, C')
        edges = self.norm(edges.flatten(0, 2)).view(edges.shape)  # statistics over all edges
        return F.leaky_relu(edges, 0.2).amax(dim=2)  # (B, N, C')


class DGCNN(nn.Module):
    """The network F: four layers on one graph, the 27 nearest points; all outputs to D channels."""

    def __init__(
        self, widths: Sequence[int] = (96, 192, 384, 768), dimension: int = 512, neighbors: int = 27
    ) -> None:
        super().__init__()
        self.neighbors = neighbors
        self.layers = nn.ModuleList(map(EdgeConv, (3, *widths[:-1]), widths))
        self.head = nn.Linear(sum(widths), dimension, bias=False)
        self.norm = nn.BatchNorm1d(dimension)

    def forward(self, points: Tensor) -> Tensor:
        """Embed (B, N, 3) points as (B, N, D) features."""
        indices = nearest_points(points, self.neighbors)  # (B, N, k)
        features, outputs = points, []
        for layer in self.layers:
            features = layer(features, indices)  # (B, N, C)
            outputs.append(features)
        features = self.head(torch.cat(outputs, dim=-1))  # (B, N, D)
        features = self.norm(features.flatten(0, 1)).view(features.shape)  # (B, N, D)
        return F.leaky_relu(features, 0.2)


# --- Optimal locally linear transformations -------------------------------------------------------


def cosine_similarity(source: Tensor, target: Tensor) -> Tensor:
    """Cosines (B, N, M) of the angles between (B, N, D) and (B, M, D) features."""
    return F.normalize(source, dim=-1) @ F.normalize(target, dim=-1).transpose(1, 2)


def locally_linear_weights(
    source: Tensor, target: Tensor, indices: Tensor, gamma: float = 1.0
) -> Tensor:
    """Weights (B, N, K) that rebuild each source feature from its neighbours: Eq. 2 to 5.

    They minimise ``|f_i - sum_l w_il f_l|^2 + gamma |w_i|^2`` subject to ``sum_l w_il = 1``.
    """
    differences = source[:, :, None] - gather(target, indices)  # (B, N, K, D)
    gram = differences @ differences.transpose(-1, -2)  # (B, N, K, K), Eq. 5
    ridge = gamma * torch.eye(indices.shape[-1], dtype=gram.dtype, device=gram.device)  # (K, K)
    solution: Tensor = torch.linalg.inv(gram + ridge).sum(dim=-1)  # (B, N, K)
    return solution / solution.sum(dim=-1, keepdim=True)  # Eq. 4


# --- Learning canonical embeddings: shapes rebuilt with these weights -----------------------------


def reconstruct(weights: Tensor, indices: Tensor, points: Tensor) -> Tensor:
    """Rebuild (B, N, 3) from the (B, M, 3) points at (B, N, K) indices: Eq. 6."""
    return (weights[..., None] * gather(points, indices)).sum(dim=2)


def cross_reconstruction(
    source: Tensor, target: Tensor, target_points: Tensor, k: int = 10, gamma: float = 1.0
) -> Tensor:
    """Rebuild the target at the source points (B, N, 3): Y hat, row i where x_i lies on Y."""
    indices = cosine_similarity(source, target).topk(k, dim=-1).indices  # (B, N, K)
    weights = locally_linear_weights(source, target, indices, gamma)  # (B, N, K)
    return reconstruct(weights, indices, target_points)


def self_reconstruction(
    features: Tensor, points: Tensor, k: int = 10, gamma: float = 1.0
) -> Tensor:
    """Rebuild a shape from itself (B, N, 3), no point from itself: X tilde."""
    similarity = cosine_similarity(features, features)  # (B, N, N)
    itself = torch.eye(points.shape[1], dtype=torch.bool, device=points.device)  # (N, N)
    indices = similarity.masked_fill(itself, -math.inf).topk(k, dim=-1).indices  # (B, N, K)
    weights = locally_linear_weights(features, features, indices, gamma)  # (B, N, K)
    return reconstruct(weights, indices, points)


# --- Implicit correspondence learning: point sets as densities ------------------------------------


def log_kernel_sum(first: Tensor, second: Tensor, sigma: float) -> Tensor:
    """Log (B,) of the sum of all Gaussians of width sqrt(2) sigma: `gmm` of the paper's listing."""
    differences = first[:, :, None] - second[:, None]  # (B, N, M, 3)
    exponents = -differences.square().sum(dim=-1) / (4 * sigma**2)  # (B, N, M)
    exponents = exponents - 0.5 * math.log(2 * math.pi) - math.log(math.sqrt(2) * sigma)
    return torch.logsumexp(exponents.flatten(1), dim=1)


def cauchy_schwarz(rebuilt: Tensor, real: Tensor, sigma: float = 0.01) -> Tensor:
    """Cauchy-Schwarz divergence (B,) of the densities around two point sets: Eq. 8 to 10."""
    cross = log_kernel_sum(rebuilt, real, sigma)  # (B,)
    own = log_kernel_sum(rebuilt, rebuilt, sigma) + log_kernel_sum(real, real, sigma)  # (B,)
    return 0.5 * own - cross


# --- The training objective -----------------------------------------------------------------------


def smoothness(points: Tensor, rebuilt: Tensor, k: int = 10, alpha: float = 8.0) -> Tensor:
    """E_r (B,): neighbours should be rebuilt as neighbours; Eq. 12.

    As in DPC, the k nearest points include the point itself and the mean leaves it out.
    """
    indices = nearest_points(points, k)[..., 1:]  # (B, N, k - 1)

    def squared_edges(shape: Tensor) -> Tensor:
        return (gather(shape, indices) - shape[:, :, None]).square().sum(dim=-1)  # (B, N, k - 1)

    return (torch.exp(-squared_edges(points) / alpha) * squared_edges(rebuilt)).mean(dim=(1, 2))


def objective(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    *,
    weights: tuple[float, float, float] = (1.0, 1.0, 10.0),
    k: int = 10,
    gamma: float = 1.0,
    sigma: float = 0.01,
) -> Tensor:
    """Mean objective of a batch of pairs: Eq. 11, with `weights` lambda cross, self and reg."""
    source_hat = cross_reconstruction(target_features, source_features, source, k, gamma)
    target_hat = cross_reconstruction(source_features, target_features, target, k, gamma)
    source_tilde = self_reconstruction(source_features, source, k, gamma)
    target_tilde = self_reconstruction(target_features, target, k, gamma)
    cross = cauchy_schwarz(source_hat, source, sigma) + cauchy_schwarz(target_hat, target, sigma)
    own = cauchy_schwarz(source_tilde, source, sigma) + cauchy_schwarz(target_tilde, target, sigma)
    regular = smoothness(source, target_hat) + smoothness(target, source_hat)  # (B,)
    return (weights[0] * cross + weights[1] * own + weights[2] * regular).mean()


# --- The test phase -------------------------------------------------------------------------------


def match(source: Tensor, target: Tensor) -> Tensor:
    """Partners (B, N) of the source points: nearest target features by cosine; Eq. 13."""
    return cosine_similarity(source, target).argmax(dim=-1)
