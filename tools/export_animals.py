"""Write the animal templates that the package ships: dog, capsule, gorilla and centaur.

A one-off for developers; the package itself needs numpy alone.

    pip install numpy scipy scikit-image fast-simplification
    pip download --no-deps dm-control
    unzip dm_control-*.whl dm_control/suite/dog_assets/dog_skin.skn
    PYTHONPATH=src python tools/export_animals.py dm_control/suite/dog_assets/dog_skin.skn

Every template is meshed on the left half alone and mirrored, so its numbering is exactly symmetric.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import animal_skeletons as skeletons
import fast_simplification
import numpy as np
from animal_shaping import Species, level, scale_skeleton
from animal_skeletons import Floats, Skeleton, base_name, mirrored_bones
from animal_species import CAPSULE, CENTAUR, DOG, GORILLA, STANCE
from dog_skin import dog_skeleton
from numpy.typing import NDArray
from scipy import ndimage
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.spatial import cKDTree
from skimage.measure import marching_cubes

ASSETS = Path(__file__).resolve().parents[1] / "src" / "ltenet" / "bodies" / "assets"


class Mesh(NamedTuple):
    """A mesh with its left/right partners: vertices (V, 3), faces (F, 3), mirror (V,)."""

    vertices: Floats
    faces: NDArray[np.int32]
    mirror: NDArray[np.int32]


def adjacency(faces: NDArray[np.int32], count: int) -> csr_matrix:
    """Row-normalised vertex adjacency (V, V)."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    rows, columns = np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]]
    matrix = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(count, count)).tocsr()
    matrix.data[:] = 1.0
    return diags(1.0 / np.asarray(matrix.sum(1)).ravel()) @ matrix


