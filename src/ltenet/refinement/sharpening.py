"""Sharpen a coherent map between meshes with the eigenfunctions of their Laplacians.

Bending is smooth, and its places are as good as the features that guide it. Eigenfunctions (see
`laplacian`) know nothing of features: they tell points apart by where they lie on the surface, the
better the more isometric the shapes are. As in ZoomOut [Melzi et al. 2019], a map gives a
functional map C, which gives a better map, with more and more functions. But each point chooses
among the targets near its coherent place alone, by

    cost_ij = WEIGHT |phi_i C - psi_j|^2 / r + |x_i - y_j|^2 / s_i^2,

where phi and psi are the eigenfunctions of source and target, x_i is the coherent place and y_j a
target point. Both terms are in units of their own uncertainty: s_i is how far the deformations that
the coherent map is made of disagree, and r is the typical distance that remains between matched
eigenfunctions, which is large for shapes that are not isometric. So neither term needs to be
trusted in advance.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from ltenet.errors import LTENetError
from ltenet.method.laplacian import LaplacianBasis, laplacian_basis
from ltenet.refinement.pair import Pair
from ltenet.refinement.threads import by_blocks, side_by_side, single_blas_thread

#: Numbers of eigenfunctions, points of a shape for each function at least, and points at most.
STEPS, _POINTS_PER_FUNCTION, _MOST_POINTS = (20, 45, 90, 150), 8, 12000
#: Targets among which a point chooses.
_SHORTLIST = 96
#: Weight of the eigenfunctions, and least uncertainty of a place in spacings of the target; chosen
#: on generated meshes, see `docs/refinement.md`.
WEIGHT, LEAST_SPACING = 3.0, 0.5
#: Neighbours over which the uncertainty of places is averaged.
_AVERAGED = 13
#: Points whose distances are computed at a time: they stay in cache.
_BLOCK = 256

log = logging.getLogger(__name__)


@torch.no_grad()
def sharpen(pair: Pair, places: Tensor, spread: Tensor) -> Tensor | None:
    """Move (N, 3) places of the source to where the eigenfunctions agree too; None if they cannot.

    Parameters
    ----------
    pair
        Both shapes; clouds, very small and very large meshes are left as they are.
    places
        (N, 3) where the source points belong on the target.
    spread
        (N,) how far the deformations disagree about each of them.
    """
    source, target = pair.source, pair.target
    sizes = len(source), len(target)
    if source.faces is None or target.faces is None:
        return None
    if min(sizes) < _POINTS_PER_FUNCTION * STEPS[-1] or max(sizes) > _MOST_POINTS:
        return None
    try:
        with single_blas_thread():
            ours, theirs = side_by_side(
                lambda: laplacian_basis(source.points, STEPS[-1], faces=source.faces),
                lambda: laplacian_basis(target.points, STEPS[-1], faces=target.faces),
            )
    except LTENetError as error:
        log.info("the map is not sharpened: %s", error)
        return None
    near = target.nearest(places, _SHORTLIST)  # (N, k)
    local = spread.square()[source.neighbors(_AVERAGED)].mean(dim=1)  # (N,)
    uncertainty = local + (LEAST_SPACING * target.spacing).square()  # (N,)
    misfit = near.squares / uncertainty[:, None]  # (N, k)
    chosen, cost = near.indices[:, 0], misfit
    for step in STEPS:
        apart = spectral_distances(ours, theirs, chosen, near.indices, step).to(misfit)  # (N, k)
        typical = apart.amin(dim=1).median().clamp_min(torch.finfo(apart.dtype).tiny)  # ()
        cost = WEIGHT * apart / typical + misfit  # (N, k)
        chosen = near.indices.gather(1, cost.argmin(dim=1, keepdim=True))[:, 0]  # (N,)
    weights = torch.softmax(-0.5 * cost, dim=1)  # (N, k)
    return torch.einsum("nk,nkd->nd", weights, target.points[near.indices])


def spectral_distances(
    source: LaplacianBasis, target: LaplacianBasis, indices: Tensor, listed: Tensor, k: int
) -> Tensor:
    """(N, K) squared distances to the `listed` (N, K) target points in the first k eigenfunctions.

    The functional map that aligns the two bases follows from a point map `indices` (N,), and is
    made orthogonal, as it is for maps that preserve area.
    """
    ours, theirs = source.functions[:, :k], target.functions[:, :k]  # (N, k), (M, k)
    matrix = ours.T @ (source.masses[:, None] * theirs[indices])  # (k, k): C
    left, _, right = torch.linalg.svd(matrix)
    mapped, theirs = (ours @ (left @ right)).float(), theirs.float()  # (N, k), (M, k)
    distances = torch.empty(listed.shape, device=mapped.device)  # (N, K)

    def fill(block: slice) -> None:
        apart = mapped[block][:, None] - theirs[listed[block]]  # (b, K, k)
        torch.sum(apart.square_(), dim=2, out=distances[block])

    by_blocks(fill, len(mapped), _BLOCK)
    return distances
