"""Coordinates along the surfaces of generated bodies, computed once for each template."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.generated import GeneratedBody, Template
from ltenet.data.sampling import Anchors
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.normals import face_areas
from ltenet.geometry.surface_graph import mesh_graph, surface_coordinates


class TemplateSurfaces:
    """Knows the coordinates of templates at rest, see `surface_coordinates`.

    Bending hardly changes them, so those of a template serve all its bodies, at their size.
    """

    def __init__(self) -> None:
        self._known: dict[str, FloatArray] = {}

    def along(
        self, anchors: Anchors, body: GeneratedBody, template: Template, matrix: FloatArray
    ) -> NDArray[np.float32] | None:
        """(N, L) coordinates of points of a body that is moved by a (4, 4) matrix.

        None if the template has no rest pose.
        """
        if template.rest is None:
            return None
        faces, rest = template.faces.astype(np.int64), template.rest.astype(np.float64)
        if template.name not in self._known:
            graph = mesh_graph(faces, len(rest))
            self._known[template.name] = surface_coordinates(graph, rest)  # (V, L)
        areas = face_areas(body.vertices, faces).sum() / face_areas(rest, faces).sum()
        size = float(np.sqrt(areas) * np.linalg.norm(matrix[:3, 0]))
        scaled: NDArray[np.float32] = (size * anchors.on(self._known[template.name])).astype(
            np.float32
        )
        return scaled
