"""Train the networks that find the frame of a body, or of a piece of one, on generated shapes.

    python -m tools.train_orientation runs/orientation --steps 6000
    python -m tools.train_orientation runs/orientation --check
    python -m tools.train_orientation runs/pieces --of pieces --steps 1500 --start FOLDER

The frame of every generated body is known: the rotation that brings its trunk nearest to the
template at rest. Shapes come in that frame, so up is +y and front is +z. The finder sees nothing
that a rotation changes; the critic sees each shape in one frame that is nearly right, half turned
or arbitrary. The folder keeps a checkpoint, and the same command continues from it exactly.
`--start` takes the first weights from another folder. `--check` measures on held-back shapes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from itertools import count
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from scipy.spatial.transform import Rotation
from torch import Tensor, nn

from ltenet.data.loading import load_batches
from ltenet.files import atomic_path
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.orientation import FILE, Orienter
from tools.orientation_shapes import Bodies, Example, Examples, Source
from tools.piece_shapes import CHANCES, THING, Pieces

GOAL = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # up and front
RATE, WARMUP, DECAY, CLIP, PAIRS = 2e-3, 50, 1e-4, 1.0, 8
SAVE_EVERY, CHECK_EVERY, CHECK_PAIRS = 50, 500, 20
#: Degrees up to which a frame is right.
RIGHT = 45.0


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


def held_back(of: str) -> dict[str, Source]:
    """Give the shapes of a check, by name; those named as one of `KINDS` alone are told by kind."""
    if of == "pieces":
        return {name: Pieces("validation", name) for name in (*CHANCES, THING)}
    return {kind: Bodies("validation", kind) for kind in KINDS}


def check(network: Orienter, of: str, pairs: int) -> dict[str, object]:
    """Errors on held-back shapes turned at random, by name and pose family."""
    figures: dict[str, object] = {}
    for what, source in held_back(of).items():
        angles, certainties, guesses = [], [], []
        families = defaultdict(list)
        for index in range(pairs):
            drawn = source.draw(index)
            for side, points in enumerate(drawn.points):
                turn = Rotation.random(random_state=2 * index + side).as_matrix()
                frame = network.frame(points @ turn.T)
                angle = float(degrees(torch.from_numpy(frame.rotation @ turn)[None])[0])
                angles.append(angle)
                certainties.append(frame.certainty)
                guesses.append(int(np.argmax(frame.kinds)) == drawn.kind)
                families[drawn.names[side]].append(angle)
        right_kind = round(100 * float(np.mean(guesses)), 1)
        if KINDS[drawn.kind] == "any":  # has no frame
            figures["any"] = {"shapes": len(guesses), "kind_percent": right_kind}
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


def train(folder: Path, of: str, *, steps: int, start: Path | None) -> Orienter:
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
    shapes = Examples(Pieces("train") if of == "pieces" else Bodies("train"))
    batches = load_batches(shapes, batch_size=PAIRS, start=done, stop=steps, workers=1, prefetch=3)
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
            print(json.dumps(check(network, of, CHECK_PAIRS)), flush=True)
            network.train()
    return network


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", choices=("bodies", "pieces"), default="bodies")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--start", type=Path, help="folder with the weights to start from")
    parser.add_argument("--check", action="store_true", help="measure only")
    parser.add_argument("--pairs", type=int, default=250, help="held-back pairs of a check")
    options = parser.parse_args()
    torch.set_num_threads(1)
    network = Orienter.from_pretrained(options.folder) if options.check else None
    if network is None:
        network = train(options.folder, options.of, steps=options.steps, start=options.start)
    print(json.dumps(check(network, options.of, options.pairs), indent=2))


if __name__ == "__main__":
    main()
