"""Which two generated bodies form a pair: new ones each time, or two out of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, Protocol, cast

import numpy as np

from ltenet.bodies.generated import GeneratedBody, Template
from ltenet.errors import InputError

What = Literal["human", "animal", "thing"]


class BodyGenerator(Protocol):
    """What draws the bodies; the result depends on the arguments alone."""

    @property
    def templates(self) -> Mapping[str, Template]:
        """Templates by name."""

    def species(self, template: str) -> tuple[str, ...]:
        """Categories that one template can take."""

    def draw(
        self, seed: int, index: int, *, template: str | None = None, category: str | None = None
    ) -> GeneratedBody:
        """Body number `index` of the stream `seed`."""


class IndividualGenerator(BodyGenerator, Protocol):
    """A generator that can draw one individual in several poses."""

    def draw(
        self,
        seed: int,
        index: int,
        *,
        template: str | None = None,
        category: str | None = None,
        individual: int | None = None,
    ) -> GeneratedBody:
        """Body number `index` of the stream `seed`, one of those of an `individual` if named."""


class _Humans:
    """The generator of humans, who have one template and one category."""

    def __init__(self) -> None:
        from ltenet.bodies.humans import HumanGenerator

        self._generator = HumanGenerator()
        self.templates = {self._generator.template.name: self._generator.template}

    def species(self, template: str) -> tuple[str, ...]:
        return ("human",)

    def draw(
        self,
        seed: int,
        index: int,
        *,
        template: str | None = None,
        category: str | None = None,
        individual: int | None = None,
    ) -> GeneratedBody:
        return self._generator.draw(seed, index, individual=individual)


def _animals() -> BodyGenerator:
    from ltenet.bodies.animals import AnimalGenerator

    return AnimalGenerator()


def own_generator(what: What, *, held_back: bool = False) -> BodyGenerator:
    """Return the package's generator of humans, animals or things, made once per process.

    Parameters
    ----------
    held_back
        Whether its templates are those that training never shows; people and animals have one set
        of templates, and other streams of bodies.
    """
    return _made(what, held_back and what == "thing")


def individual_generator(what: Literal["human", "animal"]) -> IndividualGenerator:
    """Return the package's generator of humans or animals."""
    return cast(IndividualGenerator, own_generator(what))


@cache
def _made(what: What, held_back: bool) -> BodyGenerator:
    if what == "thing":
        from ltenet.bodies.things import ThingGenerator

        return ThingGenerator(held_back=held_back)
    return {"human": _Humans, "animal": _animals}[what]()


def body_kinds(generator: BodyGenerator) -> list[tuple[str, str]]:
    """Every template with each of its categories."""
    return [(name, kind) for name in generator.templates for kind in generator.species(name)]


def draw_two_bodies(
    generator: BodyGenerator,
    index: int,
    rng: np.random.Generator,
    *,
    stream: int,
    same_category: bool,
    pool: int | None = None,
) -> tuple[GeneratedBody, GeneratedBody]:
    """Draw two different bodies of one template; every kind of body is equally likely.

    Parameters
    ----------
    generator
        Where they come from.
    index
        Number of the pair; without a pool its bodies are 2 index and 2 index + 1 of the stream.
    rng
        Chooses the kinds, and the bodies of a pool.
    stream
        Seed of the generator.
    same_category
        Whether both are of one species.
    pool
        How many bodies of the stream there are to choose from; None for new ones in each pair.
        Body b of a pool is of kind b modulo the number of kinds.
    """
    kinds = body_kinds(generator)
    # What a body may be paired with: its own kind, or every kind of its template.
    labels = [kind if same_category else (kind[0], "") for kind in kinds]
    families = np.array([labels.index(label) for label in labels])  # (G,)
    if pool is None:
        first = int(rng.integers(len(kinds)))
        second = int(rng.choice(np.flatnonzero(families == families[first])))
        numbers, chosen = (2 * index, 2 * index + 1), (first, second)
    else:
        family = families[np.arange(pool) % len(kinds)]  # (pool,)
        eligible = np.flatnonzero(np.bincount(family)[family] > 1)  # (E,)
        if len(eligible) == 0:
            raise InputError(
                f"got {pool} shapes of {len(set(labels))} kinds, no two of one kind, expected one "
                "kind with two; try a larger pool, or different categories in a pair"
            )
        one = int(rng.choice(eligible))
        related = np.flatnonzero(family == family[one])  # (R,)
        two = int(rng.choice(related[related != one]))
        numbers, chosen = (one, two), (one % len(kinds), two % len(kinds))
    (name, category), (other_name, other_category) = (kinds[kind] for kind in chosen)
    return (
        generator.draw(stream, numbers[0], template=name, category=category),
        generator.draw(stream, numbers[1], template=other_name, category=other_category),
    )
