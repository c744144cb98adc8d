"""The result of matching: partners, probabilities and soft partners; inverse, composition, use."""

from ltenet.correspondence.algebra import UNMATCHED
from ltenet.correspondence.result import Correspondence

__all__ = ["UNMATCHED", "Correspondence"]
