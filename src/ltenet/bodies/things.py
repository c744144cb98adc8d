"""Generated things without a name: an endless stream of shapes of any class, with exact truth.

A template is a random skeleton with a smooth skin (see `thing_templates`), built when it is needed
and kept for a while. A thing varies it: bones in length and thickness, joints, bumps, then the
whole by warps (see `warps`). People and animals of the other generators take part too, whole or in
pieces (see `pieces`), freely warped. Templates for training and for validation are different ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.animals import TEMPLATES as ANIMALS
from ltenet.bodies.animals import AnimalGenerator
from ltenet.bodies.bones import Floats, place_bones, scaled_skeleton, skin
from ltenet.bodies.generated import GeneratedBody, Template
from ltenet.bodies.humans import HumanGenerator
from ltenet.bodies.pieces import Piece, cut_piece
from ltenet.bodies.thing_skeletons import keeps_clear
from ltenet.bodies.thing_templates import ThingRig, make_thing, thing_symmetry
from ltenet.bodies.warps import bump_heights, draw_warp
from ltenet.errors import InputError
from ltenet.geometry.rotations import axis_rotation

#: Templates by their numbers: those for validation, and all others that are trained on.
HELD_BACK_THINGS = range(400, 500)
TRAINING_THINGS = (*range(400), *range(500, 2400))
_HUMAN = "human"
_HUMAN_PARTS = ("hand.L", "hand.R", "foot.L", "foot.R")  # whole arms and legs are regions
_SHARES = (0.6, 0.2, 0.2)  # of things, people and animals; the latter whole or in pieces
# What an individual keeps: its sides alike, its pose alike on both sides, its rest pose.
_ALIKE, _ALIKE_POSE, _STILL = 0.75, 0.35, 0.25
_MOST_TRIES, _CALMER = 8, 0.7
_KEPT = 600  # templates in memory, about a megabyte each
_GAP = 0.9  # posed limbs may come nearer than at rest


class ThingGenerator:
    """Draws things; the same seed and index give the same bytes in any order of calls.

    Parameters
    ----------
    held_back
        Draw from the templates for validation; they are things alone, without warped bodies.
    """

    def __init__(self, *, held_back: bool = False) -> None:
        numbers = HELD_BACK_THINGS if held_back else TRAINING_THINGS
        self._numbers = {f"thing{k:03d}": k for k in numbers}
        self._rigs: dict[str, ThingRig] = {}
        self._animals = AnimalGenerator()
        self._humans = None if held_back else HumanGenerator()
        self._pieces = {} if self._humans is None else self._cut_pieces(self._humans)
        bodies = () if held_back else (_HUMAN, *ANIMALS, *self._pieces)
        self._bodies = dict.fromkeys(bodies)  # in order, and quick to look up
        self._symmetries = {name: thing_symmetry(k) for name, k in self._numbers.items()}

    @property
    def templates(self) -> Mapping[str, Template]:
        """Templates by name, each built when it is looked up."""
        return _Templates(self)

    def names(self) -> tuple[str, ...]:
        """Names of the templates: things first, then the bodies that are warped."""
        return (*self._numbers, *self._bodies)

    def species(self, template: str) -> tuple[str, ...]:
        """Symmetry of a thing; the species of a warped body."""
        self._check(template)
        whole = template.split("-")[0]
        if whole == _HUMAN:
            return (_HUMAN,)
        if whole in self._bodies:
            return self._animals.species(whole)
        return (self._symmetries[template],)

    def draw(
        self, seed: int, index: int, *, template: str | None = None, category: str | None = None
    ) -> GeneratedBody:
        """Thing number `index` of the stream `seed`.

        Parameters
        ----------
        template
            Draw from this template alone.
        category
            Draw things of this symmetry, or bodies of this species, alone.
        """
        rng = np.random.default_rng([seed, index])
        if template is None:
            names = [n for n in self.names() if category is None or category in self.species(n)]
            if not names:
                known = sorted({kind for name in self.names() for kind in self.species(name)})
                raise InputError(
                    f"got the category {category!r}, expected one of {', '.join(known)}; try "
                    "leaving it out for any"
                )
            template = self._one_of(names, rng)
        species = self.species(template)
        if category is None:
            category = species[int(rng.integers(len(species)))]
        elif category not in species:
            raise InputError(
                f"got the category {category!r} of the template {template}, expected one of "
                f"{', '.join(species)}; try without a template to draw from any that has it"
            )
        if template in self._bodies:
            body = self._body(seed, index, template, category)
            warped, warps = draw_warp(body.vertices, rng)
            return replace(body, vertices=warped.astype(np.float32), family=warps or "plain")
        vertices, posed = _posed(self.rig(template), rng)
        warped, warps = draw_warp(vertices, rng)
        family = " ".join(filter(None, (posed, warps))) or "plain"
        return GeneratedBody(warped.astype(np.float32), family, category, template)

    def _one_of(self, names: Sequence[str], rng: np.random.Generator) -> str:
        """Choose a template: things, people and animals have shares of their own."""
        groups = [
            [name for name in names if name not in self._bodies],
            [name for name in names if name.split("-")[0] == _HUMAN],
            [name for name in names if name.split("-")[0] in ANIMALS],
        ]
        shares = np.array(_SHARES) * [len(group) > 0 for group in groups]  # (3,)
        group = groups[int(rng.choice(3, p=shares / shares.sum()))]
        return group[int(rng.integers(len(group)))]

    def rig(self, name: str) -> ThingRig:
        """Give the rig of a thing, built on first use; the oldest are forgotten."""
        if name not in self._rigs:
            if len(self._rigs) >= _KEPT:
                del self._rigs[next(iter(self._rigs))]
            self._rigs[name] = make_thing(self._numbers[name], name)
        return self._rigs[name]

    def template(self, name: str) -> Template:
        """Give a template, built on first use."""
        self._check(name)
        if name in self._pieces:
            return self._pieces[name].template
        if name in self._bodies:
            return self._whole(name)
        return self.rig(name).rig.template

    def _body(self, seed: int, index: int, template: str, category: str) -> GeneratedBody:
        whole = template.split("-")[0]
        if whole == _HUMAN and self._humans is not None:
            body = self._humans.draw(seed, index)
        else:
            body = self._animals.draw(seed, index, template=whole, category=category)
        if template in self._pieces:
            vertices = self._pieces[template].of(body.vertices)
            return replace(body, vertices=vertices, template=template)
        return body

    def _whole(self, name: str) -> Template:
        if name == _HUMAN and self._humans is not None:
            return self._humans.template
        return self._animals.templates[name]

    def _cut_pieces(self, humans: HumanGenerator) -> dict[str, Piece]:
        """Give the pieces of people and animals, by names such as ``"human-head"``."""
        found = {}
        for body in (_HUMAN, *ANIMALS):
            whole = humans.template if body == _HUMAN else self._animals.templates[body]
            regions = dict(whole.regions)
            if body == _HUMAN:
                regions |= {name: humans.parts == name for name in _HUMAN_PARTS}
            for region, mask in regions.items():
                name = f"{body}-{region}"
                found[name] = cut_piece(whole, name, mask)
        return found

    def _check(self, template: str) -> None:
        if template not in self._numbers and template not in self._bodies:
            first, *_, last = self._numbers
            others = ", ".join(("", *(n for n in self._bodies if n not in self._pieces)))
            pieces = f", or a piece such as {next(iter(self._pieces))}" if self._pieces else ""
            raise InputError(
                f"got the template {template!r}, expected {first} to {last}{others}{pieces}; try "
                "leaving it out for any"
            )


class _Templates(Mapping[str, Template]):
    """Templates by name; going through the names builds nothing."""

    def __init__(self, generator: ThingGenerator) -> None:
        self._generator = generator

    def __getitem__(self, name: str) -> Template:
        if name not in self._generator.names():
            raise KeyError(name)
        return self._generator.template(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._generator.names())

    def __len__(self) -> int:
        return len(self._generator.names())


def _posed(thing: ThingRig, rng: np.random.Generator) -> tuple[NDArray[np.float32], str]:
    """Vertices (V, 3) of an individual in some pose, and the name of that change."""
    rig, skeleton = thing.rig, thing.skeleton
    (build,) = rig.builds.values()
    alike, alike_pose, still, bumpy = rng.random(4) < (_ALIKE, _ALIKE_POSE, _STILL, 0.35)
    lengths, thickness = _proportions(thing, rng, alike=bool(alike))
    if bumpy:
        heights = bump_heights(build.vertices.T, rng, count=6, height=0.02)  # (V,)
        raised = build.vertices + (thing.normals * heights[:, None]).T  # (3, V)
        build = replace(build, vertices=raised.astype(np.float32))
    offsets, axes = scaled_skeleton(rig, build, lengths, thickness)
    angles = _angles(thing, rng, alike=bool(alike_pose)) * (0.0 if still else rng.uniform(0.3, 1.0))
    for _ in range(_MOST_TRIES):
        placement = place_bones(rig, offsets, axes, _rotations(angles))
        if keeps_clear(skeleton, placement.heads, placement.tails, gap=_GAP):
            break
        angles = _CALMER * angles
    vertices = skin(rig, build, thickness, axes, placement)
    return vertices, " ".join(("" if still else "posed", "bumps" if bumpy else "")).strip()


def _proportions(
    thing: ThingRig, rng: np.random.Generator, *, alike: bool
) -> tuple[Floats, Floats]:
    """Scales of length (J,) and thickness (J, 3), most of them common to the bones of a limb."""
    limbs, partners = thing.skeleton.limbs, thing.skeleton.partners
    spread = rng.uniform(0.05, 0.3)
    of_limb = rng.normal(0.0, spread, (int(limbs.max()) + 1, 2))  # (L, 2)
    logs = of_limb[limbs] + rng.normal(0.0, 0.3 * spread, (len(limbs), 2))  # (J, 2)
    round_logs = np.repeat(logs[:, 1:], 3, axis=1) + rng.normal(0.0, 0.06, (len(limbs), 3))
    if alike:
        first = np.minimum(np.arange(len(limbs)), partners)  # (J,)
        logs, round_logs = logs[first], round_logs[first]
    return np.exp(logs[:, 0]), np.exp(round_logs)


def _angles(thing: ThingRig, rng: np.random.Generator, *, alike: bool) -> Floats:
    """(J, 3) rotation vectors of the joints in degrees; trunks move less than limbs."""
    limbs, partners = thing.skeleton.limbs, thing.skeleton.partners
    spread = np.where(limbs == 0, 8.0, 20.0)  # (J,)
    angles = spread[:, None] * rng.standard_normal((len(limbs), 3))  # (J, 3)
    if alike and thing.skeleton.symmetry != "free":
        first = np.minimum(np.arange(len(limbs)), partners)  # (J,)
        # A reflection at x = 0 turns a rotation vector (x, y, z) into (x, -y, -z).
        flip = np.where((first == np.arange(len(limbs)))[:, None], 1.0, [1.0, -1.0, -1.0])  # (J, 3)
        middle = (partners == np.arange(len(limbs)))[:, None]  # (J, 1)
        angles = angles[first] * flip * np.where(middle, [1.0, 0.0, 0.0], 1.0)
    angles[0] = 0.0  # the root only turns the whole
    return angles


def _rotations(angles: Floats) -> Floats:
    """(J, 3, 3) rotations by (J, 3) rotation vectors in degrees."""
    size = np.linalg.norm(angles, axis=1)  # (J,)
    axes = np.where(size[:, None] > 1e-9, angles, [1.0, 0.0, 0.0])  # (J, 3)
    return axis_rotation(axes, size)
