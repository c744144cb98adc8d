"""Skeletons of things without a name: a trunk, and limbs that branch off it.

Three symmetries: ``bilateral`` (left and right alike, mirrored at x = 0), ``radial`` (three to six
equal arms around the y axis, also mirrored at x = 0) and ``free``. A bone is a round cone,
flattened to a plate along its normal if its flatness is above one; balls are short, thick bones.
Rings sit on a bone, bores are cut out of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.bones import Floats, segment_distances

Symmetry = Literal["bilateral", "radial", "free"]
SYMMETRIES: tuple[Symmetry, ...] = ("bilateral", "radial", "free")
# Bones that do not meet in a joint keep this many times the sum of their radii between them.
_GAP = 1.25


class Ring(NamedTuple):
    """A torus that rides on a bone."""

    bone: int
    centre: Floats  # (3,)
    axis: Floats  # (3,), through the hole
    radius: float  # of the circle in its middle
    thickness: float  # of the tube


class Bore(NamedTuple):
    """A straight hole with round ends, cut out of everything."""

    start: Floats  # (3,)
    stop: Floats  # (3,)
    radius: float


@dataclass(frozen=True)
class Skeleton:
    """J bones at rest, in units of about the size of the thing.

    Attributes
    ----------
    symmetry
        See the module.
    heads, tails
        (J, 3) ends; parents come before their children, bone 0 is the root.
    parents
        (J,), -1 for the root.
    radii
        (J, 2) at head and tail; of a plate, half its width.
    normals
        (J, 3) unit vectors across the plates.
    flatness
        (J,) width over thickness, at least 1.
    limbs
        (J,) number of the limb of each bone; 0 is the trunk.
    partners
        (J,) bone at the mirrored place; itself in the middle and without a mirror.
    rings, bores
        What is added, and cut out.
    """

    symmetry: Symmetry
    heads: Floats
    tails: Floats
    parents: NDArray[np.int64]
    radii: Floats
    normals: Floats
    flatness: Floats
    limbs: NDArray[np.int64]
    partners: NDArray[np.int64]
    rings: tuple[Ring, ...] = ()
    bores: tuple[Bore, ...] = ()


def keeps_clear(skeleton: Skeleton, heads: Floats, tails: Floats, *, gap: float = _GAP) -> bool:
    """Whether bones of different limbs, placed at (J, 3) heads and tails, stay apart."""
    first, second = strangers(skeleton)
    if len(first) == 0:
        return True
    thick = skeleton.radii.mean(axis=1) / np.sqrt(skeleton.flatness)  # (J,)
    axes = tails - heads  # (J, 3)
    apart = segment_distances(heads[first], axes[first], heads[second], axes[second])  # (P,)
    return bool((apart >= gap * (thick[first] + thick[second])).all())


def strangers(skeleton: Skeleton) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (P,), (P,) of bones that neither touch at a joint nor grow from the same place."""
    parents, heads, tails = skeleton.parents, skeleton.heads, skeleton.tails
    first, second = np.triu_indices(len(parents), 1)  # (P,) each
    joined = (parents[second] == first) | (parents[first] == second)
    nearest = np.min(
        [
            np.linalg.norm(a[first] - b[second], axis=1)
            for a in (heads, tails)
            for b in (heads, tails)
        ],
        axis=0,
    )  # (P,)
    reach = skeleton.radii.max(axis=1)  # (J,)
    joined |= nearest < 1.5 * np.maximum(reach[first], reach[second])
    # A limb may lie over the trunk bones next to its own.
    joined |= (skeleton.limbs[first] == 0) & (skeleton.limbs[second] == 0)
    return first[~joined], second[~joined]
