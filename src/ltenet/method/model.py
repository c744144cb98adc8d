"""LTENet: the network with its configuration, on tensors, and as a folder of files.

A folder holds `config.json`, `model.safetensors` and usually a model card `README.md`, as public
model hubs lay it out. Weights in the package are known by a short name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ltenet.configuration import from_dict, to_dict
from ltenet.errors import InputError, MissingError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.io.formats.documents import read_json
from ltenet.method.divergence import DivergenceConfig
from ltenet.method.encoder import DGCNN, EncoderConfig
from ltenet.method.encoders import make_encoder
from ltenet.method.matchability import Matchability
from ltenet.method.saved import WEIGHTS, check_sizes, read_into, write_network
from ltenet.method.spectral import SpectralNet
from ltenet.method.transforms import TransformConfig
from ltenet.shape import Shape, normalizing_matrix

#: Raised when a change makes older config.json files mean something else.
FORMAT = 1

#: Largest config.json, in bytes.
_CONFIG_LIMIT = 2**20

#: Far beyond any use; a damaged configuration must not take all memory.
_MOST_BLOCKS = 64


@dataclass(frozen=True)
class ModelConfig:
    """Everything that belongs to the weights; the defaults are the paper's.

    Attributes
    ----------
    encoder
        The network.
    radius
        Root-mean-square radius that shapes are scaled to before they are embedded; None keeps
        their unit, as the paper does. The bandwidth in `divergence` belongs to this scale.
    center
        Whether shapes are moved so that the mean of their points is the origin. DPC's loader
        takes coordinates as they stand in the file: False.
    frame
        What the coordinates of a shape refer to: its "own" frame, that of its file or of its class,
        which each shape has by itself; or one that is "common" to both shapes of a pair, whichever
        that is.
    transform
        How neighbours and weights are found.
    divergence
        How rebuilt shapes are compared with real ones.
    matchability
        Blocks in which the points of two shapes read each other, to tell which have a partner, see
        `matchability`; the paper has none.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    radius: float | None = None
    center: bool = True
    frame: Literal["own", "common"] = "own"
    transform: TransformConfig = field(default_factory=TransformConfig)
    divergence: DivergenceConfig = field(default_factory=DivergenceConfig)
    matchability: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.matchability <= _MOST_BLOCKS:
            raise InputError(
                f"model: got {self.matchability} blocks of matchability, expected 0 to "
                f"{_MOST_BLOCKS}; try leaving them out"
            )


