"""What stands out in a collection: other units, directions or kinds, and duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ltenet.collections.records import ShapeRecord

#: A shape this many times larger or smaller than the median probably has another unit.
_OTHER_UNIT = 5.0
#: Degrees between the axes of the file and those of the body beyond which a shape is turned.
_TURNED = 45.0
#: Words for what the orientation networks tell apart.
_KINDS = {"human": "a person", "animal": "an animal", "any": "neither person nor animal"}
#: Fewer shapes than this say little about a population.
_FEW = 4


def with_notes(records: Sequence[ShapeRecord], contents: Sequence[str]) -> list[ShapeRecord]:
    """Add a note to each shape that differs from the others.

    Parameters
    ----------
    records
        All shapes of a collection.
    contents
        A hash of each shape's content, empty if unknown.
    """
    ready = [record for record in records if record.state == "ready"]
    radii = [record.radius for record in ready if record.radius is not None]
    median = float(np.median(radii)) if radii else 0.0
    kinds = Counter(record.kind for record in ready if record.kind)
    usual = kinds.most_common(1)[0][0] if kinds else ""
    upright = [record.turned is not None and record.turned <= _TURNED for record in ready]
    mostly_upright = 2 * sum(upright) > len(upright)
    first: dict[str, str] = {}
    noted = []
    for record, content in zip(records, contents, strict=True):
        notes = []
        if content and content in first:
            notes.append(f"the same as {first[content]}")
        elif content:
            first[content] = record.name
        if record.radius and median:
            ratio = record.radius / median
            if not 1 / _OTHER_UNIT <= ratio <= _OTHER_UNIT:
                notes.append(f"{ratio:.3g} times the median size: another unit?")
        if record.kind and record.kind != usual:
            notes.append(f"looks like {_word(record.kind)}, most others like {_word(usual)}")
        if mostly_upright and record.turned is not None and record.turned > _TURNED:
            notes.append(f"turned by {record.turned:.0f} degrees, unlike most others")
        if record.state == "ready" and len(ready) < _FEW:
            notes.append(f"one of only {len(ready)} shapes")
        noted.append(record._replace(note="; ".join(notes)))
    return noted


def _word(kind: str) -> str:
    return _KINDS.get(kind, kind)
