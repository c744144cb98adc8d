"""The paper's test phase: the nearest feature, for any weights, LTENet's or DPC's."""

from __future__ import annotations

from pathlib import Path

from ltenet.correspondence import Correspondence
from ltenet.method.model import LTENet
from ltenet.method.neighbors import cosine_topk
from ltenet.shape import Shape


class NearestFeature:
    """The target point whose feature is most similar by cosine; nothing before and nothing after.

    Parameters
    ----------
    model
        Weights, by name or folder; they are loaded at once.
    """

    def __init__(self, *, model: str | Path = "human") -> None:
        self._network = LTENet.from_pretrained(model)

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        best = cosine_topk(self._network.embed(source), self._network.embed(target), 1)
        return Correspondence(
            indices=best.indices[:, 0].cpu().numpy(),
            target_size=len(target),
            source=source,
            target=target,
        )
