"""Functional maps with wave kernel signatures, by pyfmaps, refined by ZoomOut.

Two options: operators that prefer maps which keep the orientation of the surface [Ren et al. 2018],
for meshes; and Sinkhorn filters in place of nearest neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.sparse import diags_array

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.evaluation.optional import optional
from ltenet.evaluation.peers.descriptors import wave_kernel_signature
from ltenet.evaluation.peers.sinkhorn_filters import zoomed_out
from ltenet.evaluation.peers.spectrum import Spectrum, spectrum
from ltenet.method.laplacian import LaplacianBasis
from ltenet.shape import Shape


@dataclass(frozen=True, kw_only=True)
class FunctionalMaps:
    """Maps between the vibrations of two surfaces, turned into a map between their points.

    Attributes
    ----------
    first_modes
        Size of the map that the descriptors determine.
    last_modes
        Size up to which ZoomOut refines it.
    step
        By how much it grows each time.
    orientation
        Weight of the operators that prefer maps without reflection; needs faces. Without it, left
        and right are often exchanged.
    readoff
        How the map between functions becomes one between points: "nearest" rows, or "sinkhorn"
        filters.
    """

    first_modes: int = 30
    last_modes: int = 120
    step: int = 5
    orientation: float = 0.0
    readoff: Literal["nearest", "sinkhorn"] = "nearest"

    def __post_init__(self) -> None:
        for module in ("pyFM.functional", "pyFM.mesh"):
            optional(module)  # shows at once if it is missing

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        if self.orientation > 0:
            for shape in (source, target):
                if shape.faces is None:
                    raise InputError(
                        f"{shape.name}: got a cloud, expected a mesh, as orientation needs faces; "
                        "try the method fmaps"
                    )
        # pyfmaps names its map the other way round: functions go from the target to the source.
        modes = [spectrum(shape, self.last_modes) for shape in (target, source)]
        meshes = [_mesh(shape, own) for shape, own in zip((target, source), modes, strict=True)]
        size = min(len(own.values) for own in modes)
        first = min(self.first_modes, size)
        mapping = optional("pyFM.functional").FunctionalMapping(*meshes)
        mapping.add_descriptors(*(wave_kernel_signature(own)[:, ::2] for own in modes))
        mapping.fit(K=(first, first), w_orient=self.orientation)
        if self.readoff == "sinkhorn":
            start = torch.from_numpy(np.asarray(mapping.get_p2p(), dtype=np.int64))  # (N,)
            theirs, ours = (LaplacianBasis(*map(torch.from_numpy, own)) for own in modes)
            steps = range(first, size + 1, self.step)
            indices = zoomed_out(ours, theirs, start, steps).numpy()  # (N,)
        else:
            rounds = max(0, (size - first) // self.step)
            refined = mapping.zoomout_refine(nit=rounds, step=self.step)
            indices = np.asarray(mapping.get_p2p(refined))  # (N,)
        return Correspondence(
            indices=indices,
            target_size=len(target),
            source=source,
            target=target,
        )


def _mesh(shape: Shape, modes: Spectrum) -> Any:
    """Return pyfmaps' mesh with our spectrum, which is the same each time and holds for clouds."""
    points = shape.normalized(radius=1.0).points
    faces = None if shape.faces is None else np.array(shape.faces)
    mesh = optional("pyFM.mesh").TriMesh(np.array(points), faces)
    mesh.A = diags_array(modes.masses, format="csc")
    mesh.eigenvalues, mesh.eigenvectors = modes.values, modes.functions
    return mesh
