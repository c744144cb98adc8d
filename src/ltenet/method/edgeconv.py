"""EdgeConv, the layer of the network, without its edges.

An EdgeConv layer applies, for every point i and neighbour j, a linear map to the edge feature
[f_j - f_i, f_i], then BatchNorm over all edges, LeakyReLU, and the maximum over j. With the weight
split as [A, B], the linear map is ``A f_j + (B - A) f_i``: two products over points instead of one
over edges. BatchNorm and LeakyReLU are monotone in each channel, so after flipping the channels
with a negative scale the maximum may be taken first, over ``A f_j`` alone. The statistics over all
edges follow exactly from sums over points. Nothing of size (N, k, C) ever exists.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ltenet.method.batchnorm import folded_affine, total_over_processes, track_statistics
from ltenet.method.graph import NeighborGraph, neighbor_max

#: Floats of a tensor that are worked on at a time: half a megabyte.
_BLOCK_FLOATS = 1 << 17


class EdgeConv(nn.Module):
    """One layer: (M, C_in) features and their graph -> (M, C_out).

    Attributes
    ----------
    weight
        (C_out, 2 C_in): acts on [f_j - f_i, f_i]; there is no bias.
    norm
        BatchNorm over all edges. Its own forward is never called.
    shared
        Whether it counts the edges of all processes.
    """

    def __init__(self, inputs: int, outputs: int, *, slope: float, momentum: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, 2 * inputs))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # as torch's own convolutions
        self.norm = nn.BatchNorm1d(outputs, momentum=momentum)
        self.slope, self.shared = slope, False

    def forward(self, features: Tensor, graph: NeighborGraph) -> Tensor:
        """Apply the layer."""
        if not self.training:
            return self._folded(features, graph)
        norm = self.norm
        own_edges = features.new_tensor(graph.indices.numel(), dtype=torch.float64)
        edges = total_over_processes(own_edges, shared=self.shared)
        scale, shift = norm.weight, norm.bias
        output: Tensor
        output, mean, variance = _EdgeConvTraining.apply(  # (M, C_out), (C_out,), (C_out,)
            features, self.weight, scale, shift, graph, edges, norm.eps, self.slope, self.shared
        )
        track_statistics(norm, mean, variance, edges)
        return output

    def _folded(self, features: Tensor, graph: NeighborGraph) -> Tensor:
        """Evaluate with BatchNorm folded into the weights."""
        scale, shift = folded_affine(self.norm)
        neighbor_weight, point_weight = _split(self.weight, scale)
        # The scale is in the weights already, so negative channels are flipped by themselves.
        output = F.linear(features, point_weight, shift)  # (M, C_out)
        output += neighbor_max(features @ neighbor_weight.T, graph)
        return F.leaky_relu(output, self.slope, inplace=True)


class _EdgeConvTraining(torch.autograd.Function):
    """EdgeConv with batch statistics, as one function with its closed-form backward.

    Notation, with P = A f (neighbour part), Q = (B - A) f (point part), k neighbours, E edges:
    the edge value is ``y_ij = P_j + Q_i``; its maximum over j is ``max_j P_j + Q_i``; its mean is
    ``mean_deg(P) + mean(Q)``; and with both parts centred its variance is
    ``(sum_j deg_j P_j^2 + sum_i Q_i (2 S_i + k Q_i)) / E``, where S_i sums P over the neighbours.
    Centring first keeps the variance free of cancellation. Element by element, the work goes on in
    blocks of rows that stay in cache.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        scale: Tensor,
        shift: Tensor,
        graph: NeighborGraph,
        edges: Tensor,
        eps: float,
        slope: float,
        shared: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        k = graph.k
        degree = graph.in_degree.to(features.dtype)  # (M,)
        sign = torch.where(scale < 0, -1.0, 1.0).to(scale.dtype)  # (C_out,)
        neighbor_weight, point_weight = _split(weight, sign)  # (C_out, C_in) each
        sums = torch.stack([degree @ features, k * features.sum(dim=0)])  # (2, C_in)
        neighbor_mean, point_mean = (
            total_over_processes(sums, shared=shared) / edges
        )  # (C_in,) each: the mean of a product is the product of the mean
        neighbor_part = (features - neighbor_mean) @ neighbor_weight.T  # (M, C_out): P, centred
        point_part = (features - point_mean) @ point_weight.T  # (M, C_out): Q, centred
        value, argument = graph.argmax(neighbor_part)  # (M, C_out) each
        # Half of d(variance) / dQ up to 2 / E, and all that the variance needs besides P^2.
        point_slope = graph.sum(neighbor_part)  # (M, C_out): S, and S + k Q / 2 below
        variance = torch.zeros_like(scale)  # (C_out,)
        for rows in _row_blocks(value):
            value[rows] += point_part[rows]  # centred maximum of y_ij over j
            half = point_slope[rows].add_(point_part[rows], alpha=k / 2)  # (r, C_out)
            variance += degree[rows] @ neighbor_part[rows].square()
            variance += (half * point_part[rows]).sum(dim=0).mul_(2)
        variance = total_over_processes(variance, shared=shared) / edges
        inverse_std = torch.rsqrt(variance + eps)  # (C_out,)

        gain = scale.abs() * inverse_std  # (C_out,)
        output = torch.empty_like(value)  # (M, C_out)
        for rows in _row_blocks(value):
            torch.addcmul(shift, value[rows], gain, out=output[rows])
            F.leaky_relu(output[rows], slope, inplace=True)
        ctx.save_for_backward(
            features, weight, scale, neighbor_part, point_part, point_slope, value, argument,
            output, inverse_std,
        )  # fmt: skip
        ctx.graph, ctx.edges, ctx.slope, ctx.shared = graph, edges, slope, shared
        mean = (neighbor_weight @ neighbor_mean + point_weight @ point_mean) * sign  # (C_out,)
        ctx.mark_non_differentiable(mean, variance)
        return output, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        (features, weight, scale, neighbor_part, point_part, point_slope, value, argument,
         output, inverse_std) = ctx.saved_tensors  # fmt: skip
        graph: NeighborGraph = ctx.graph
        k, edges = graph.k, ctx.edges
        degree = graph.in_degree.to(features.dtype)[:, None]  # (M, 1)
        sign = torch.where(scale < 0, -1.0, 1.0).to(scale.dtype)  # (C_out,)

        grad_point = torch.empty_like(value)  # (M, C_out): first of the normalised maximum
        grad_shift, grad_scale = torch.zeros_like(scale), torch.zeros_like(scale)  # (C_out,) each
        for rows in _row_blocks(value):
            part = torch.ops.aten.leaky_relu_backward(grad[rows], output[rows], ctx.slope, True)
            grad_shift += part.sum(dim=0)
            grad_scale += (part * value[rows]).sum(dim=0)
            grad_point[rows] = part
        grad_scale *= inverse_std  # of |scale|
        gain = scale.abs() * inverse_std  # (C_out,)
        # What each edge receives through the mean, and through the variance per unit of y_ij.
        shift_total, scale_total = total_over_processes(
            torch.stack([grad_shift, grad_scale]), shared=ctx.shared
        )
        through_mean = -gain * shift_total / edges  # (C_out,)
        through_variance = -gain * inverse_std * scale_total / edges  # (C_out,)

        grad_neighbor = graph.transposed_sum(point_part)  # (M, C_out): d(variance)/dP, Q's share
        for rows in _row_blocks(value):
            part = grad_neighbor[rows].addcmul_(degree[rows], neighbor_part[rows])
            part.mul_(through_variance).addcmul_(degree[rows], through_mean)
        for rows in _row_blocks(value):
            part = grad_point[rows].mul_(gain)  # (r, C_out): of the centred maximum
            grad_neighbor.scatter_add_(0, argument[rows], part)
            part.addcmul_(point_slope[rows], through_variance)
            part.addcmul_(point_part[rows], through_variance, value=k / 2)
            part += k * through_mean

        neighbor_weight, point_weight = _split(weight, sign)  # (C_out, C_in) each
        grad_features = None
        if ctx.needs_input_grad[0]:
            grad_features = torch.addmm(  # (M, C_in)
                grad_neighbor @ neighbor_weight, grad_point, point_weight
            )
        grad_point_weight = grad_point.T @ features  # (C_out, C_in)
        grad_difference_weight = grad_neighbor.T @ features - grad_point_weight  # (C_out, C_in)
        grad_weight = torch.cat([grad_difference_weight, grad_point_weight], dim=1)
        grad_weight *= sign[:, None]
        return grad_features, grad_weight, grad_scale * sign, grad_shift, *[None] * 5


def _split(weight: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Turn (C_out, 2 C_in) for [f_j - f_i, f_i] into scaled weights of f_j and of f_i."""
    difference, point = weight.mul(scale[:, None]).chunk(2, dim=1)  # (C_out, C_in) each
    return difference, point - difference


def _row_blocks(values: Tensor) -> list[slice]:
    """Rows of (M, C) values in blocks that stay in cache; all at once on other devices."""
    count, channels = values.shape
    size = max(1, _BLOCK_FLOATS // channels) if values.device.type == "cpu" else count
    return [slice(start, start + size) for start in range(0, count, size)]
