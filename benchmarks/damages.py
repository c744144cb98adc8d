"""What may be wrong with a shape, done to generated bodies whose true correspondence is known.

`DAMAGES` lists the damages by name. Each point of a damaged shape remembers the vertex of the body
that it comes from, -1 for what was added, and each damaged target the map that moved it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import vertex_normals

Generator = np.random.Generator

#: Points of a cloud.
POINTS = 1024


class Body(NamedTuple):
    """A shape and where it comes from.

    Attributes
    ----------
    points
        (N, 3)
    faces
        (F, 3), or None for a cloud.
    origin
        (N,) vertices of the generated body, -1 for points that were added.
    factors
        (3,) by which the coordinates were multiplied.
    """

    points: FloatArray
    faces: IntArray | None
    origin: IntArray
    factors: FloatArray = np.ones(3)


class Damage(NamedTuple):
    """One kind of damage.

    Attributes
    ----------
    hurt
        Does it.
    meshes
        Whether to meshes; else to clouds.
    both
        Whether to both shapes; else to the source alone.
    mirror
        Whether the pair is matched through the mirror.
    """

    hurt: Callable[[Body, Generator], Body]
    meshes: bool = False
    both: bool = True
    mirror: bool = False


def cloud(body: Body, rng: Generator, *, uneven: float = 0.0) -> Body:
    """Draw some vertices; `uneven` is how fast their density grows with height."""
    heights = body.points[:, 1]
    density = np.exp(uneven * (heights - heights.mean()) / heights.std())  # (V,)
    rows = rng.choice(len(heights), POINTS, replace=False, p=density / density.sum())
    return Body(body.points[rows], None, body.origin[rows], body.factors)


def _added(body: Body, more: FloatArray) -> Body:
    points = np.concatenate([body.points, more])
    return body._replace(points=points, origin=np.r_[body.origin, np.full(len(more), -1)])


def _noise(body: Body, rng: Generator, *, share: float) -> Body:
    width = share * np.linalg.norm(np.ptp(body.points, axis=0))
    return body._replace(points=body.points + width * rng.normal(size=body.points.shape))


def _outliers(body: Body, rng: Generator, *, share: float) -> Body:
    low, high = body.points.min(axis=0), body.points.max(axis=0)
    return _added(body, rng.uniform(low, high, (round(share * len(body.points)), 3)))


def _strays(body: Body, rng: Generator) -> Body:
    return _added(body, 1000 * rng.normal(size=(10, 3)))


def _without(body: Body, lost: IntArray) -> Body:
    """Leave out points, and the faces at them."""
    kept = np.setdiff1d(np.arange(len(body.points)), lost)
    new = np.full(len(body.points), -1)
    new[kept] = np.arange(len(kept))
    faces = None if body.faces is None else new[body.faces]
    if faces is not None:
        faces = faces[(faces >= 0).all(axis=1)]
    return body._replace(points=body.points[kept], faces=faces, origin=body.origin[kept])


def _cropped(body: Body, rng: Generator) -> Body:
    """Cut off a quarter with a plane."""
    along = body.points @ rng.normal(size=3)
    return _without(body, np.flatnonzero(along > np.quantile(along, 0.75)))


def _pieces(body: Body, rng: Generator) -> Body:
    """Cut the shape apart at three heights."""
    heights = body.points[:, 1]
    cuts = np.quantile(heights, [0.3, 0.55, 0.8])  # (3,)
    gap = 0.015 * np.ptp(heights)
    return _without(body, np.flatnonzero(np.abs(heights[:, None] - cuts).min(axis=1) < gap))


def _holes(body: Body, rng: Generator) -> Body:
    """Take out twenty balls."""
    centres = body.points[rng.choice(len(body.points), 20, replace=False)]
    distances = np.linalg.norm(body.points[:, None] - centres, axis=2).min(axis=1)  # (N,)
    radius = 0.03 * np.linalg.norm(np.ptp(body.points, axis=0))
    return _without(body, np.flatnonzero(distances < radius))


def _double_walls(body: Body, rng: Generator) -> Body:
    """Add an inner wall, 1 % of the size below the surface, with faces that look inwards."""
    assert body.faces is not None
    depth = 0.01 * np.linalg.norm(np.ptp(body.points, axis=0))
    inner = body.points - depth * vertex_normals(body.points, body.faces)
    faces = np.concatenate([body.faces, len(body.points) + body.faces[:, ::-1]])
    return _added(body, inner)._replace(faces=faces)


def _non_manifold(body: Body, rng: Generator) -> Body:
    """Hang a fin on an edge of every twentieth face: three faces then share it."""
    assert body.faces is not None
    some = body.faces[rng.choice(len(body.faces), len(body.faces) // 20, replace=False)]
    third = rng.integers(len(body.points), size=len(some))
    near = body.points[some[:, 0]] + 0.02 * rng.normal(size=(len(some), 3)) * np.ptp(body.points)
    numbers = np.arange(len(body.points), len(body.points) + len(some))
    fins = np.c_[some[:, :2], numbers]
    bridges = np.c_[some[:20, :2], third[:20]]  # and some faces across the body
    return _added(body, near)._replace(faces=np.concatenate([body.faces, fins, bridges]))


def _flipped(body: Body, rng: Generator) -> Body:
    """Turn every second face round."""
    assert body.faces is not None
    chosen = rng.random(len(body.faces)) < 0.5
    faces = np.where(chosen[:, None], body.faces[:, ::-1], body.faces)
    return body._replace(faces=faces)


def _duplicates(body: Body, rng: Generator) -> Body:
    """Give each face its own corners, as STL files do."""
    assert body.faces is not None
    corners = body.faces.reshape(-1)
    faces = np.arange(len(corners)).reshape(-1, 3)
    return body._replace(points=body.points[corners], faces=faces, origin=body.origin[corners])


def _scaled(body: Body, rng: Generator, *, factors: tuple[float, float, float]) -> Body:
    return body._replace(points=body.points * factors, factors=body.factors * factors)


def _as_it_is(body: Body, rng: Generator) -> Body:
    return body


#: Damages by name, clouds first.
DAMAGES: dict[str, Damage] = {
    "clean cloud": Damage(cloud),
    **{
        f"noise {100 * share:g} %": Damage(
            lambda body, rng, share=share: _noise(cloud(body, rng), rng, share=share)  # type: ignore[misc]
        )
        for share in (0.005, 0.01, 0.02)
    },
    **{
        f"outliers {100 * share:g} %": Damage(
            lambda body, rng, share=share: _outliers(cloud(body, rng), rng, share=share)  # type: ignore[misc]
        )
        for share in (0.05, 0.1, 0.2)
    },
    "ten far strays": Damage(lambda body, rng: _strays(cloud(body, rng), rng)),
    "uneven density": Damage(partial(cloud, uneven=1.0)),
    "a quarter cut off": Damage(lambda body, rng: _cropped(cloud(body, rng), rng), both=False),
    "unit 1e-6": Damage(lambda body, rng: _scaled(cloud(body, rng), rng, factors=(1e-6,) * 3)),
    "unit 1e+6": Damage(lambda body, rng: _scaled(cloud(body, rng), rng, factors=(1e6,) * 3)),
    "mirrored source": Damage(
        lambda body, rng: _scaled(cloud(body, rng), rng, factors=(-1, 1, 1)), both=False
    ),
    "mirrored source, --mirror": Damage(
        lambda body, rng: _scaled(cloud(body, rng), rng, factors=(-1, 1, 1)),
        both=False,
        mirror=True,
    ),
    "clean mesh": Damage(_as_it_is, meshes=True),
    "disconnected pieces": Damage(_pieces, meshes=True, both=False),
    "twenty holes": Damage(_holes, meshes=True, both=False),
    "double walls": Damage(_double_walls, meshes=True),
    "non-manifold edges": Damage(_non_manifold, meshes=True),
    "half of the faces flipped": Damage(_flipped, meshes=True),
    "duplicated vertices": Damage(_duplicates, meshes=True),
}
