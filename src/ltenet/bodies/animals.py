"""Generated animals: an endless stream of posed bodies with exact correspondence.

Four templates, each with its own numbering: ``dog`` (a scanned dog), ``capsule`` (a generic
four-legged animal), ``gorilla`` and ``centaur``. A species is a build of a template; an individual
varies its bones, widely in a third of all cases, and often blends two builds; a pose comes from a
family such as ``"gallop"``.

Labels of a template: ``side`` is the sign of x in the rest pose. ``front`` is +1 on the forward
face of legs, arms and upright trunks, on the belly of level trunks, on the throat, and on the
underside of head, tail and paws; it is -1 across the bone, on the back. ``opposite`` is the nearest
vertex of the same limb to the reflection through that bone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.animal_kinematics import QuadrupedPoser
from ltenet.bodies.animal_poses import HOOFED, STIFF, draw_posture, family_odds
from ltenet.bodies.animal_proportions import IndividualScales
from ltenet.bodies.animal_rigs import forbidden_pairs, load_rig
from ltenet.bodies.ape_poses import APE_FAMILIES, APE_ODDS, ApePoser, ArmPoser, draw_arms
from ltenet.bodies.bones import (
    Build,
    Floats,
    Placement,
    Rig,
    blend_builds,
    place_bones,
    scaled_skeleton,
    segment_distances,
    skin,
)
from ltenet.bodies.generated import GeneratedBody, Template, individual_rng
from ltenet.errors import InputError

TEMPLATES = ("dog", "capsule", "gorilla", "centaur")
_TEMPLATE_ODDS = (0.32, 0.40, 0.13, 0.15)
_BLEND_ODDS = 0.4
# Individuals with proportions far from those of their species; they blend more, too.
_WIDE_ODDS, _WIDE_BLEND, _BLEND = 0.35, 0.5, 0.35
_MOST_TRIES, _TRIES_PER_FAMILY = 200, 8
# Capsules around the bones are rough: what they forbid is a fraction of full contact.
_CONTACT = 0.88
_REST_SHARE = 0.75


class _Maker:
    """Draws bodies of one rig."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.species = tuple(rig.builds)
        self._pairs = forbidden_pairs(rig)
        self._ape = ApePoser(rig) if "foot_l" in rig.bones else None
        self._poser = None if self._ape else QuadrupedPoser(rig)
        self._arms = ArmPoser(rig) if "torso0" in rig.bones else None
        self._paws = (
            [rig.index(n) for n in ("hpaw_l", "hpaw_r", "fpaw_l", "fpaw_r")] if self._poser else []
        )
        self._shoulders = (
            [rig.index(n) for n in ("spine0", "spine1", "chest", "torso0", "torso1", "torso2")]
            if self._arms
            else []
        )
        self._scales = IndividualScales(rig)
        self._still = np.tile(np.eye(3), (len(rig.bones), 1, 1))  # (J, 3, 3)

    def draw(
        self, rng: np.random.Generator, species: str, builds: np.random.Generator
    ) -> tuple[NDArray[np.float32], str, str]:
        """Vertices (V, 3), pose family and build, which `builds` draws, of one accepted body."""
        wide = bool(builds.random() < _WIDE_ODDS)
        build = self._blend(builds, species, wide=wide)
        lengths, thickness = self._scales.draw(builds, wide=wide)
        offsets, axes = scaled_skeleton(self.rig, build, lengths, thickness)
        radii = build.radii * thickness[:, :2].mean(axis=1)  # (J,)
        first, second = self._pairs
        contact = _CONTACT * (radii[first] + radii[second])  # (P,)
        # What touches at rest may touch in any pose.
        rest = place_bones(self.rig, offsets, axes, self._still)
        limits = np.minimum(contact, _REST_SHARE * self._distances(rest.heads, rest.tails))  # (P,)
        odds = APE_ODDS if self._ape else family_odds(species)
        names, chances = list(odds), np.cumsum(list(odds.values()))
        for attempt in range(_MOST_TRIES):
            # Trying a family again before the next one keeps hard families from dying out.
            if attempt % _TRIES_PER_FAMILY == 0:
                family = names[int(np.searchsorted(chances, rng.uniform(0, chances[-1])))]
            placement = self._pose(rng, species, family, build, thickness, offsets, axes)
            if np.all(self._distances(placement.heads, placement.tails) >= limits):
                break
        vertices = skin(self.rig, build, thickness, axes, placement)
        return vertices, family, "wide" if wide else "species"

    def _blend(self, rng: np.random.Generator, species: str, *, wide: bool) -> Build:
        """Build of an individual, mixed with that of another species now and then."""
        build = self.rig.builds[species]
        if not wide and rng.random() >= _BLEND_ODDS:
            return build
        other = self.rig.builds[self.species[int(rng.integers(len(self.species)))]]
        return blend_builds(build, other, rng.uniform(0.05, _WIDE_BLEND if wide else _BLEND))

    def _pose(
        self,
        rng: np.random.Generator,
        species: str,
        family: str,
        build: Build,
        thickness: Floats,
        offsets: Floats,
        axes: Floats,
    ) -> Placement:
        """One try at a pose of a family."""
        if self._ape:
            rotations = self._ape.pose(APE_FAMILIES[family](rng), axes)
            return place_bones(self.rig, offsets, axes, rotations)
        assert self._poser is not None
        limber = 0.35 if species in STIFF else 1.0
        hanging = species in HOOFED or self._arms is not None
        posture = draw_posture(family, rng, limber=limber, hanging=hanging)
        if self._arms:
            bow = -rng.uniform(-15, 20) if rng.random() < 0.75 else -rng.uniform(20, 75)
            turn = posture.neck[1], posture.neck[2] + rng.normal(0, 5)
            posture = replace(posture, neck=(bow, *turn))
        soles = build.soles[self._paws] * thickness[self._paws, 1]  # (4,)
        rotations, root = self._poser.pose(posture, offsets, soles)
        if self._arms:
            chest = rotations[0]
            for bone in self._shoulders:
                chest = chest @ rotations[bone]
            self._arms.pose(rotations, draw_arms(rng, calm=rng.random() < 0.3), axes, chest)
        return place_bones(self.rig, np.concatenate([root[None], offsets[1:]]), axes, rotations)

    def _distances(self, heads: Floats, tails: Floats) -> Floats:
        """(P,) distances between the axes of the forbidden pairs."""
        first, second = self._pairs
        axes = tails - heads  # (J, 3)
        return segment_distances(heads[first], axes[first], heads[second], axes[second])