class LTENet(nn.Module):
    """The embedding network: tensors in, tensors out.

    Use `embed` for whole shapes with their normalisation, and the module itself, on normalised
    batches, for training.
    """

    def __init__(self, config: ModelConfig | None = None) -> None:
        super().__init__()
        self.config = config or ModelConfig()
        self.encoder = make_encoder(self.config.encoder)
        blocks, dimension = self.config.matchability, self.config.encoder.dimension
        # After the encoder, which begins with the same weights with it and without.
        self.matchability = Matchability(dimension, blocks) if blocks else None

    def forward(
        self,
        sources: Sequence[Tensor],
        targets: Sequence[Tensor],
        *,
        joint: bool = True,
        along: tuple[Sequence[Tensor | None], Sequence[Tensor | None]] | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Embed B normalised pairs: (N_b, 3) and (M_b, 3) each -> (N_b, D) and (M_b, D) each.

        Parameters
        ----------
        joint
            Both shapes go through the network in one pass and share the batch statistics. False
            makes two passes with statistics of their own, as DPC does.
        along
            (N_b, L) and (M_b, L) coordinates along the surfaces, in the unit of the points; None
            for shapes whose surface is not known, or for all.
        """
        here, there = along or ([None] * len(sources), [None] * len(targets))
        if not joint:
            return self._embedded(sources, here), self._embedded(targets, there)
        features = self._embedded([*sources, *targets], [*here, *there])
        return features[: len(sources)], features[len(sources) :]

    def _embedded(self, shapes: Sequence[Tensor], along: Sequence[Tensor | None]) -> list[Tensor]:
        """Features (N_b, D) of each of several shapes."""
        if not isinstance(self.encoder, DGCNN):
            return list(self.encoder(shapes))
        return list(self.encoder(shapes, self.encoder.graphs_of(shapes, along)))

    @torch.no_grad()
    def embed(
        self,
        shape: Shape | Tensor | ArrayLike,
        *,
        graphs: Sequence[Any] | None = None,
    ) -> Tensor:
        """Features (N, D) of a shape given as `Shape` or (N, 3) coordinates, normalised first.

        Of a mesh, `Matcher` also uses the surface: it passes the graphs.

        Parameters
        ----------
        shape
            What is embedded.
        graphs
            What `graphs_of` made of it, if known; turning the shape leaves them as they are.
        """
        training = self.training
        try:
            points = self._normalized(shape)  # (N, 3)
            if graphs is None:
                graphs = self.graphs_of(shape)
            return self.eval().encoder(points[None], graphs)[0]  # type: ignore[no-any-return]
        finally:
            self.train(training)

    @torch.no_grad()
    def embed_placed(
        self, points: Tensor, *, at_once: int, along: FloatArray | None = None
    ) -> Tensor:
        """Features (N, D) of (N, 3) points that are where they belong on a normalised shape.

        For parts of shapes. Most of what the network looks at is nearby, so a part has nearly the
        features of the whole if its points have the same coordinates and the same spacing.

        Parameters
        ----------
        points
            What is embedded, as it is.
        at_once
            How many points go through the network together, about: this sets their spacing.
        along
            (N, L) coordinates along the surface, in the unit of the points, if it is known.
        """
        training, parameter = self.training, next(self.parameters())
        features = parameter.new_empty(len(points), self.config.encoder.dimension)  # (N, D)
        order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))  # (N,)
        try:
            for rows in order.tensor_split(max(1, round(len(points) / at_once))):
                own = points[rows].to(parameter)  # (n, 3)
                known = None if along is None else torch.as_tensor(along[rows]).to(own)  # (n, L)
                (features[rows],) = self.eval()._embedded([own], [known])
        finally:
            self.train(training)
        return features.float().cpu()

    @torch.no_grad()
    def graphs_of(
        self, shape: Shape | Tensor | ArrayLike, along: FloatArray | None = None
    ) -> Sequence[Any]:
        """Neighbours of every point of a shape, or its eigenbasis, as `embed` needs them.

        Parameters
        ----------
        shape
            What is to be embedded.
        along
            (N, L) coordinates along its surface, see `surface_coordinates`, if it is known.
        """
        if along is not None and isinstance(self.encoder, DGCNN):
            # Neighbours depend neither on place nor on unit, but single precision does.
            given = shape.points if isinstance(shape, Shape) else torch.as_tensor(shape).numpy()
            matrix = normalizing_matrix(given)  # (4, 4)
            unit, like = np.linalg.norm(matrix[0, :3]), next(self.parameters())
            points = torch.as_tensor(given @ matrix[:3, :3].T + matrix[:3, 3]).to(like)  # (N, 3)
            return self.encoder.graphs_of([points], [torch.as_tensor(unit * along).to(like)])
        points = self._normalized(shape)  # (N, 3)
        if isinstance(self.encoder, SpectralNet) and isinstance(shape, Shape):
            faces = None if shape.faces is None else torch.from_numpy(shape.faces.copy())
            return self.encoder.graphs_of(points[None], faces)
        return self.encoder.graphs_of(points[None])

    def _normalized(self, shape: Shape | Tensor | ArrayLike) -> Tensor:
        """(N, 3) points as the network sees them."""
        if not isinstance(shape, Shape):
            shape = Shape(torch.as_tensor(shape).cpu().numpy())
        parameter = next(self.parameters())
        return torch.tensor(
            shape.normalized(radius=self.config.radius, center=self.config.center).points,
            dtype=parameter.dtype,
            device=parameter.device,
        )

    def with_blocks(self, *, context: int = 0, matchability: int = 0) -> LTENet:
        """Return a network that embeds alike, with so many blocks to train further.

        Those that are there stay; new ones change nothing until they are trained.
        """
        encoder = self.config.encoder
        more = replace(encoder, context=max(context, encoder.context))
        matchability = self.config.matchability or matchability
        model = LTENet(replace(self.config, encoder=more, matchability=matchability))
        model.load_state_dict({**model.state_dict(), **self.state_dict()})
        return model.train(self.training)

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write `config.json` and `model.safetensors` into a folder.

        Nothing is overwritten without `force`, and no half-written file is ever left behind.
        """
        settings = {"format": FORMAT, "model": to_dict(self.config)}
        write_network(self, settings, folder, force=force)

    @classmethod
    def from_pretrained(cls, name: str | Path, *, device: str | torch.device = "cpu") -> LTENet:
        """Load weights by the name under which the package ships them, or from a folder.

        The configuration comes with the weights. Every tensor must be there, and no other.
        """
        folder = find_weights(name)
        config = _read_config(folder / "config.json")
        # Sizes are compared before memory is taken: a configuration may ask for any amount.
        with torch.device("meta"):
            expected = cls(config).state_dict()
        path = folder / WEIGHTS
        check_sizes(path, expected)
        model = cls(config)
        read_into(model, path, expected)
        return model.to(device).eval()


def available_weights() -> tuple[str, ...]:
    """Names of the weights that the package ships."""
    root = resources.files("ltenet") / "weights"
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in root.iterdir() if entry.is_dir()))


