"""What a map is worth, in the same few figures wherever it is told: text, JSON and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ltenet.correspondence import Correspondence

#: Least mean probability of a map that is likely right, and of one that is worth a look.
LIKELY, USABLE = 0.8, 0.5
LIKELY_RIGHT = "likely right"
#: Certainty of the orientation network below which the direction of a shape is in doubt.
CERTAIN = 0.6
#: Probability of the chosen orientations below which front and back may be exchanged.
DECIDED = 0.9
#: Share of the source below which so few points have a partner that the map itself is in doubt.
FEW = 0.5


class MapSummary(NamedTuple):
    """The figures of a map.

    Attributes
    ----------
    verdict
        "likely right", "check it" or "doubtful"; "not rated" for maps without probabilities.
    mean_probability
        Mean over the matched points of the probability that the partner is right, or None.
    model
        The weights that made the map, or None where it came from elsewhere.
    matched
        Share of the source's points that have a partner.
    coverage
        Share of the target's points that are the partner of some source point.
    doubts
        What speaks against the map, a few words each.
    notes
        What else is odd about the shapes: outliers, meshes turned inside out.
    """

    verdict: str
    mean_probability: float | None
    model: str | None
    matched: float
    coverage: float
    doubts: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """All of it on one line."""
        parts = [self.verdict]
        if self.mean_probability is not None:
            parts.append(f"mean probability {self.mean_probability:.2f}")
        if self.model is not None:
            parts.append(f"weights {self.model}")
        parts += [f"matched {self.matched:.1%}", f"coverage {self.coverage:.1%}"]
        doubts = ", ".join(self.doubts) or "no doubts"
        return "; ".join([", ".join(parts), doubts, *self.notes])


def summarize(correspondence: Correspondence) -> MapSummary:
    """Sum up a map of any origin."""
    matched, details = correspondence.matched, correspondence.details
    probability = None
    if correspondence.scores is not None and matched.any():
        probability = float(correspondence.scores[matched].mean())
    share = float(matched.mean()) if len(matched) else 0.0
    doubts = []
    # Maps of version 0.1 have the older name.
    if details.get("orientation_reversed", details.get("mirror_suspect")):
        doubts.append("the map reverses orientation")
    direction = details.get("direction_probability")
    if isinstance(direction, int | float) and direction < DECIDED:
        doubts.append("front and back may be exchanged")
    verdict = _verdict(probability, share)
    for side in ("source", "target"):
        certainty = details.get(f"{side}_certainty")
        unsure = isinstance(certainty, int | float) and certainty < CERTAIN
        if unsure and verdict != LIKELY_RIGHT:  # a plausible map settles the direction
            doubts.append(f"the direction of the {side} is uncertain")
    if details.get("calibrated") is False:
        doubts.append("probabilities are a guess, as the weights are not calibrated")
    if share < FEW:
        doubts.append("few points are matched")
    model = details.get("model")
    return MapSummary(
        verdict=verdict,
        mean_probability=probability,
        model=None if model is None else str(model),
        matched=share,
        coverage=correspondence.coverage,
        doubts=tuple(doubts),
        notes=tuple(_notes(details)),
    )


def _notes(details: Mapping[str, Any]) -> Iterator[str]:
    for key, words in (
        ("outliers", "{count} outliers of the {side} left out"),
        ("inside_out", "the {side} is turned inside out"),
    ):
        counts = details.get(key)
        if isinstance(counts, list | tuple) and len(counts) == 2:
            for side, count in zip(("source", "target"), counts, strict=True):
                explained = key == "inside_out" and side == "source" and details.get("mirror")
                if count and not explained:
                    yield words.format(side=side, count=count)


def _verdict(probability: float | None, matched: float) -> str:
    if probability is None:
        return "not rated" if matched > 0 else "doubtful"
    if probability >= LIKELY and matched >= FEW:
        return LIKELY_RIGHT
    return "check it" if probability >= USABLE else "doubtful"
