"""LTENet: the network with its configuration, on tensors, and as a folder of files.

A folder holds `config.json`, `model.safetensors` and usually a model card `README.md`, as public
model hubs lay it out. Weights in the package are known by a short name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ltenet.configuration import from_dict, to_dict
from ltenet.divergence import DivergenceConfig
from ltenet.encoder import DGCNN, EncoderConfig
from ltenet.errors import InputError, MissingError
from ltenet.files import atomic_path
from ltenet.graph import NeighborGraph
from ltenet.shape import Shape
from ltenet.transforms import TransformConfig

#: Raised when a change makes older config.json files mean something else.
FORMAT = 1


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
    transform
        How neighbours and weights are found.
    divergence
        How rebuilt shapes are compared with real ones.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    radius: float | None = None
    transform: TransformConfig = field(default_factory=TransformConfig)
    divergence: DivergenceConfig = field(default_factory=DivergenceConfig)


class LTENet(nn.Module):
    """The embedding network: tensors in, tensors out.

    Use `embed` for whole shapes with their normalisation, and the module itself, on normalised
    batches, for training.
    """

    def __init__(self, config: ModelConfig | None = None) -> None:
        super().__init__()
        self.config = config or ModelConfig()
        self.encoder = DGCNN(self.config.encoder)

    def forward(
        self, source: Tensor, target: Tensor, *, joint: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Embed a batch of pairs: (B, N, 3) and (B, M, 3) -> (B, N, D) and (B, M, D).

        Parameters
        ----------
        joint
            Both shapes go through the network in one pass and share the batch statistics. False
            makes two passes with statistics of their own, as DPC does.
        """
        if joint:
            features = self.encoder([*source, *target])
            return torch.stack(features[: len(source)]), torch.stack(features[len(source) :])
        return self.encoder(source), self.encoder(target)

    @torch.no_grad()
    def embed(
        self,
        shape: Shape | Tensor | ArrayLike,
        *,
        graphs: Sequence[NeighborGraph] | None = None,
    ) -> Tensor:
        """Features (N, D) of a shape given as `Shape` or (N, 3) coordinates, normalised first.

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
            return self.eval().encoder(points[None], graphs)[0]  # type: ignore[no-any-return]
        finally:
            self.train(training)

    @torch.no_grad()
    def graphs_of(self, shape: Shape | Tensor | ArrayLike) -> list[NeighborGraph]:
        """Neighbours of every point of a shape, as `embed` needs them."""
        return self.encoder.graphs_of(self._normalized(shape)[None])

    def _normalized(self, shape: Shape | Tensor | ArrayLike) -> Tensor:
        """(N, 3) points as the network sees them."""
        if not isinstance(shape, Shape):
            shape = Shape(torch.as_tensor(shape).cpu().numpy())
        parameter = next(self.parameters())
        return torch.tensor(
            shape.normalized(radius=self.config.radius).points,
            dtype=parameter.dtype,
            device=parameter.device,
        )

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write `config.json` and `model.safetensors` into a folder.

        Nothing is overwritten without `force`, and no half-written file is ever left behind.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: value.contiguous() for name, value in self.state_dict().items()}
        with atomic_path(folder / "model.safetensors", force=force) as path:
            save_file(state, path, metadata={"format": "pt"})
        settings = {"format": FORMAT, "model": to_dict(self.config)}
        with atomic_path(folder / "config.json", force=force) as path:
            path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, name: str | Path, *, device: str | torch.device = "cpu") -> LTENet:
        """Load weights by the name under which the package ships them, or from a folder.

        The configuration comes with the weights. Every tensor must be there, and no other.
        """
        folder = find_weights(name)
        model = cls(_read_config(folder / "config.json"))
        path = folder / "model.safetensors"
        try:
            state = load_file(path)
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"{path}: the weights cannot be read ({error}); a complete safetensors file is "
                "needed; copy the folder again"
            ) from None
        expected = model.state_dict()
        problems = [
            f"{kind} {', '.join(sorted(names)[:3])}"
            for kind, names in (
                ("missing", set(expected) - set(state)),
                ("unexpected", set(state) - set(expected)),
                (
                    "of another size",
                    {k for k in set(expected) & set(state) if expected[k].shape != state[k].shape},
                ),
            )
            if names
        ]
        if problems:
            raise InputError(
                f"{path}: the weights do not fit config.json ({'; '.join(problems)}); the tensors "
                "of that configuration are needed; keep the two files of a folder together"
            )
        model.load_state_dict({key: state[key].to(expected[key].dtype) for key in expected})
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
                f"{name}: no {file} there, and no weights of that name are shipped; a folder with "
                "config.json and model.safetensors is needed, or one of the names "
                f"({', '.join(shipped) or 'none in this version'}); check the spelling"
            )
    return folder


def _read_config(path: Path) -> ModelConfig:
    try:
        settings: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: not readable as JSON ({error}); the file that save_pretrained wrote is "
            "needed; copy the folder again"
        ) from None
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        found = settings.get("format") if isinstance(settings, dict) else type(settings).__name__
        raise InputError(
            f"{path}: format {found!r} came; format {FORMAT} is needed; "
            "install the version of ltenet that wrote the folder"
        )
    return from_dict(ModelConfig, settings.get("model", {}), where=f"{path}: model")
