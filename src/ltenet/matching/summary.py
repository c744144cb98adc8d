"""What a map is worth, in the same few figures wherever it is told: text, JSON and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from ltenet.correspondence import Correspondence

Verdict = Literal["reliable", "check", "unrelated", "not rated"]
Symmetry = Literal["clear", "ambiguous"]

#: Probability from which a map is reliable as a whole, and below which the shapes may have nothing
#: to do with each other.
RELIABLE, RELATED = 0.8, 0.3
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
        "reliable", "check" or "unrelated", by `probability` or, where a map has none, by
        `mean_probability`; "not rated" for maps with neither.
    probability
        That the map is right as a whole, its mean error below 5 % of the diameter; or None.
    mean_probability
        Mean over the matched points of the probability that the partner is right, or None.
    model
        The weights that made the map, or None where it came from elsewhere.
    matched
        Share of the source's points that have a partner.
    coverage
        Share of the target's points that are the partner of some source point.
    symmetry
        "ambiguous" if another map is about as plausible, as for shapes whose sides or ends cannot
        be told apart; "clear" if none was found; None where none was looked for.
    doubts
        What speaks against the map, a few words each.
    notes
        What else is odd about the shapes: outliers, meshes turned inside out.
    """

    verdict: Verdict
    probability: float | None
    mean_probability: float | None
    model: str | None
    matched: float
    coverage: float
    symmetry: Symmetry | None
    doubts: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """All of it on one line."""
        whole = "" if self.probability is None else f" ({self.probability:.2f})"
        parts = [f"{self.verdict}{whole}"]
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
    symmetry = details.get("symmetry")
    direction = details.get("direction_probability")
    if symmetry == "ambiguous":
        doubts.append("symmetry ambiguous: sides or ends cannot be told apart")
    elif "symmetry" not in details and isinstance(direction, int | float) and direction < DECIDED:
        doubts.append("front and back may be exchanged")  # a map of an earlier version
    whole = details.get("pair_probability")
    whole = float(whole) if isinstance(whole, int | float) else None
    verdict = _verdict(probability if whole is None else whole, share)
    if verdict == "unrelated":
        doubts.append("the shapes may be unrelated, or the map wrong as a whole")
    for side in ("source", "target"):
        certainty = details.get(f"{side}_certainty")
        unsure = isinstance(certainty, int | float) and certainty < CERTAIN
        if unsure and verdict != "reliable":  # a plausible map settles the direction
            doubts.append(f"the direction of the {side} is uncertain")
    if details.get("calibrated") is False:
        doubts.append("probabilities are a guess, as the weights are not calibrated")
    if share < FEW:
        doubts.append("few points are matched")
    model = details.get("model")
    return MapSummary(
        verdict=verdict,
        probability=whole,
        mean_probability=probability,
        model=None if model is None else str(model),
        matched=share,
        coverage=correspondence.coverage,
        symmetry=symmetry if symmetry in get_args(Symmetry) else None,
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


def _verdict(probability: float | None, matched: float) -> Verdict:
    if probability is None:
        return "not rated" if matched > 0 else "unrelated"
    if probability >= RELIABLE and matched >= FEW:
        return "reliable"
    return "check" if probability >= RELATED else "unrelated"
