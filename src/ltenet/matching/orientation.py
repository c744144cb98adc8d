"""Which way a body faces: its frame, found once for each shape.

The embedding reads coordinates, so it wants bodies upright and facing +z. The finder proposes a
frame; the critic corrects it and judges it beside its half turns (see `frame_networks`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.matching.frame_networks import (
    KINDS,
    POINTS,
    Critic,
    Finder,
    Proposal,
    Verdict,
    rotation_from,
)
from ltenet.method.invariants import SCALES
from ltenet.shape import normalizing_matrix

#: File of both networks beside the weights of the embedding that they belong to.
FILE = "orientation.safetensors"
#: The same in files written before there was a critic.
_OLD_POINTS, _OLD_SCALES = 512, (8, 24, 72)
#: Frames nearer to each other than this, in degrees, count as one.
_DISTINCT = 60.0
#: Length of the finder's directions at which its frame is beyond doubt, without a critic.
_UNCLEAR = 0.6
#: Corrections of the first frame, and degrees up to which a correction does not change the frame
#: in question.
_CORRECTIONS, _SMALL = 2, 45.0
#: Logit beyond which the critic's verdict needs no second look.
_CLEAR = 3.0
#: Divisor of the critic's logits: networks are too sure of themselves, and a right frame that they
#: hold to be impossible is never tried. On held-back bodies, the likelihood is best from 1.5 to 2.
_TEMPERATURE = 2.0
#: Outputs of the critic besides the kinds: whether a frame is right, and two directions.
_NOT_KINDS = 7
#: Probability of other kinds of shapes, where networks of older versions were not asked.
_OTHERS = 0.1
#: Half turns about left, up and front, and none.
_TURNS = np.stack([np.diag(d) for d in ([1.0, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1])])


class Frame(NamedTuple):
    """Where a body's own axes point.

    Attributes
    ----------
    rotation
        (3, 3) turns the shape upright: left to +x, up to +y, front to +z.
    certainty
        From 0 to 1: the probability that this frame is right; without a critic, how clearly the
        finder sees its two directions.
    kinds
        Probability of each of `KINDS`; equal shares without a critic.
    """

    rotation: FloatArray
    certainty: float
    kinds: tuple[float, ...] = (1 / len(KINDS),) * len(KINDS)


class Orienter(nn.Module):
    """Finder and critic together.

    Parameters
    ----------
    kinds
        How many of `KINDS` the critic tells apart; 0 for files written before there was a critic.
    """

    def __init__(self, *, kinds: int = len(KINDS)) -> None:
        super().__init__()
        self.points, scales = (POINTS, SCALES) if kinds else (_OLD_POINTS, _OLD_SCALES)
        self.finder = Finder(scales=scales)
        self.critic = Critic(kinds=kinds) if kinds else None

    def frame(self, points: NDArray[np.floating]) -> Frame:
        """Find the frame of a shape, given by at least four (N, 3) points."""
        return self.frames(points)[0]

    @torch.no_grad()
    def frames(self, points: NDArray[np.floating], *, given: bool = False) -> list[Frame]:
        """Rank the frames in question, the most plausible first; at least two, far apart.

        Parameters
        ----------
        points
            (N, 3), at least four.
        given
            Whether the frame that the points have is in question too.
        """
        self.eval()
        seen = torch.from_numpy(evened(points, self.points))[None]  # (1, N, 3)
        proposal = self.finder(seen)
        start = rotation_from(proposal.directions.double())  # (1, 3, 3)
        as_given = torch.eye(3).double()[None] if given else start[:0]  # (0 or 1, 3, 3)
        if self.critic is None:
            certainty = float(proposal.directions[0].norm(dim=1).min())
            return _unjudged(start[0].numpy(), as_given.numpy(), certainty)
        for _ in range(_CORRECTIONS):
            start = _corrected(self._judge(seen, proposal, start), start)
        turns = torch.from_numpy(_TURNS) @ start  # (4, 3, 3)
        rotations = torch.cat([turns[:2], as_given])  # (2 or 3, 3, 3)
        verdict = self._judge(seen, proposal, rotations)
        if not _clear(verdict.right):
            tried = torch.cat([turns[2:], _corrected(verdict, rotations)])
            verdict = _joined(verdict, self._judge(seen, proposal, tried))
            rotations = torch.cat([rotations, tried])
        kinds = _shares(verdict.kinds)  # (T, len(KINDS))
        rotations = _settled(verdict, rotations)
        return _ranked(rotations.numpy(), verdict.right.double().numpy(), kinds.double().numpy())

    def _judge(self, seen: Tensor, proposal: Proposal, rotations: Tensor) -> Verdict:
        """Judge one shape (1, N, 3) in T frames (T, 3, 3), one after another: graphs are shared."""
        assert self.critic is not None
        turned = seen @ rotations.to(seen).transpose(1, 2)  # (T, N, 3)
        return _joined(
            *(self.critic(one[None], proposal.details, proposal.graphs) for one in turned)
        )

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the networks into the folder of the weights that they belong to."""
        state = {name: value.contiguous() for name, value in self.state_dict().items()}
        with atomic_path(Path(folder) / FILE, force=force) as path:
            save_file(state, path, metadata={"format": "pt"})

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Orienter | None:
        """Load the networks from a folder of weights; None if these have none."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        try:
            with safe_open(path, "pt") as file:
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            judged = state.get("critic.verdict.bias")
            network = cls(kinds=0 if judged is None else len(judged) - _NOT_KINDS)
            network.load_state_dict(_named(state, network.state_dict()))
        except (SafetensorError, OSError, RuntimeError, KeyError) as error:
            raise InputError(
                f"{path}: got an unreadable orientation network ({error}), expected a complete "
                "file of this version; try copying the folder again"
            ) from None
        return network.eval()


def evened(points: NDArray[np.floating], count: int = POINTS) -> NDArray[np.float32]:
    """Choose what the networks see of (N, 3) points: `count` of them, spread evenly, normalised."""
    if len(points) < count:
        points = np.resize(points, (count, 3))  # small shapes are repeated
    middle = points.mean(axis=0)  # (3,)
    start = int(np.square(points - middle).sum(axis=1).argmax())  # in any order of the points
    chosen = points[farthest_point_sample(points, count, start=start)]  # (count, 3)
    matrix = normalizing_matrix(chosen)  # (4, 4)
    seen: NDArray[np.float32] = (chosen @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32)
    return seen


def _joined(*verdicts: Verdict) -> Verdict:
    return Verdict(*(torch.cat(parts) for parts in zip(*verdicts, strict=True)))


def _corrected(verdict: Verdict, rotations: Tensor) -> Tensor:
    """(T, 3, 3) rotations after the corrections of the critic."""
    return rotation_from(verdict.directions.double()) @ rotations


def _settled(verdict: Verdict, rotations: Tensor) -> Tensor:
    """Apply small corrections; large ones would take a wrong frame to the right one."""
    corrected = _corrected(verdict, rotations)  # (T, 3, 3)
    traces = torch.einsum("tij,tij->t", corrected, rotations)  # (T,)
    small = traces > 1 + 2 * math.cos(math.radians(_SMALL))  # (T,)
    return torch.where(small[:, None, None], corrected, rotations)


def _shares(logits: Tensor) -> Tensor:
    """(T, len(KINDS)) probabilities of the kinds from (T, kinds) logits."""
    shares = logits.softmax(dim=1)
    missing = len(KINDS) - shares.shape[1]
    if not missing:
        return shares
    others = torch.full_like(shares[:, :missing], _OTHERS / missing)  # (T, missing)
    return torch.cat([(1 - _OTHERS) * shares, others], dim=1)


def _clear(logits: Tensor) -> bool:
    """Whether the first of (T,) frames is right beyond doubt, and its half turn is not."""
    return bool(logits[0] > _CLEAR and logits[1] < -_CLEAR)


def _unjudged(start: FloatArray, given: FloatArray, clarity: float) -> list[Frame]:
    """Frames without a critic: that of the finder, (0 or 1, 3, 3) as given, and a half turn.

    The half turn is in question where the finder does not see its directions clearly.
    """
    sure = min(max(clarity / _UNCLEAR, 0.5), 0.99)
    return [
        Frame(start, sure),
        *(Frame(one, sure) for one in given),
        Frame(_TURNS[1] @ start, 1 - sure),
    ]


def _ranked(rotations: FloatArray, logits: FloatArray, kinds: FloatArray) -> list[Frame]:
    """Keep the better of frames that are near each other; share out certainty among the rest."""
    kept: list[int] = []
    for number in np.argsort(-logits, kind="stable"):
        cosines = (np.einsum("kij,ij->k", rotations[kept], rotations[number]) - 1) / 2  # (k,)
        if (cosines < np.cos(np.radians(_DISTINCT))).all():
            kept.append(int(number))
    logits = logits[kept] / _TEMPERATURE  # (k,)
    weights = np.exp(logits - logits.max())  # (k,)
    shares = weights / weights.sum() / (1 + np.exp(-logits.max()))  # (k,)
    return [
        Frame(rotations[number], float(share), tuple(kinds[number].tolist()))
        for number, share in zip(kept, shares, strict=True)
    ]


def _named(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give tensors their present names and types; old files hold a finder alone."""
    prefix = "" if any(name.startswith("finder.") for name in state) else "finder."
    return {prefix + name: value.to(expected[prefix + name]) for name, value in state.items()}
