"""What to benchmark, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ltenet.data.augmentation import Rotate
from ltenet.data.pairs import SampledBy, Sampling
from ltenet.data.parts import PartKind
from ltenet.errors import UsageError
from ltenet.evaluation.bench.benchmarks import protocol_of
from ltenet.evaluation.peers.table import find_peer


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """Which benchmark, which method, and how.

    Attributes
    ----------
    benchmark
        See `open_benchmark`.
    data
        Folder of the public sets.
    method
        A name in `PEERS`.
    model, orient, refine
        For methods that have such options; None for the method's own.
    options
        Further options of the method.
    sampling, by, points
        How shapes are drawn, see `benchmark_pair`.
    pairs
        A random part of this many pairs, the same for every method; None for all.
    seeds
        Sampling seeds.
    noise, rotate
        What happens to the drawn shapes, see `benchmark_pair`.
    cycle
        Match backwards too, for the cycle error; this takes as long again.
    strict
        Count distances below a tolerance only, as the paper's equation, not those equal to it.
    geodesic
        At how many points of a pair the error along the surface is measured; 0 for none.
    partial
        Which part of the source is left, see `draw_part`; None for whole shapes.
    both
        Whether the target is a part too.
    """

    benchmark: str
    data: Path | None = None
    method: str = "ltenet"
    model: str | None = None
    orient: str | None = None
    refine: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    sampling: Sampling = "shared"
    by: SampledBy = "vertex"
    points: int = 1024
    pairs: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    noise: float = 0.0
    rotate: Rotate = "none"
    cycle: bool = True
    strict: bool = False
    geodesic: int = 0
    partial: PartKind | None = None
    both: bool = False

    def __post_init__(self) -> None:
        peer = find_peer(self.method)
        for name in ("model", "orient", "refine"):
            if getattr(self, name) is not None and name not in peer.takes:
                raise UsageError(
                    f"got {name} '{getattr(self, name)}' for the method '{self.method}', expected "
                    "an option that it has; try leaving it out"
                )
        if not self.seeds or min(self.seeds) < 0 or len(set(self.seeds)) != len(self.seeds):
            raise UsageError(
                f"got the seeds {self.seeds}, expected different numbers from 0; try 0,1,2"
            )
        if self.pairs is not None and self.pairs < 1:
            raise UsageError(
                f"got {self.pairs} pairs, expected at least 1; try leaving it out for all"
            )
        if protocol_of(self.benchmark) != "samples" and self.sampling != "full":
            raise UsageError(
                f"got {self.sampling} samples for {self.benchmark}, expected whole meshes, which "
                "it is tested on; try --sampling full"
            )
        if self.partial is not None:
            _check_partial(self)
        elif self.both:
            raise UsageError(
                "got both shapes to be parts without the kind of part, expected one of "
                f"{', '.join(get_args(PartKind))}; try --partial cut --both"
            )


def _check_partial(config: BenchConfig) -> None:
    if config.partial not in get_args(PartKind):
        raise UsageError(
            f"got parts of kind {config.partial!r}, expected one of "
            f"{', '.join(get_args(PartKind))}; try --partial cut"
        )
    if protocol_of(config.benchmark) != "samples":
        raise UsageError(
            f"got {config.benchmark} and parts of its shapes, expected a set that points are drawn "
            "from; try faust, shrec19, tosca or generated"
        )
    if config.sampling == "shared" or config.by == "area" or config.cycle:
        raise UsageError(
            f"got parts with {config.sampling} samples by {config.by}"
            f"{' and the cycle error' if config.cycle else ''}, expected independent samples by "
            "vertex, or whole meshes, without the cycle error; try --sampling independent "
            "--no-cycle"
        )
