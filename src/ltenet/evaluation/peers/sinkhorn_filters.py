"""Fast Sinkhorn filters [Pai et al. 2021]: nearest rows of two embeddings, but both ways at once.

Each point keeps its 50 nearest rows on the other shape. The kernel ``exp(-500 d / d_max)`` on
these, the mean of both directions, is scaled until all masses are equal; partners have its largest
entries.
Everything that reads a point map from embeddings can read it this way.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltenet.method.laplacian import LaplacianBasis
from ltenet.method.neighbors import TopK
from ltenet.refinement.zoomout import aligned, euclidean_topk

#: Rows that a point keeps, sharpness of the kernel, sweeps of scaling.
_NEAREST, _SHARPNESS, _SWEEPS = 50, 500.0, 10


def sinkhorn_partners(first: Tensor, second: Tensor) -> Tensor:
    """(N,) row of (M, C) for each row of (N, C), one-to-one as far as masses allow."""
    kernel = sinkhorn_kernel(first, second)  # (N, M) sparse
    rows, columns = (np.ones(count) for count in kernel.shape)  # (N,), (M,)
    for _ in range(_SWEEPS):
        rows = 1.0 / np.maximum(kernel @ columns, 1e-300) / len(rows)
        columns = 1.0 / np.maximum(kernel.T @ rows, 1e-300) / len(columns)
    # Row factors do not change which entry of a row is largest.
    scaled = kernel.multiply(columns[None, :]).tocsr()
    return torch.from_numpy(np.asarray(scaled.argmax(axis=1)).reshape(-1).astype(np.int64))


def sinkhorn_kernel(first: Tensor, second: Tensor) -> csr_array:
    """(N, M) sparse: half of the nearest targets of each source, half of the sources of each."""
    there = euclidean_topk(first.double(), second.double(), min(_NEAREST, len(second)))  # (N, K)
    back = euclidean_topk(second.double(), first.double(), min(_NEAREST, len(first)))  # (M, K)
    forth = _half(there, len(second))  # (N, M)
    return forth + _half(back, len(first)).T.tocsr()


def _half(found: TopK, columns: int) -> csr_array:
    """(N, `columns`) sparse kernel of the (N, K) nearest rows, halved."""
    distances = (-found.scores).clamp_min(0).sqrt()  # (N, K)
    largest = distances.max().clamp_min(1e-300)
    entries = 0.5 * torch.exp(-_SHARPNESS * distances / largest)  # (N, K)
    rows = torch.arange(len(distances))[:, None].expand_as(found.indices)  # (N, K)
    places = rows.flatten().numpy(), found.indices.flatten().numpy()
    return csr_array((entries.flatten().numpy(), places), (len(distances), columns))


def zoomed_out(
    source: LaplacianBasis, target: LaplacianBasis, start: Tensor, sizes: Iterable[int]
) -> Tensor:
    """(N,) map after ZoomOut over `sizes`, read off by Sinkhorn filters at each.

    Parameters
    ----------
    source, target
        Bases with at least the largest of the sizes.
    start
        (N,) first map.
    """
    current = start
    for size in sizes:
        current = sinkhorn_partners(*aligned(source, target, current, size))  # (N,)
    return current
