"""Train the networks that find the frame of a body, on generated people and animals.

    python -m tools.train_orientation runs/orientation --steps 6000
    python -m tools.train_orientation runs/orientation --check

The frame of every generated body is known: the rotation that brings its trunk nearest to the
template at rest. Shapes come in that frame, so up is +y and front is +z. The finder sees nothing
that a rotation changes; the critic sees each shape in one frame that is nearly right, half turned
or arbitrary. The folder keeps a checkpoint, and the same command continues from it exactly.
`--start` takes the first weights from another folder. `--check` measures on held-back bodies.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from scipy.spatial.transform import Rotation
from torch import Tensor, nn

from ltenet.data.augmentation import Augmentation
from ltenet.data.loading import load_batches
from ltenet.data.training_pairs import PairConfig, TrainingPairs
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.orientation import FILE, Orienter, evened
from ltenet.method.invariants import invariants

GOAL = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # up and front
RATE, WARMUP, DECAY, CLIP, PAIRS = 2e-3, 50, 1e-4, 1.0, 8
#: Kinds of the shapes, in turns: most have a frame to learn.
TURNS = ("human", "animal", "human", "animal", "any")
#: What generates each kind, and how uneven its meshes are.
GENERATORS = {"human": ("human", 1.0), "animal": ("animal", 4.0), "any": ("thing", 2.0)}
SAVE_EVERY, CHECK_EVERY, CHECK_PAIRS = 50, 500, 60
#: Shares of frames that are nearly right, half turned about up, half turned about another axis;
#: the rest is arbitrary. All but the arbitrary ones are off besides: one half by a few degrees,
#: which teaches the last correction, the other by up to a quarter turn, which teaches the first.
SHARES, OFF, FAR_OFF = (0.5, 0.3, 0.1), 20.0, 90.0
#: Degrees up to which a frame is right.
RIGHT = 45.0


class Example(NamedTuple):
    """Shapes as the networks see them; B of them.

    Attributes
    ----------
    points
        (B, N, 3) in their true frames.
    measures
        (B, N, C) rotation-invariant measures.
    rotations
        (B, 3, 3) from the true frame to the one that the critic is shown.
    kinds
        (B,) which of `KINDS`.
    """

    points: Tensor
    measures: Tensor
    rotations: Tensor
    kinds: Tensor


def shape_pairs(what: str, split: str) -> TrainingPairs:
    """Shapes as scans are: of any density, uneven, noisy, and sometimes with parts missing."""
    generator, detail = GENERATORS[what]  # as uneven as real meshes
    augmentation = Augmentation(
        noise=0.004,
        wobble=0.01,
        density=3.0,
        detail=detail,
        curvature=1.0,
        even_chance=0.08,
        cut_chance=0.15,
        view_chance=0.1,
        limb_chance=0.05,
        holes_chance=0.15,
    )
    config = PairConfig(
        what=generator,
        points=(640, 2048),
        frame="world" if what == "any" else "body",
        augmentation=augmentation,
    )
    return TrainingPairs(config, 3, split)  # type: ignore[arg-type]


class Shapes:
    """Both shapes of each pair; people and animals take turns."""

    def __init__(self, split: str) -> None:
        self.pairs = {what: shape_pairs(what, split) for what in KINDS}

    def draw(self, index: int) -> Example:
        """Make shapes 2 index and 2 index + 1."""
        torch.set_num_threads(1)
        what = TURNS[index % len(TURNS)]
        kind = KINDS.index(what)
        pair = self.pairs[what].draw(index)
        points = torch.from_numpy(np.stack([evened(pair.source), evened(pair.target)]))
        rng = np.random.default_rng([7, index])
        rotations = np.stack([random_frame(rng) for _ in points]).astype(np.float32)
        measures = torch.stack([invariants(shape) for shape in points])
        return Example(
            points, measures, torch.from_numpy(rotations), torch.full((len(points),), kind)
        )


def random_frame(rng: np.random.Generator) -> FloatArray:
    """(3, 3) how far the frame shown to the critic is from the true one; see `SHARES`."""
    choice = int(np.searchsorted(np.cumsum(SHARES), rng.random()))
    if choice == len(SHARES):
        return np.asarray(Rotation.random(random_state=rng).as_matrix())
    axis = rng.normal(size=3)
    most = OFF if rng.random() < 0.5 else FAR_OFF
    off = Rotation.from_rotvec(math.radians(rng.uniform(0, most)) * axis / np.linalg.norm(axis))
    sides = [1.0, 1, 1], [-1, 1, -1], [[1, -1, -1], [-1, -1, 1]][rng.integers(2)]
    return np.asarray(off.as_matrix() @ np.diag(sides[choice]))


def degrees(rotations: Tensor) -> Tensor:
    """(B,) angles of (B, 3, 3) rotations."""
    traces = rotations.diagonal(dim1=1, dim2=2).sum(dim=1)  # (B,)
    return torch.rad2deg(torch.arccos(((traces - 1) / 2).clamp(-1, 1)))


def loss_of(network: Orienter, example: Example) -> Tensor:
    """Directions of finder and critic, whether the frame is right, and the kind of body."""
    assert network.critic is not None
    proposal = network.finder(example.points, example.measures)
    shown = example.points @ example.rotations.transpose(1, 2)  # (B, N, 3)
    verdict = network.critic(shown, proposal.details, proposal.graphs)
    framed = example.kinds != KINDS.index("any")  # (B,)
    goal = GOAL @ example.rotations.transpose(1, 2)  # (B, 2, 3)
    right = (degrees(example.rotations) < RIGHT).float()  # (B,)
    found = (proposal.directions - GOAL)[framed].norm(dim=2).mean()
    corrected = (verdict.directions - goal)[framed].norm(dim=2).mean()
    judged = F.binary_cross_entropy_with_logits(verdict.right[framed], right[framed])
    told = F.cross_entropy(verdict.kinds, example.kinds)
    return found + corrected + judged + 0.3 * told


def check(network: Orienter, pairs: int) -> dict[str, object]:
    """Errors on held-back bodies turned at random, by kind and pose family."""
    figures: dict[str, object] = {}
    for kind, what in enumerate(KINDS):
        held_back = shape_pairs(what, "validation")
        angles, certainties, guesses = [], [], []
        families = defaultdict(list)
        for index in range(pairs):
            pair = held_back.draw(index)
            for side, points in enumerate((pair.source, pair.target)):
                turn = Rotation.random(random_state=2 * index + side).as_matrix()
                frame = network.frame(points @ turn.T)
                angle = float(degrees(torch.from_numpy(frame.rotation @ turn)[None])[0])
                angles.append(angle)
                certainties.append(frame.certainty)
                guesses.append(int(np.argmax(frame.kinds)) == kind)
                families[pair.families[side]].append(angle)
        right_kind = round(100 * float(np.mean(guesses)), 1)
        if what == "any":  # has no frame
            figures[what] = {"shapes": len(guesses), "kind_percent": right_kind}
            continue
        found, sure = np.array(angles), np.array(certainties)
        far = found > 90
        figures[what] = {
            "shapes": len(found),
            "median": round(float(np.median(found)), 1),
            "within_30_percent": round(100 * float((found < 30).mean()), 1),
            "beyond_90_percent": round(100 * float(far.mean()), 1),
            "sure_and_beyond_90_percent": round(100 * float((far & (sure > 0.9)).mean()), 2),
            "sure_percent": round(100 * float((sure > 0.9).mean()), 1),
            "kind_percent": right_kind,
            "beyond_90_by_family": {
                name: [round(100 * float((np.array(each) > 90).mean()), 1), len(each)]
                for name, each in sorted(families.items())
            },
        }
    return figures


def begin_with(network: Orienter, saved: dict[str, Tensor]) -> None:
    """Take weights from a file; kinds that it does not know begin at random."""
    state = network.state_dict()
    for name, value in saved.items():
        known = state[name][: len(value)] if value.dim() else state[name]
        known.copy_(value)
    network.load_state_dict(state)


def train(folder: Path, *, steps: int, start: Path | None) -> Orienter:
    """Train to `steps`, from the checkpoint of the folder if there is one."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    network = Orienter()
    if start is not None:
        begin_with(network, load_file(start / FILE))
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    checkpoint, done = folder / "last.ckpt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
    batches = load_batches(
        Shapes("train"), batch_size=PAIRS, start=done, stop=steps, workers=1, prefetch=3
    )
    losses, begin = [], time.perf_counter()
    for step, batch in zip(count(done + 1), batches, strict=False):
        for group in optimizer.param_groups:
            decay = 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
            group["lr"] = RATE * min(1.0, step / WARMUP) * decay
        loss = loss_of(network, Example(*(torch.cat(parts) for parts in zip(*batch, strict=True))))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
        if step % SAVE_EVERY == 0 or step == steps:
            pace = (time.perf_counter() - begin) / len(losses)
            print(f"step {step}  loss {np.mean(losses[-200:]):.3f}  {pace:.2f} s", flush=True)
            with atomic_path(checkpoint, force=True) as path:
                state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**state, "step": step}, path)
            network.save_pretrained(folder, force=True)
        if step % CHECK_EVERY == 0:
            print(json.dumps(check(network, CHECK_PAIRS)), flush=True)
            network.train()
    return network


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--start", type=Path, help="folder with the weights to start from")
    parser.add_argument("--check", action="store_true", help="measure only")
    parser.add_argument("--pairs", type=int, default=250, help="held-back pairs of a check")
    options = parser.parse_args()
    torch.set_num_threads(1)
    network = Orienter.from_pretrained(options.folder) if options.check else None
    if network is None:
        network = train(options.folder, steps=options.steps, start=options.start)
    print(json.dumps(check(network, options.pairs), indent=2))


if __name__ == "__main__":
    main()