def find_weights(name: str | Path) -> Path:
    """Folder of weights given by name or path."""
    shipped = available_weights()
    if str(name) in shipped:
        return Path(str(resources.files("ltenet") / "weights" / str(name)))
    folder = Path(name)
    for file in ("config.json", "model.safetensors"):
        if not (folder / file).is_file():
            raise MissingError(
                f"{name}: got no {file} there, expected a folder with config.json and "
                "model.safetensors, or the name of shipped weights; try one of "
                f"{', '.join(shipped) or 'none in this version'}"
            )
    missing = [file for file in _noted_files(folder) if not (folder / file).is_file()]
    if missing:
        raise InputError(
            f"{name}: got weights without {', '.join(missing)}, expected all files that their "
            "config.json lists; try to copy the whole folder again"
        )
    return folder


def note_files(folder: Path) -> None:
    """Note in `config.json` which files belong to the weights: a part of them is then refused."""
    path = folder / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["files"] = sorted(file.name for file in folder.iterdir() if file.is_file())
    with atomic_path(path, force=True) as temporary:
        temporary.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _noted_files(folder: Path) -> list[str]:
    """Read what `note_files` wrote; nothing where nobody noted anything that can be read."""
    try:
        settings = read_json(folder / "config.json", limit=_CONFIG_LIMIT)
    except InputError:
        return []
    files = settings.get("files", []) if isinstance(settings, dict) else []
    return [Path(str(file)).name for file in files] if isinstance(files, list) else []


def _read_config(path: Path) -> ModelConfig:
    settings: Any = read_json(path, limit=_CONFIG_LIMIT)
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        found = settings.get("format") if isinstance(settings, dict) else type(settings).__name__
        raise InputError(
            f"{path}: got format {str(found)[:40]!r}, expected {FORMAT}; "
            "try the version of ltenet that wrote the folder"
        )
    if "system" in settings:
        system = str(settings["system"])[:40]
        raise InputError(
            f"{path}: got weights of '{system}', expected those of LTENet; try --method {system}"
        )
    return from_dict(ModelConfig, settings.get("model", {}), where=f"{path}: model")
