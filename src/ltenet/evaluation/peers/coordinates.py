"""Peers that look at coordinates alone: nearest point, ICP, CPD, optimal transport.

All of them centre both shapes first and know nothing else about how they stand. CPD and transport
compare all points with all; on larger shapes they work on evenly spread points, and the others
follow their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.evaluation.optional import optional
from ltenet.evaluation.peers.landing import carried, landed, thinned
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import kabsch
from ltenet.shape import Shape


@dataclass(frozen=True, kw_only=True)
class NearestPoint:
    """The nearest target point after centring."""

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return landed(source, target, _centred(source), _centred(target))


@dataclass(frozen=True, kw_only=True)
class ICP:
    """Iterated closest points: the rigid motion that suits the nearest points, again and again.

    Attributes
    ----------
    iterations
        At most this many; it ends when no partner changes.
    """

    iterations: int = 100

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        points, frame = _centred(source), _centred(target)  # (N, 3), (M, 3)
        tree = KDTree(frame)
        moved, partners = points, None
        for _ in range(self.iterations):
            nearest = tree.query(moved)[1]  # (N,)
            if partners is not None and np.array_equal(nearest, partners):
                break
            partners = nearest
            moved = kabsch(points, frame[partners])(points)  # (N, 3)
        return landed(source, target, moved, frame)


@dataclass(frozen=True, kw_only=True)
class CPD:
    """Coherent point drift with a smooth deformation, as pycpd has it.

    Both shapes are scaled to unit radius, as the method's own paper does; stiffness and width are
    pycpd's.

    Attributes
    ----------
    iterations
        At most this many.
    stiffness, width
        Weight and kernel width of the smoothness (`alpha` and `beta`).
    points
        Shapes with more points are thinned to this many.
    """

    iterations: int = 100
    stiffness: float = 2.0
    width: float = 2.0
    points: int = 2048

    def __post_init__(self) -> None:
        optional("pycpd")  # a missing package shows at once, and loading costs no pair its time

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        points, frame = _unit(source), _unit(target)  # (N, 3), (M, 3)
        chosen, among = thinned(points, self.points), thinned(frame, self.points)
        registration = optional("pycpd").DeformableRegistration(
            X=frame[among],
            Y=points[chosen],
            alpha=self.stiffness,
            beta=self.width,
            max_iterations=self.iterations,
            tolerance=1e-6,  # of the variance; pycpd's 1e-3 ends while the shapes are apart
        )
        registration.register(callback=None)
        moved = carried(points, points[chosen], registration.TY - points[chosen])  # (N, 3)
        return landed(source, target, moved, frame)


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Exact optimal transport of the points at squared distances, by POT.

    Attributes
    ----------
    points
        Shapes with more points are thinned to this many.
    """

    points: int = 2048

    def __post_init__(self) -> None:
        optional("ot")

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        ot = optional("ot")
        points, frame = _centred(source), _centred(target)  # (N, 3), (M, 3)
        chosen, among = thinned(points, self.points), thinned(frame, self.points)
        start, goal = points[chosen], frame[among]  # (n, 3), (m, 3)
        plan: FloatArray = ot.emd(
            np.full(len(start), 1 / len(start)),
            np.full(len(goal), 1 / len(goal)),
            ot.dist(start, goal),
            numItermax=10_000_000,
        )  # (n, m)
        places = plan @ goal / plan.sum(axis=1, keepdims=True)  # (n, 3)
        return landed(source, target, carried(points, start, places - start), frame)


def _centred(shape: Shape) -> FloatArray:
    return shape.normalized(radius=None).points  # (N, 3)


def _unit(shape: Shape) -> FloatArray:
    return shape.normalized(radius=1.0).points  # (N, 3)
