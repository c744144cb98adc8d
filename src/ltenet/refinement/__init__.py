"""What improves a map after the fact, without labels.

`refine_pair` works on tensors: points and features of one pair. `refine` works on shapes, and on a
correspondence of any origin.
"""

from __future__ import annotations

from ltenet.refinement.correspondences import refine
from ltenet.refinement.methods import METHODS, Method, refine_pair
from ltenet.refinement.pair import EmbeddedPair, RefinedMap

__all__ = ["METHODS", "EmbeddedPair", "Method", "RefinedMap", "refine", "refine_pair"]
