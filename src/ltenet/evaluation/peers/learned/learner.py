"""What all learned systems share: settings, files, and the way from weights to a map."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor

from ltenet.configuration import from_dict, to_dict
from ltenet.correspondence import Correspondence
from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.evaluation.peers.landing import through_samples
from ltenet.evaluation.peers.table import PEERS
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.documents import read_json
from ltenet.method.model import FORMAT, find_weights
from ltenet.method.saved import CONFIG, WEIGHTS, check_sizes, read_into, write_network
from ltenet.shape import Shape
from ltenet.training.config import TrainingConfig
from ltenet.training.trainee import PointMaps, Trainee

Own = TypeVar("Own", bound="Learner")


class Normalization(NamedTuple):
    """How shapes are prepared: see `ModelConfig.radius` and `ModelConfig.center`."""

    radius: float | None = None
    center: bool = True


class Learner(Trainee):
    """The network of a learned system: its weights, its loss, and its maps.

    A derived class has `system`, its name in the table of peers, and `settings`, the dataclass of
    its network; its constructor takes an instance of that.

    Attributes
    ----------
    config
        Settings of the network.
    normalization
        What shapes go through before they are matched.
    points
        Shapes with more points are thinned to this many before they are matched.
    """

    system: ClassVar[str]
    settings: ClassVar[type[Any]]
    points: int = 2048

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.normalization = Normalization()

    @classmethod
    def from_config(cls: type[Own], config: TrainingConfig) -> Own:
        """Make the network of a training run."""
        made = cls(from_dict(cls.settings, config.network, where=f"{config.name}: network"))
        made.normalization = Normalization(config.model.radius, config.model.center)
        made.fit_to(config)
        return made

    def fit_to(self, config: TrainingConfig) -> None:
        """Take from the settings of a run what is no setting of the network, such as templates."""

    def partners(self, source: Tensor, target: Tensor) -> Tensor:
        """(N,) target point of each of (N, 3) normalised source points, given (M, 3) targets."""
        raise NotImplementedError

    @torch.no_grad()
    def maps(self, pair: TrainingPair) -> PointMaps:
        """Match the points of a training pair, both ways."""
        device = next(self.parameters()).device
        source, target = (torch.tensor(p, device=device) for p in (pair.source, pair.target))
        forth, back = self.partners(source, target), self.partners(target, source)  # (N,), (M,)
        return PointMaps(forth.cpu().numpy(), back.cpu().numpy())

    @torch.no_grad()
    def match(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target, shapes of any size."""

        def partners(first: Shape, second: Shape) -> IntArray:
            found: IntArray = self.partners(self.tensor(first), self.tensor(second)).cpu().numpy()
            return found

        return through_samples(source, target, self.points, partners)

    def tensor(self, shape: Shape) -> Tensor:
        """(N, 3) points of a shape as the network sees them."""
        parameter = next(self.parameters())
        points = shape.normalized(**self.normalization._asdict()).points
        return torch.tensor(points, dtype=parameter.dtype, device=parameter.device)

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write `config.json`, which names the system, and `model.safetensors`."""
        settings = {
            "format": FORMAT,
            "system": self.system,
            **self.normalization._asdict(),
            "network": to_dict(self.config),
        }
        write_network(self, settings, folder, force=force)

    @classmethod
    def from_pretrained(cls: type[Own], name: str | Path) -> Own:
        """Load the weights of a finished run of this system."""
        folder = find_weights(name)
        path = folder / CONFIG
        settings: Any = read_json(path)
        found = settings.get("system", "ltenet") if isinstance(settings, dict) else None
        if found != cls.system or settings.get("format") != FORMAT:
            raise InputError(
                f"{path}: got weights of '{str(found)[:40]}', expected those of '{cls.system}'; "
                f"try `ltenet train {cls.system}`, and the folder `best` of that run"
            )
        config = from_dict(cls.settings, settings.get("network", {}), where=f"{path}: network")
        with torch.device("meta"):
            expected = cls(config).state_dict()
        check_sizes(folder / WEIGHTS, expected)
        made = cls(config)
        read_into(made, folder / WEIGHTS, expected)
        made.normalization = _normalization(settings, path)
        return made.eval()


def _normalization(settings: dict[str, Any], path: Path) -> Normalization:
    """Read the normalisation from the settings of saved weights."""
    radius, center = settings.get("radius"), settings.get("center", True)
    if not (radius is None or isinstance(radius, int | float)) or not isinstance(center, bool):
        raise InputError(
            f"{path}: got radius {radius!r} and center {center!r}, expected a length or null, and "
            "true or false; try copying the folder again"
        )
    return Normalization(radius, center)


class LearnedPeer:
    """A trained network as a method among others.

    Parameters
    ----------
    model
        Folder of the weights: `best` of a finished run.
    """

    network: ClassVar[type[Learner]]

    def __init__(self, *, model: str | Path | None = None) -> None:
        system = self.network.system
        if model is None:
            raise MissingError(
                f"{system}: got no weights, expected a folder of them, as none ship; try "
                f"`ltenet train {system}`, then --model runs/{system}/best"
            )
        self._network = self.network.from_pretrained(model)

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        return self._network.match(source, target)


def find_learner(system: str) -> type[Learner]:
    """Return the network class of a system, by its name among the peers."""
    peer = PEERS.get(system)
    if peer is None or not peer.learning:
        learned = ", ".join(name for name, other in PEERS.items() if other.learning)
        raise UsageError(
            f"got the system '{system}', expected ltenet or one of {learned}; try another spelling"
        )
    kind: type[LearnedPeer] = getattr(import_module(peer.module), peer.place.partition(":")[2])
    return kind.network


def learner_of(config: TrainingConfig) -> Learner:
    """Make the network that a run trains."""
    return find_learner(config.system).from_config(config)
