"""Registration by nearest points: Chamfer matching and LM-ICP, from coarse to fine.

Both minimise the mean over points of a robust function of the squared distance d to the nearest
point of the other shape, in both directions:

- ``chamfer`` [Thayananthan et al. 2003]: ``min(d, t)``, and only points whose normals are within 45
  degrees may be nearest;
- ``huber``, LM-ICP [Fitzgibbon 2003]: ``d`` up to t, then ``2 sqrt(d t) - t``.

t falls from level to level. Fitzgibbon descends by Levenberg and Marquardt; here as for densities
L-BFGS does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.correspondence import Correspondence
from ltenet.evaluation.peers.deformations import DeformationKind, make_deformation
from ltenet.evaluation.peers.landing import in_one_scale, landed, thinned
from ltenet.evaluation.peers.registration import minimized
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.cloud_normals import cloud_normals
from ltenet.method.divergence import mean_spacing
from ltenet.shape import Shape

#: Neighbours among which one with a like normal is looked for, and the least cosine.
_CANDIDATES, _LIKE = 8, float(np.cos(np.radians(45.0)))

RobustKind = Literal["chamfer", "huber"]


class _Side:
    """Points to be nearest to, with their normals and the kernel's bound."""

    def __init__(self, points: FloatArray, normals: FloatArray | None) -> None:
        self.points, self.normals = points, normals  # (M, 3) each
        self.tree = KDTree(points)

    def nearest(self, queries: FloatArray, normals: FloatArray | None) -> IntArray:
        """(N,) nearest point of each query, -1 where no near one has a like normal."""
        if self.normals is None or normals is None:
            return np.asarray(self.tree.query(queries)[1])
        count = min(_CANDIDATES, len(self.points))
        near = self.tree.query(queries, k=np.arange(1, count + 1))[1]  # (N, K)
        # Up to sign: the side that a cloud's normals take is a guess, and may differ by shape.
        cosines = np.abs(np.einsum("nkd,nd->nk", self.normals[near], normals))  # (N, K)
        like = cosines >= _LIKE  # (N, K)
        first = near[np.arange(len(near)), like.argmax(axis=1)]  # (N,)
        return np.where(like.any(axis=1), first, -1)


def robust_mean(squares: Tensor, found: Tensor, bound: float, kind: RobustKind) -> Tensor:
    """Mean of the robust function over (N,) squared distances; not `found` ones cost the most."""
    if kind == "chamfer":
        return torch.where(found, squares.clamp_max(bound), bound).mean()
    far = squares > bound  # (N,)
    # The square root has no slope at 0, so it is kept away from there.
    root = torch.where(far, squares, bound).sqrt()  # (N,)
    return torch.where(far, 2 * root * bound**0.5 - bound, squares).mean()


@dataclass(frozen=True, kw_only=True)
class NearestRegistration:
    """Deform the source until nearest points of both shapes are close.

    Attributes
    ----------
    kernel
        "chamfer" or "huber" (LM-ICP).
    deformation
        "rigid", "affine" or "tps".
    coarse, fine
        First distance at which the kernel bends, of targets of unit radius, and the last, in units
        of the mean spacing of the target.
    levels
        Number of distances, evenly spaced in their logarithm.
    iterations
        Of L-BFGS, at most, at each level.
    stiffness
        Price of the bending energy at the first level; it falls with the squared distance.
    points
        Shapes with more points are thinned to this many; the deformation then moves all.
    """

    kernel: RobustKind = "chamfer"
    deformation: DeformationKind = "tps"
    coarse: float = 0.5
    fine: float = 2.0
    levels: int = 5
    iterations: int = 40
    stiffness: float = 0.01
    points: int = 512

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        centred, frame = in_one_scale(source, target)  # (N, 3), (M, 3)
        return landed(source, target, self.register(centred, frame), frame)

    def register(self, points: FloatArray, frame: FloatArray) -> FloatArray:
        """(N, 3) points, moved to (M, 3) points of a target of about unit radius."""
        deformation = make_deformation(self.deformation, points)
        start = np.ascontiguousarray(points[thinned(points, self.points)])  # (n, 3)
        goal = frame[thinned(frame, self.points)]  # (m, 3)
        looking = self.kernel == "chamfer"
        target = _Side(goal, cloud_normals(goal) if looking else None)
        finest = min(self.coarse, self.fine * float(mean_spacing(torch.from_numpy(goal)[None])[0]))
        parameters = np.zeros(deformation.size)  # (P,)
        moved = start
        for reach in np.geomspace(self.coarse, finest, self.levels).tolist():
            normals = cloud_normals(moved) if looking else None  # (n, 3)
            price = self.stiffness * (reach / self.coarse) ** 2

            def loss(
                values: Tensor,
                reach: float = reach,
                normals: FloatArray | None = normals,
                price: float = price,
            ) -> Tensor:
                now = deformation.moved(values, start)  # (n, 3)
                both = self._both_ways(now, normals, target, reach**2)
                return both + price * deformation.bending(values)

            parameters = minimized(loss, parameters, iterations=self.iterations)
            with torch.no_grad():
                moved = deformation.moved(torch.from_numpy(parameters), start).numpy()
        with torch.no_grad():
            final: FloatArray = deformation.moved(torch.from_numpy(parameters), points).numpy()
        return final

    def _both_ways(
        self, moved: Tensor, normals: FloatArray | None, target: _Side, bound: float
    ) -> Tensor:
        """Robust mean distance from (n, 3) moved points to the target, and back."""
        places = moved.detach().numpy()  # (n, 3)
        goal = torch.from_numpy(target.points)  # (m, 3)
        there = torch.from_numpy(target.nearest(places, normals))  # (n,)
        back = torch.from_numpy(_Side(places, normals).nearest(target.points, target.normals))
        forth = (moved - goal[there]).square().sum(dim=1)  # (n,)
        home = (goal - moved[back]).square().sum(dim=1)  # (m,)
        first = robust_mean(forth, there >= 0, bound, self.kernel)
        return first + robust_mean(home, back >= 0, bound, self.kernel)
