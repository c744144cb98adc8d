"""What training does to a drawn shape: turn it, scale it, cut parts off, thin it, make it noisy.

`ltenet.data.drawn_side` applies what needs the mesh. Every effect is off at 0, and a turn and a
scale take the same random numbers whether they are on or not, so that switching one of them does
not change the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.data.sampling import draw_density
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import axis_rotation

Rotate = Literal["none", "yaw", "any"]

_UP = (0.0, 1.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How strongly shapes are changed; every effect is off at 0 and drawn for each shape anew.

    Attributes
    ----------
    yaw
        Degrees: turned about the y axis by an angle from -yaw to +yaw; 180 is every direction.
    tilt
        Degrees: then about a random horizontal axis by an angle from -tilt to +tilt.
    scale
        Share below 1: multiplied by a factor from 1 - scale to 1 + scale, after normalisation.
    noise
        Standard deviation of the Gaussian noise on each coordinate, after normalisation: with the
        canonical radius of 0.5 about metres on a standing adult.
    crop
        Largest share of the points that is removed, below 1: those behind a random plane or
        outside a random ball. The share itself is drawn from 0 to crop.
    crop_chance
        Share of the shapes that are cropped at all.
    density
        Largest contrast of a smooth random density, highest over lowest; at least 1 unless off.
        The contrast itself is drawn from 1 to density, evenly in its logarithm.
    detail
        Largest exponent p, drawn from 0 to detail: thin body parts (hands, feet, ears, tails) get
        more points, as in hand-made meshes; chances are multiplied by ``size ** -p``. With 1 for
        humans and 4 for animals the points drawn from vertices are as uneven as those of real
        meshes.
    curvature
        Largest exponent p, drawn from 0 to curvature: chances are multiplied by the curvature to
        the p, as adaptive remeshing does.
    even_chance
        Share of the shapes whose points are evenly spaced by farthest-point sampling, as after
        isotropic remeshing; density, detail and curvature do not count there.
    wobble
        Largest root-mean-square length of a smooth displacement, drawn from 0 to wobble, after
        normalisation; like `noise` it moves the points and not the truth.
    warp_chance, warp
        Share of the bodies whose form is changed before any point is drawn, and how strongly: by
        stretches, bends, twists, waves and bumps, as nature and artists give bodies that no
        generator makes; see `bodies.warps`.
    cut_chance, cut
        Share of the shapes that a random plane cuts, and the least and largest share of the surface
        that is cut off.
    view_chance
        Share of the shapes of which only what one camera sees is left.
    limb_chance
        Share of the shapes of which one region of the template is left: an arm, head and shoulders,
        the lower body. Cut, view and limb exclude each other; their chances add up to at most 1.
    holes_chance, holes, hole_area
        Share of the shapes with holes, their largest number, and the least and largest share of the
        surface that one hole takes away.
    """

    yaw: float = 0.0
    tilt: float = 0.0
    scale: float = 0.0
    noise: float = 0.0
    crop: float = 0.0
    crop_chance: float = 1.0
    density: float = 0.0
    detail: float = 0.0
    curvature: float = 0.0
    even_chance: float = 0.0
    wobble: float = 0.0
    warp_chance: float = 0.0
    warp: float = 0.6
    cut_chance: float = 0.0
    cut: tuple[float, float] = (0.2, 0.6)
    view_chance: float = 0.0
    limb_chance: float = 0.0
    holes_chance: float = 0.0
    holes: int = 5
    hole_area: tuple[float, float] = (0.003, 0.04)

    def __post_init__(self) -> None:
        self._check("yaw", 0.0 <= self.yaw <= 180.0, "degrees from 0 to 180")
        self._check("tilt", 0.0 <= self.tilt <= 180.0, "degrees from 0 to 180")
        self._check("scale", 0.0 <= self.scale < 1.0, "a share from 0 to below 1")
        self._check("noise", 0.0 <= self.noise < math.inf, "a length of at least 0")
        self._check("crop", 0.0 <= self.crop < 1.0, "a share from 0 to below 1")
        self._check("crop_chance", 0.0 <= self.crop_chance <= 1.0, "a share from 0 to 1")
        self._check("density", self.density == 0.0 or 1.0 <= self.density < math.inf, "0 or >= 1")
        self._check("detail", 0.0 <= self.detail <= 10.0, "an exponent from 0 to 10")
        self._check("curvature", 0.0 <= self.curvature <= 10.0, "an exponent from 0 to 10")
        self._check("wobble", 0.0 <= self.wobble < math.inf, "a length of at least 0")
        for name in ("even", "warp", "cut", "view", "limb", "holes"):
            chance = getattr(self, f"{name}_chance")
            self._check(f"{name}_chance", 0.0 <= chance <= 1.0, "a share from 0 to 1")
        self._check("warp", 0.0 < self.warp <= 1.0, "a strength above 0, up to 1")
        parts = self.cut_chance + self.view_chance + self.limb_chance
        self._check("limb_chance", parts <= 1.0, "cut, view and limb chances of at most 1 together")
        for name in ("cut", "hole_area"):
            low, high = getattr(self, name)
            self._check(name, 0.0 < low <= high < 1.0, "two rising shares between 0 and 1")
        self._check("holes", self.holes >= 1, "a whole number of at least 1")

    @property
    def removes(self) -> bool:
        """Whether any part of a shape may be missing."""
        chances = (self.cut_chance, self.view_chance, self.limb_chance, self.holes_chance)
        return self.crop > 0.0 or any(chance > 0.0 for chance in chances)

    def _check(self, name: str, fine: bool, needed: str) -> None:
        if not fine:
            raise InputError(
                f"augmentation: got {name} = {getattr(self, name)}, expected {needed}; "
                "try leaving it out for the default"
            )


