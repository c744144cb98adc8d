"""Train the network that finds the frame of a body, on generated shapes, into a folder of weights.

    python -m tools.train_orientation human runs/orientation-human

The goal is known for every generated shape: the rotation that brings its trunk nearest to the
template at rest. Shapes come in that frame, so up is +y and front is +z; no shape needs to be
turned for training, because the network sees nothing that a rotation changes. The folder keeps a
checkpoint; the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
from itertools import count
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ltenet.data.augmentation import Augmentation
from ltenet.data.loading import load_batches
from ltenet.data.training_pairs import PairConfig, TrainingPairs
from ltenet.files import atomic_path
from ltenet.orientation import Orienter, evened, rotation_from

GOAL = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # up and front
RATE, WARMUP, DECAY, CLIP, PAIRS = 2e-3, 50, 1e-4, 1.0, 8
CHECK_EVERY, CHECK_PAIRS = 200, 100


def shape_pairs(what: str, split: str) -> TrainingPairs:
    """Shapes as scans are: uneven, noisy, and sometimes with a part missing."""
    detail = {"human": 1.0, "animal": 4.0}[what]  # as uneven as real meshes
    augmentation = Augmentation(noise=0.003, density=3.0, detail=detail, crop=0.35, crop_chance=0.2)
    config = PairConfig(
        what=what,  # type: ignore[arg-type]
        points=(640, 1024),
        frame="body",
        augmentation=augmentation,
    )
    return TrainingPairs(config, 3, split)  # type: ignore[arg-type]


class Shapes:
    """Both shapes of each pair, as the network sees them."""

    def __init__(self, what: str, split: str) -> None:
        self.pairs = shape_pairs(what, split)

    def draw(self, index: int) -> Tensor:
        """Make shapes 2 index and 2 index + 1: (2, POINTS, 3)."""
        pair = self.pairs.draw(index)
        return torch.from_numpy(np.stack([evened(pair.source), evened(pair.target)]))


@torch.no_grad()
def angles(network: Orienter, shapes: Tensor) -> Tensor:
    """(B,) degrees between the frame that was found and the true one."""
    network.eval()
    rotations = torch.cat([rotation_from(network(part)) for part in shapes.split(20)])
    network.train()
    traces = rotations.diagonal(dim1=1, dim2=2).sum(dim=1)  # (B,)
    return torch.rad2deg(torch.arccos(((traces - 1) / 2).clamp(-1, 1)))


def main() -> None:
    """Train, check now and then, and write the network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("human", "animal"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    options.folder.mkdir(parents=True, exist_ok=True)
    network = Orienter()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    checkpoint = options.folder / "last.ckpt"
    done = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
    held_back = Shapes(options.what, "validation")
    checks = torch.cat([held_back.draw(index) for index in range(CHECK_PAIRS)])  # (2 C, P, 3)
    batches = load_batches(
        Shapes(options.what, "train"), batch_size=PAIRS, start=done, stop=options.steps, workers=1
    )
    losses = []
    for step, batch in zip(count(done + 1), batches, strict=False):
        progress = step / options.steps
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, step / WARMUP) * 0.5 * (1 + math.cos(math.pi * progress))
        loss = (network(torch.cat(batch)) - GOAL).norm(dim=2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
        if step % CHECK_EVERY == 0 or step == options.steps:
            found = angles(network, checks)
            near, far = (found < 30).float().mean(), (found > 90).float().mean()
            print(
                f"step {step}  loss {np.mean(losses[-CHECK_EVERY:]):.3f}  median angle "
                f"{found.median():.1f}  within 30 degrees {near:.3f}  beyond 90 {far:.3f}",
                flush=True,
            )
            with atomic_path(checkpoint, force=True) as path:
                state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**state, "step": step}, path)
            network.save_pretrained(options.folder, force=True)


if __name__ == "__main__":
    main()
