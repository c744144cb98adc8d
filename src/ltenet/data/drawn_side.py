"""One shape of a training pair: which part of it is left, how dense it is, points drawn on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltenet.bodies.generated import Template
from ltenet.data.augmentation import Augmentation, cut_region, draw_crop, draw_uneven
from ltenet.data.parts import hole_mask, view_direction
from ltenet.data.sampling import (
    Anchors,
    face_masses,
    faces_inside,
    positions_of,
    sample_faces,
    sample_vertices,
)
from ltenet.data.scans import curvatures, visible_vertices
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.geometry.normals import face_areas
from ltenet.geometry.surface_graph import mesh_graph

BoolArray = NDArray[np.bool_]

_CUT_SAMPLES = 256  # points that stand for the surface when a share of it is cut off
_EVEN_CANDIDATES = 3  # random points for each one that farthest-point sampling keeps
_LEAST_LEFT = 0.02  # share of the surface below which a change is not made
_LEAST_COMMON = 0.15  # share of the smaller part that both shapes must have in common
_WHOLE_SAMPLES = 512  # points that tell where a whole body lies, and how large it is


class Side(NamedTuple):
    """Where points may be drawn on one body of a pair: on its faces or at its vertices."""

    vertices: NDArray[np.float32]  # (V, 3)
    faces: NDArray[np.int32]  # (F, 3)
    masses: NDArray[np.floating] | None  # (F,) chances of the faces; None if not known yet
    by_area: bool
    even: bool  # whether points are evenly spaced
    density: FloatArray | None  # (V,) chances of the vertices; None if all are alike
    kept: BoolArray  # (V,)

    @property
    def share(self) -> float:
        """Share of the surface that is left, as its points are drawn."""
        if self.masses is None or self.kept.all():
            return 1.0
        left = self.masses[faces_inside(self.faces, self.kept)].sum()
        return float(left / self.masses.sum())

    def whole(self, rng: np.random.Generator) -> FloatArray:
        """(S, 3) points of the body as if nothing of it were missing."""
        masses = self.masses
        if masses is None:
            masses = face_masses(self.vertices, self.faces, density=self.density)  # (F,)
        return positions_of(sample_faces(masses, _WHOLE_SAMPLES, rng), self.vertices, self.faces)

    def draw(self, count: int, rng: np.random.Generator, *, taken: BoolArray) -> Anchors:
        """Draw points on the kept part; none at the (V,) vertices that are taken."""
        available = np.flatnonzero(self.kept & ~taken)  # (A,)
        # A coarse mesh, or what a crop leaves of it, may have fewer vertices than are asked for.
        if self.by_area or self.even or len(available) < count:
            return self._draw_on_faces(count, rng)
        weights = None if self.density is None else self.density[available]  # (A,)
        return Anchors.at_vertices(sample_vertices(count, available, rng, weights=weights))

    def _draw_on_faces(self, count: int, rng: np.random.Generator) -> Anchors:
        masses = self.masses
        if masses is None:
            masses = face_masses(self.vertices, self.faces, density=self.density)  # (F,)
        masses = masses * faces_inside(self.faces, self.kept)  # (F,)
        sample = sample_faces(masses, (_EVEN_CANDIDATES if self.even else 1) * count, rng)
        anchors = Anchors(self.faces[sample.faces], sample.barycentric)
        if not self.even:
            return anchors
        return anchors.take(farthest_point_sample(anchors.on(self.vertices), count))


class SideDrawer:
    """Draws the sides of pairs under one augmentation; keeps the edge graphs of templates."""

    def __init__(self, augmentation: Augmentation) -> None:
        self._augmentation = augmentation
        self._graphs: dict[str, csr_array] = {}

    def draw(
        self,
        vertices: NDArray[np.float32],
        template: Template,
        by_area: bool,
        rng: np.random.Generator,
    ) -> Side:
        """Draw density and missing parts of a body with (V, 3) vertices."""
        change, faces = self._augmentation, template.faces
        density = draw_uneven(change, vertices, rng, size=template.size)  # (V,)
        if change.curvature > 0.0:
            bent = curvatures(vertices, faces) ** (change.curvature * rng.random())  # (V,)
            density = bent if density is None else density * bent
        even = change.even_chance > 0.0 and bool(rng.random() < change.even_chance)
        kept = np.ones(len(vertices), dtype=bool)  # (V,)
        if not (by_area or even or change.removes):
            return Side(vertices, faces, None, by_area, even, density, kept)
        masses = face_masses(vertices, faces, density=None if even else density)  # (F,)
        if change.removes:
            kept = self._draw_kept(vertices, template, masses, rng)
        return Side(vertices, faces, masses, by_area, even, density, kept)

    def _draw_kept(
        self,
        vertices: NDArray[np.float32],
        template: Template,
        masses: NDArray[np.floating],
        rng: np.random.Generator,
    ) -> BoolArray:
        """(V,) what is left after crop, then one of cut, view and limb, then holes."""
        change, faces = self._augmentation, template.faces
        # A share of the surface, not of the vertices: they crowd in hands and faces.
        sample = sample_faces(masses, _CUT_SAMPLES, rng)
        spread = positions_of(sample, vertices, faces)  # (S, 3)
        masks = []
        if change.crop > 0.0:
            region = draw_crop(change, spread, rng)
            if region is not None:
                masks.append(region.keeps(vertices))
        part, share = rng.random(2)
        direction = rng.standard_normal(3)  # (3,)
        if part < change.cut_chance:
            low, high = change.cut
            region = cut_region(direction, spread, low + (high - low) * share)
            masks.append(region.keeps(vertices))
        elif part < change.cut_chance + change.view_chance:
            masks.append(visible_vertices(vertices, faces, view_direction(direction)))
        elif part < change.cut_chance + change.view_chance + change.limb_chance:
            regions = list(template.regions.values())
            if regions:
                masks.append(regions[int(share * len(regions))])
        if change.holes_chance > 0.0 and rng.random() < change.holes_chance:
            masks.append(~self._draw_holes(vertices, template, rng))
        kept = np.ones(len(vertices), dtype=bool)  # (V,)
        whole = float(masses.sum())
        for mask in masks:
            left = kept & mask  # (V,)
            if float(masses[faces_inside(faces, left)].sum()) > _LEAST_LEFT * whole:
                kept = left
        return kept

    def _draw_holes(
        self, vertices: NDArray[np.float32], template: Template, rng: np.random.Generator
    ) -> BoolArray:
        """(V,) True where there is a hole."""
        faces = template.faces
        if template.name not in self._graphs:
            self._graphs[template.name] = mesh_graph(faces.astype(np.int64), len(vertices))
        count = int(rng.integers(1, self._augmentation.holes, endpoint=True))
        low, high = self._augmentation.hole_area
        shares = low * (high / low) ** rng.random(count)  # (H,)
        area = float(face_areas(vertices, faces).sum())
        return hole_mask(self._graphs[template.name], vertices, area, shares, rng)


def shared_anchors(anchors: Anchors, side: Side, count: int, rng: np.random.Generator) -> Anchors:
    """Anchors that a side still has, shuffled, and filled up where too few of them are left."""
    partners = anchors.take(np.flatnonzero(anchors.inside(side.kept))[:count])
    missing = count - len(partners.corners)
    if missing > 0:
        taken = np.zeros(len(side.kept), dtype=bool)  # (V,)
        taken[partners.corners] = True
        extra = side.draw(missing, rng, taken=taken)
        partners = Anchors(
            np.concatenate([partners.corners, extra.corners]),
            np.concatenate([partners.weights, extra.weights]),
        )
    return partners.take(rng.permutation(count))


def with_common_part(source: Side, target: Side) -> Side:
    """Return the target, whole if the two kept parts have next to nothing in common."""
    common = int((source.kept & target.kept).sum())
    smaller = min(int(source.kept.sum()), int(target.kept.sum()))
    if common >= _LEAST_COMMON * smaller:
        return target
    return target._replace(kept=np.ones_like(target.kept))