class AnimalGenerator:
    """Posed animals with exact correspondence; any index of an endless stream by itself.

    Templates are read on first use and kept. The same seed and index give the same bytes in any
    order of calls.
    """

    def __init__(self) -> None:
        self._makers: dict[str, _Maker] = {}

    @property
    def templates(self) -> dict[str, Template]:
        """Template name -> template; bodies of one template share their numbering."""
        return {name: self._maker(name).rig.template for name in TEMPLATES}

    def species(self, template: str) -> tuple[str, ...]:
        """Names of the species of a template."""
        return self._maker(template).species

    def draw(
        self,
        seed: int,
        index: int,
        *,
        template: str | None = None,
        category: str | None = None,
        individual: int | None = None,
    ) -> GeneratedBody:
        """Body number ``index`` of the stream ``seed``.

        Parameters
        ----------
        template
            Draw from this template alone.
        category
            Draw this species alone, from any template that has it.
        individual
            Bodies of one species with the same number are one animal in several poses.

        Returns
        -------
        GeneratedBody
            (V, 3) vertices, y-up, facing +z, left = +x; feet of standing animals at y = 0.

        Raises
        ------
        InputError
            If there is no such template, or no such species in it.
        """
        rng = np.random.default_rng([seed, index])
        if template is None:
            template = self._draw_template(rng, category)
        species = self.species(template)
        if category is None:
            category = species[int(rng.integers(len(species)))]
        elif category not in species:
            raise InputError(
                f"got the species {category!r} of the template {template}, expected one of "
                f"{', '.join(species)}; try without a template to draw from any that has it"
            )
        builds = rng if individual is None else individual_rng(seed, individual)
        vertices, family, build = self._maker(template).draw(rng, category, builds)
        return GeneratedBody(vertices, family, category, template, build)

    def _draw_template(self, rng: np.random.Generator, category: str | None) -> str:
        """Draw a template that has the species."""
        odds = np.array(_TEMPLATE_ODDS)
        if category is not None:
            odds *= [category in self.species(name) for name in TEMPLATES]
            if not odds.any():
                known = sorted({s for name in TEMPLATES for s in self.species(name)})
                raise InputError(
                    f"got the species {category!r}, expected one of {', '.join(known)}; try "
                    "leaving it out for any"
                )
        return TEMPLATES[int(np.searchsorted(np.cumsum(odds), rng.uniform(0, odds.sum())))]

    def _maker(self, name: str) -> _Maker:
        """Give the maker of a template, read on first use."""
        if name not in TEMPLATES:
            raise InputError(
                f"got the template {name!r}, expected one of {', '.join(TEMPLATES)}; try leaving "
                "it out for any"
            )
        if name not in self._makers:
            self._makers[name] = _Maker(load_rig(name))
        return self._makers[name]