class Similarity(NamedTuple):
    """A rotation and a scale about the origin: ``x -> scale * rotation @ x``.

    Attributes
    ----------
    rotation
        (3, 3)
    scale
        Positive factor.
    """

    rotation: FloatArray
    scale: float

    def apply(self, points: NDArray[np.floating]) -> FloatArray:
        """Transform a copy of (N, 3) points."""
        moved: FloatArray = (points @ self.rotation.T) * self.scale  # (N, 3)
        return moved

    @property
    def matrix(self) -> FloatArray:
        """(4, 4) homogeneous matrix of the same map."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.scale * self.rotation
        return matrix


class CropRegion(NamedTuple):
    """The part of space that a cropped shape keeps: where its measure is at most the limit.

    Attributes
    ----------
    kind
        "plane": the measure is ``<anchor, x>``; "ball": it is ``|x - anchor|^2``.
    anchor
        (3,) direction that is cut off, or centre of the ball.
    limit
        Largest measure that is kept.
    """

    kind: Literal["plane", "ball"]
    anchor: FloatArray
    limit: float

    def keeps(self, points: NDArray[np.floating]) -> NDArray[np.bool_]:
        """(N,) True where a point of (N, 3) is kept."""
        kept: NDArray[np.bool_] = self.measure(points) <= self.limit  # (N,)
        return kept

    def measure(self, points: NDArray[np.floating]) -> FloatArray:
        """(N,) what is compared with the limit."""
        points = np.asarray(points, dtype=np.float64)  # (N, 3)
        if self.kind == "plane":
            along: FloatArray = points @ self.anchor  # (N,)
            return along
        offsets = points - self.anchor  # (N, 3)
        square: FloatArray = np.einsum("nd,nd->n", offsets, offsets)  # (N,)
        return square


def draw_similarity(augmentation: Augmentation, rng: np.random.Generator) -> Similarity:
    """Draw the turn and the scale of one shape."""
    yaw, tilt, azimuth, size = rng.uniform(-1.0, 1.0, size=4)
    axis = (math.cos(math.pi * azimuth), 0.0, math.sin(math.pi * azimuth))
    turn = axis_rotation(_UP, augmentation.yaw * yaw)  # (3, 3)
    lean = axis_rotation(axis, augmentation.tilt * tilt)  # (3, 3)
    return Similarity(lean @ turn, 1.0 + augmentation.scale * size)


def random_rotation(rotate: Rotate, rng: np.random.Generator) -> FloatArray:
    """(3, 3) rotation: none, uniform about the y axis, or uniform over all rotations."""
    if rotate == "none":
        return np.eye(3)
    if rotate == "yaw":
        return axis_rotation(_UP, rng.uniform(-180.0, 180.0))
    # A normal vector in four dimensions is a uniform unit quaternion: cos(a / 2), sin(a / 2) axis.
    real, *imaginary = rng.standard_normal(4)
    half_angle = np.arctan2(np.linalg.norm(imaginary), real)
    return axis_rotation(imaginary, np.degrees(2.0 * half_angle))


def augment(
    points: NDArray[np.floating], augmentation: Augmentation, rng: np.random.Generator
) -> FloatArray:
    """Turn, scale and add noise to (N, 3) points: all that leaves their number alone."""
    return add_noise(draw_similarity(augmentation, rng).apply(points), augmentation.noise, rng)


def add_noise(
    points: NDArray[np.floating], deviation: float, rng: np.random.Generator
) -> FloatArray:
    """Noisy copy of (N, 3) points: Gaussian, the same standard deviation in each coordinate."""
    if not 0.0 <= deviation < math.inf:
        raise InputError(
            f"got noise with a standard deviation of {deviation}, expected at least 0; try 0 for "
            "none"
        )
    noisy = np.array(points, dtype=np.float64)  # (N, 3)
    if deviation > 0.0:
        noisy += deviation * rng.standard_normal(noisy.shape)
    return noisy


def draw_crop(
    augmentation: Augmentation, points: NDArray[np.floating], rng: np.random.Generator
) -> CropRegion | None:
    """Draw what one shape keeps, None if it keeps everything.

    Parameters
    ----------
    augmentation
        Its `crop` and `crop_chance` count here.
    points
        (N, 3) points spread over the shape; the share that is removed refers to them.
    rng
        Source of randomness.
    """
    chance, share, side = rng.random(3)
    direction = rng.standard_normal(3)  # (3,)
    centre = int(rng.integers(len(points)))
    share *= augmentation.crop
    if share == 0.0 or chance >= augmentation.crop_chance:
        return None
    if side < 0.5:
        return cut_region(direction, points, share)
    return _keeping(
        CropRegion("ball", np.asarray(points[centre], dtype=np.float64), math.inf), points, share
    )


def cut_region(direction: FloatArray, points: NDArray[np.floating], share: float) -> CropRegion:
    """Half-space that cuts off a share of (N, 3) points, those farthest along `direction` (3,)."""
    plane = CropRegion("plane", direction / np.linalg.norm(direction), math.inf)
    return _keeping(plane, points, share)


def _keeping(region: CropRegion, points: NDArray[np.floating], share: float) -> CropRegion:
    """Region limited so that it loses a share of (N, 3) points, rounded down."""
    measure = region.measure(points)  # (N,)
    order = np.sort(measure)  # (N,)
    kept = len(order) - math.floor(share * len(order))
    return region._replace(limit=float(order[max(kept, 1) - 1]))


def draw_uneven(
    augmentation: Augmentation,
    vertices: NDArray[np.floating],
    rng: np.random.Generator,
    *,
    size: NDArray[np.floating] | None = None,
) -> FloatArray | None:
    """Draw the density over one shape, None if it is even.

    Parameters
    ----------
    augmentation
        Its `density` and `detail` count here.
    vertices
        (V, 3) positions.
    rng
        Source of randomness.
    size
        (V,) positive size of the body part around each vertex; needed for `detail`.

    Returns
    -------
    (V,) relative density, or None.
    """
    share = rng.random()
    smooth = finer = None
    if augmentation.density > 1.0:
        smooth = draw_density(vertices, rng, contrast=augmentation.density**share)  # (V,)
    if augmentation.detail > 0.0:
        if size is None:
            raise InputError(
                f"augmentation: got detail = {augmentation.detail} and a template without sizes of "
                "its body parts, expected `Template.size`; try setting it, or leaving detail out"
            )
        exponent = augmentation.detail * rng.random()
        finer = np.exp(-exponent * np.log(np.asarray(size, dtype=np.float64)))  # (V,)
    if smooth is None or finer is None:
        return finer if smooth is None else smooth
    return smooth * finer