def mirror_half(vertices: Floats, faces: NDArray[np.int32]) -> Mesh:
    """Close a half mesh (x >= 0, open at the plane x = 0) with its mirror image."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    unique, count = np.unique(edges, axis=0, return_counts=True)
    border = np.unique(unique[count == 1])
    middle = np.zeros(len(vertices), dtype=bool)
    middle[border] = True
    vertices = vertices.copy()
    vertices[middle, 0] = 0.0
    outside = np.flatnonzero(~middle)
    partner = np.arange(len(vertices))
    partner[outside] = len(vertices) + np.arange(len(outside))
    mirror = np.r_[partner, outside].astype(np.int32)
    both = np.concatenate([vertices, vertices[outside] * (-1, 1, 1)])
    return Mesh(both, np.concatenate([faces, partner[faces][:, ::-1]]).astype(np.int32), mirror)


def mesh_half_field(field: NDArray[np.float32], origin: Floats, step: float, count: int) -> Mesh:
    """Symmetric mesh of about ``count`` vertices of the zero level of a field given for x >= 0."""
    vertices, faces, _, _ = marching_cubes(field, 0.0)
    mesh = mirror_half(vertices * step + origin, faces[:, ::-1].astype(np.int32))
    smooth, average = mesh.vertices, adjacency(mesh.faces, len(mesh.vertices))
    for turn in range(20):  # Taubin: takes the terraces of the grid away without shrinking
        smooth = smooth + (0.5, -0.53)[turn % 2] * (average @ smooth - smooth)
    smooth = smooth[: len(vertices)]
    smooth[mesh.mirror[: len(vertices)] == np.arange(len(vertices)), 0] = 0.0
    half, half_faces = fast_simplification.simplify(
        smooth.astype(np.float32), faces[:, ::-1].astype(np.int32), target_count=count, agg=3
    )
    mesh = mirror_half(half.astype(np.float64), half_faces.astype(np.int32))
    corners = mesh.vertices[mesh.faces]
    volume = np.einsum("fa,fa->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return mesh if volume > 0 else mesh._replace(faces=mesh.faces[:, ::-1])


def capsule_distance(points: Floats, skeleton: Skeleton, bone: int) -> Floats:
    """Signed distance (...) of points (..., 3) to a tapered capsule, flattened sideways."""
    head, axis = skeleton.heads[bone], skeleton.tails[bone] - skeleton.heads[bone]
    along = np.clip((points - head) @ axis / (axis @ axis), 0.0, 1.0)
    offset = points - head - along[..., None] * axis
    offset[..., 0] /= skeleton.flat[bone]
    radius = skeleton.radii[bone] @ np.stack([1.0 - along, along]).reshape(2, -1)
    return np.linalg.norm(offset, axis=-1) - radius.reshape(along.shape)


def chain_of(name: str) -> str:
    """Limb of a bone: bones of one limb are joined by a plain union, or their joints swell."""
    base = base_name(name)
    side = name[len(base) :]
    if base in ("thigh", "shank", "hock", "hpaw", "foot", "toes"):
        return "hind" + side
    if base in ("scapula", "upperarm", "forearm", "cannon", "fpaw"):
        return "fore" + side
    if base in ("clavicle", "humerus", "ulna", "hand", "fingers"):
        return "arm" + side
    if base in ("pelvis", "spine0", "spine1", "chest"):
        return "trunk"
    if base in ("muzzle", "nose"):
        return "face"
    return base.rstrip("0123456789") + side


def capsule_mesh(skeleton: Skeleton, count: int, softness: float, step: float = 0.009) -> Mesh:
    """Smooth union of all limbs, meshed."""
    reach = np.concatenate([skeleton.heads, skeleton.tails])
    low, high = reach.min(0) - 0.25, reach.max(0) + 0.25
    low[0] = 0.0
    axes = [np.arange(a, b, step) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    total = np.zeros(grid.shape[:3])
    limbs: dict[str, list[int]] = {}
    for bone, name in enumerate(skeleton.names):
        limbs.setdefault(chain_of(name), []).append(bone)
    for limb, bones in limbs.items():
        soft = softness * (0.55 if limb.startswith(("ear", "tail", "head", "arm")) else 1.0)
        nearest = np.minimum.reduce([capsule_distance(grid, skeleton, b) for b in bones])
        total += np.exp(np.clip(-nearest / soft, -60, 60))
    for blob in skeleton.blobs:
        inside = np.linalg.norm((grid - blob.centre) / blob.radii, axis=-1) - 1.0
        total += blob.share * np.exp(np.clip(-inside * min(blob.radii) / softness, -60, 60))
    field = np.clip(np.log(np.maximum(total, 1e-20)), -8, 8)
    # Mirror across x = 0 before smoothing, so that the plane stays a plane of symmetry.
    field = ndimage.gaussian_filter(np.concatenate([field[:0:-1], field]), 0.8)
    return mesh_half_field(field[len(axes[0]) - 1 :].astype(np.float32), low, step, count)


def capsule_weights(mesh: Mesh, skeleton: Skeleton, rounds: int = 10) -> Floats:
    """Skinning weights (V, J): nearest bone, softened towards its neighbours in the skeleton."""
    bones = len(skeleton.names)
    gap = np.stack([capsule_distance(mesh.vertices, skeleton, b) for b in range(bones)], axis=1)
    for bone, name in enumerate(skeleton.names):
        sign = {"_l": 1.0, "_r": -1.0}.get(name[-2:], 0.0)
        gap[sign * mesh.vertices[:, 0] < -1e-9, bone] = 9.0
    linked = np.eye(bones, dtype=bool)
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            linked[bone, parent] = linked[parent, bone] = True
    nearest = np.argmin(gap, axis=1)  # (V,)
    soft = np.exp(-(gap - gap.min(1, keepdims=True)) / 0.014) * linked[nearest]  # (V, J)
    return smooth_weights(soft / soft.sum(1, keepdims=True), mesh, rounds)


def smooth_weights(weights: Floats, mesh: Mesh, rounds: int) -> Floats:
    """Diffuse weights (V, J) over the surface."""
    average = adjacency(mesh.faces, len(mesh.vertices))
    for _ in range(rounds):
        weights = 0.5 * weights + 0.5 * (average @ weights)
    return weights


def dog_mesh(vertices: Floats, faces: NDArray[np.int32], count: int, step: float = 0.004) -> Mesh:
    """Outer skin alone: surface voxels, closed and filled, smoothed and meshed."""
    rng = np.random.default_rng(0)
    corners = vertices[faces]
    area = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    pick = rng.choice(len(faces), int(area.sum() / 2 / step**2 * 25), p=area / area.sum())
    share = rng.dirichlet((1, 1, 1), len(pick))
    points = np.einsum("nk,nka->na", share, corners[pick])
    points = np.concatenate([points, points * (-1, 1, 1)])
    low = vertices.min(0) - 6 * step
    high = vertices.max(0) + 6 * step
    half = int(np.ceil(high[0] / step))
    low[0] = -half * step
    shape = (2 * half + 1, *np.ceil((high - low)[1:] / step).astype(int))
    solid = np.zeros(shape, dtype=bool)
    solid[tuple(np.rint((points - low) / step).astype(int).T)] = True
    solid = ndimage.binary_closing(solid, ndimage.generate_binary_structure(3, 1), 2)
    solid = ndimage.binary_fill_holes(solid)
    labels, _ = ndimage.label(solid)
    solid = labels == np.bincount(labels[labels > 0]).argmax()
    field = ndimage.gaussian_filter((solid | solid[::-1]).astype(np.float32), 1.4) - 0.40
    low[0] = 0.0
    return mesh_half_field(field[half:], low, step, count)


def labels_of(
    mesh: Mesh, weights: Floats, skeleton: Skeleton
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """Front (V,) and opposite (V,): see the docstring of ``ltenet.bodies.animals``."""
    owner = np.argmax(weights, axis=1)  # (V,)
    axes = skeleton.tails - skeleton.heads
    unit = axes / np.linalg.norm(axes, axis=1, keepdims=True)  # (J, 3)
    upright = np.abs(unit[:, 1]) >= 0.6
    facing = np.where(upright[:, None], (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))  # (J, 3)
    for bone, name in enumerate(skeleton.names):
        # The neck and tail of an animal slope: their front is the throat and the underside.
        if base_name(name).startswith("neck") and "neck2" in skeleton.names:
            facing[bone] = (0.0, -0.5, 0.8)
        if base_name(name).startswith("tail"):
            facing[bone] = (0.0, -0.7, 0.7)
    facing -= np.sum(facing * unit, axis=1, keepdims=True) * unit
    facing /= np.linalg.norm(facing, axis=1, keepdims=True)
    relative = mesh.vertices - skeleton.heads[owner]  # (V, 3)
    along = np.sum(relative * unit[owner], axis=1) / np.linalg.norm(axes, axis=1)[owner]  # (V,)
    # Beyond the end of a bone is neither front nor back: the offset is from the clamped axis point.
    offset = relative - np.clip(along, 0.0, 1.0)[:, None] * axes[owner]  # (V, 3)
    depth = np.sum(offset * facing[owner], axis=1)  # (V,)
    limb = np.array([chain_of(n) for n in skeleton.names])[owner]
    for name in np.unique(limb):  # a bone need not run through the middle of its flesh
        inside = limb == name
        for bone in np.unique(owner[inside]):
            mine = inside & (owner == bone)
            depth[mine] -= (depth[mine].max() + depth[mine].min()) / 2
    clear = np.abs(depth) > 0.3 * np.linalg.norm(offset, axis=1)
    front = np.where(clear, np.sign(depth), 0).astype(np.int8)
    opposite = np.empty(len(front), dtype=np.int32)
    for name in np.unique(limb):
        inside = np.flatnonzero(limb == name)
        reflected = mesh.vertices[inside] - 2 * depth[inside, None] * facing[owner[inside]]
        opposite[inside] = inside[cKDTree(mesh.vertices[inside]).query(reflected)[1]]
    return front, opposite


def write(
    name: str, mesh: Mesh, weights: Floats, skeleton: Skeleton, species: dict[str, Species]
) -> None:
    """Symmetrise the weights, shape every species, save."""
    weights = 0.5 * (weights + weights[mesh.mirror][:, mirrored_bones(skeleton.names)])  # (V, J)
    weights[weights < np.sort(weights, axis=1)[:, [-4]]] = 0.0
    weights = np.rint(255 * weights / weights.sum(1, keepdims=True))
    top = np.argsort(-weights, axis=1, kind="stable")[:, :4]  # (V, 4)
    scales = np.take_along_axis(weights, top, axis=1).astype(np.uint8)
    weights = np.ascontiguousarray((weights / weights.sum(1, keepdims=True)).T)  # (J, V)
    front, opposite = labels_of(mesh, weights.T, skeleton)
    average = adjacency(mesh.faces, len(mesh.vertices))
    shapes, heads, tails, units = [], [], [], []
    for kind in species.values():
        shape, head, tail = level(mesh.vertices, weights, skeleton, kind)
        for turn in range(6 if kind.scales else 0):  # joints of thick bones crease
            shape = shape + (0.5, -0.53)[turn % 2] * (average @ shape - shape)
        shape = 0.5 * (shape + shape[mesh.mirror] * (-1, 1, 1))
        unit = np.abs(shape).max() / 32767
        shapes.append(np.rint(shape / unit).astype(np.int16))
        units.append(unit)
        heads.append(head)
        tails.append(tail)
    path = ASSETS / f"{name}.npz"
    np.savez_compressed(
        path,
        faces=mesh.faces.astype(np.uint16),
        mirror=mesh.mirror.astype(np.uint16),
        front=front,
        opposite=opposite.astype(np.uint16),
        bones=np.array(skeleton.names),
        parents=skeleton.parents.astype(np.int16),
        weight_bones=top.astype(np.uint8),
        weight_values=scales,
        species=np.array(list(species)),
        vertices=np.stack(shapes),
        units=np.array(units),
        heads=np.stack(heads).astype(np.float32),
        tails=np.stack(tails).astype(np.float32),
    )
    edges = np.sort(
        np.concatenate([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]], mesh.faces[:, [2, 0]]]),
        axis=1,
    )
    closed = (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()
    size = path.stat().st_size / 1e6
    print(
        f"{name}: {len(mesh.vertices)} vertices, {len(species)} species, {size:.2f} MB, {closed=}"
    )


def main() -> None:
    """Write all templates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("skin", type=Path, help="dog_skin.skn of dm-control")
    parser.add_argument("--only", default="dog,capsule,gorilla,centaur", help="templates to write")
    options = parser.parse_args()
    chosen = options.only.split(",")
    ASSETS.mkdir(parents=True, exist_ok=True)
    if "dog" in chosen:
        skeleton, vertices, faces, weights = dog_skeleton(options.skin)
        mesh = dog_mesh(vertices, faces, 5000)
        distance, near = cKDTree(vertices).query(mesh.vertices, k=6)
        closeness = 1.0 / (distance + 2e-3) ** 2
        closeness /= closeness.sum(1, keepdims=True)
        moved = smooth_weights(np.einsum("vk,vkj->vj", closeness, weights[near]), mesh, 3)
        posed = {k: s._replace(pitches=STANCE | s.pitches) for k, s in DOG.items()}
        write("dog", mesh, moved, skeleton, posed)
    bases = {
        "capsule": (skeletons.quadruped(), CAPSULE, 0.026),
        "gorilla": (skeletons.gorilla(), GORILLA, 0.024),
    }
    horse, _ = scale_skeleton(skeletons.quadruped(), CAPSULE["horse"])
    bases["centaur"] = (skeletons.with_rider_torso(horse), CENTAUR, 0.020)
    for name, (skeleton, species, softness) in bases.items():
        if name in chosen:
            mesh = capsule_mesh(skeleton, 5000, softness)
            write(name, mesh, capsule_weights(mesh, skeleton), skeleton, species)


if __name__ == "__main__":
    main()
