"""Pieces of generated bodies as shapes of their own: a hand, a head with its shoulders, a leg.

A piece is the surface of one region of a template, closed where it was cut off: each rim gets a lid
of triangles around its middle. Every body of the template yields the piece in the same numbering.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csgraph

from ltenet.bodies.generated import Template
from ltenet.geometry.surface_graph import mesh_graph


@dataclass(frozen=True)
class Piece:
    """One region of a body.

    Attributes
    ----------
    template
        Of the piece; its last vertices are the middles of the rims.
    rows
        (v,) vertices of the body that belong to it.
    rims
        For each rim, the vertices of the piece along it.
    """

    template: Template
    rows: NDArray[np.int64]
    rims: tuple[NDArray[np.int64], ...]

    def of(self, vertices: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cut the piece out of a body with (V, 3) vertices: (v + rims, 3)."""
        return _with_middles(vertices[self.rows], self.rims)


def cut_piece(template: Template, name: str, region: NDArray[np.bool_]) -> Piece:
    """Cut the largest connected part of a region, a (V,) mask, out of a template."""
    faces = template.faces[region[template.faces].all(axis=1)]  # (f, 3)
    graph = mesh_graph(faces.astype(np.int64), len(region))
    labels = csgraph.connected_components(graph, directed=False)[1]  # (V,)
    largest = np.bincount(labels[faces[:, 0]]).argmax()
    faces = faces[labels[faces[:, 0]] == largest]
    rows = np.unique(faces).astype(np.int64)  # (v,)
    place = np.full(len(region), -1)  # (V,)
    place[rows] = np.arange(len(rows))
    faces = place[faces]
    rims, lids = _lids(faces, len(rows))
    partners = place[template.mirror[rows]]  # (v,)
    symmetric = bool((partners >= 0).all())
    own = np.arange(len(rows) + len(rims))  # (v + rims,)
    mirror, opposite = own.copy(), own.copy()
    if symmetric:
        mirror[: len(rows)] = partners
        for number, rim in enumerate(rims):
            other = next(k for k, one in enumerate(rims) if partners[rim[0]] in one)
            mirror[len(rows) + number] = len(rows) + other
    across = place[template.opposite[rows]]  # (v,)
    opposite[: len(rows)] = np.where(across >= 0, across, own[: len(rows)])

    def kept(values: NDArray[np.int8]) -> NDArray[np.int8]:
        return np.concatenate([values[rows], np.zeros(len(rims), np.int8)])

    size, rest = template.size, template.rest
    made = Template(
        name,
        np.concatenate([faces, lids]).astype(np.int32),
        mirror.astype(np.int32),
        kept(template.side) if symmetric else np.zeros(len(own), np.int8),
        kept(template.front),
        opposite.astype(np.int32),
        None if size is None else _with_middles(size[rows, None], rims)[:, 0],
        None if rest is None else _with_middles(rest[rows], rims),
    )
    return Piece(made, rows, rims)


def _with_middles(
    values: NDArray[np.float32], rims: tuple[NDArray[np.int64], ...]
) -> NDArray[np.float32]:
    """Append the mean over each rim to (v, D) values."""
    return np.concatenate([values, *(values[rim].mean(axis=0, keepdims=True) for rim in rims)])


def _lids(
    faces: NDArray[np.integer], count: int
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """Vertices of each rim of (f, 3) faces on `count` vertices, and the faces (g, 3) that close."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])  # (3 f, 2)
    known = set(map(tuple, edges.tolist()))
    rim_edges = np.array([(a, b) for a, b in edges.tolist() if (b, a) not in known], np.int64)
    if not len(rim_edges):
        return (), np.empty((0, 3), np.int64)
    graph = coo_array((np.ones(len(rim_edges)), rim_edges.T), shape=(count, count))
    labels = csgraph.connected_components(graph, directed=False)[1]  # (v,)
    numbers, owners = np.unique(labels[rim_edges[:, 0]], return_inverse=True)  # (r,), (E,)
    rims = tuple(np.unique(rim_edges[owners == k]) for k in range(len(numbers)))
    # Against the direction of the faces beside them, so that lids look outwards too.
    lids = np.column_stack([rim_edges[:, 1], rim_edges[:, 0], count + owners])  # (g, 3)
    return rims, lids
