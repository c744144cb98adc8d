"""3D-CODED [Groueix et al. 2018] and Elementary Structures [Deprelle et al. 2019].

A PointNet turns a shape into a code, and a decoder moves every point of a template to its place on
that shape. Two shapes are matched through the template: a source point is next to some rebuilt
template point, whose partner on the rebuilt target is next to a target point. Elementary Structures
also learns the template: a small network, shared by all shapes, displaces its points first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ltenet.bodies.body_pairs import own_generator
from ltenet.configuration import from_dict
from ltenet.correspondence import Correspondence
from ltenet.data.pair_config import GENERATORS
from ltenet.errors import InputError, UsageError
from ltenet.evaluation.peers.landing import landed
from ltenet.evaluation.peers.learned.code_decoder import CodeDecoder
from ltenet.evaluation.peers.learned.learner import LearnedPeer, Learner, Normalization
from ltenet.evaluation.peers.learned.pointnet import hidden_layers, pooled
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.method.divergence import chamfer
from ltenet.refinement.zoomout import euclidean_topk
from ltenet.shape import Shape
from ltenet.training.config import TrainingConfig
from ltenet.training.pair_tensors import PairTensors, both_shapes

Own = TypeVar("Own", bound="TemplateNetwork")
#: Rate of the search for a better code.
_SEARCH_RATE = 1e-3


@dataclass(frozen=True)
class TemplateConfig:
    """Sizes of the network; the defaults are the published ones, but for fewer template points.

    Attributes
    ----------
    trunk
        Layers of every point before the maximum.
    code
        Layers of the maximum; the last is the code.
    decoder
        Hidden channels of the decoder.
    deformation
        Hidden channels of the network that deforms the template, none for the template as it is.
    template_points
        Points of a template that matching goes through.
    templates
        How many templates there are; set by the training shapes.
    shift
        Training shapes are shifted by up to this much along each axis.
    """

    trunk: tuple[int, ...] = (64, 128, 1024)
    code: tuple[int, ...] = (1024, 1024)
    decoder: tuple[int, ...] = (1027, 513, 256)
    deformation: tuple[int, ...] = ()
    template_points: int = 1024
    templates: int = 1
    shift: float = 0.03

    def __post_init__(self) -> None:
        sizes = (self.template_points, self.templates)
        if not (self.trunk and self.code and self.decoder) or min(sizes) < 1 or self.shift < 0:
            raise InputError(
                f"template network: got layers {self.trunk}, {self.code}, {self.decoder}, "
                f"{self.templates} templates of {self.template_points} points and a shift of "
                f"{self.shift}, expected some of each and a shift of at least 0; try the defaults"
            )


class TemplateLoss(NamedTuple):
    """The loss of a step: mean squared difference of coordinates."""

    total: Tensor


class TemplateNetwork(Learner):
    """3D-CODED, supervised by where each point lies on the template."""

    system = "3d-coded"
    settings = TemplateConfig
    supervised = True

    def __init__(self, config: TemplateConfig) -> None:
        super().__init__(config)
        self.trunk = hidden_layers((3, *config.trunk[:-1]))
        # The last layer before the maximum has no ReLU.
        before = (3, *config.trunk)[-2]
        self.last = nn.Sequential(
            nn.Linear(before, config.trunk[-1]), nn.BatchNorm1d(config.trunk[-1])
        )
        self.code = hidden_layers((config.trunk[-1], *config.code))
        self.decoder = CodeDecoder(config.code[-1], config.decoder)
        self.deformation: nn.Module | None = None
        if config.deformation:
            hidden = hidden_layers((3, *config.deformation))
            last = nn.Linear(config.deformation[-1], 3)
            self.deformation = nn.Sequential(hidden, last, nn.Tanh())
        self.templates: Tensor
        shape = (config.templates, config.template_points, 3)
        self.register_buffer("templates", torch.zeros(shape))  # (T, P, 3)
        self.apply(_first_weights)

    @classmethod
    def from_config(cls: type[Own], config: TrainingConfig) -> Own:
        """Make the network of a run, with the templates of its generator of bodies."""
        settings = from_dict(cls.settings, config.network, where=f"{config.name}: network")
        if config.pairs.what not in GENERATORS:
            raise UsageError(
                f"got '{config.pairs.what}' for {cls.system}, expected generated shapes, which "
                "have a template; try --set pairs.what=human"
            )
        found = own_generator(GENERATORS[config.pairs.what]).templates.values()
        rests = [template.rest for template in found if template.rest is not None]
        settings = replace(settings, templates=len(rests))
        made = cls(settings)
        made.normalization = Normalization(config.model.radius, config.model.center)
        for template, rest in zip(made.templates, rests, strict=True):
            rows = farthest_point_sample(rest, settings.template_points)
            template.copy_(torch.from_numpy(np.ascontiguousarray(rest[rows])))
        return made

    def codes(self, shapes: Sequence[Tensor]) -> Tensor:
        """(B, Z) codes of B shapes of (N_b, 3) points."""
        features = self.last(self.trunk(torch.cat(list(shapes))))  # (M, C)
        found: Tensor = self.code(pooled(features, [len(points) for points in shapes]))
        return found

    def decode(self, places: Sequence[Tensor], codes: Tensor) -> list[Tensor]:
        """Move (N_b, 3) places on the template to the shapes of (B, Z) codes."""
        if self.deformation is not None:
            sizes = [len(own) for own in places]
            joined = torch.cat(list(places))  # (M, 3)
            places = list((joined + self.deformation(joined)).split(sizes))
        moved: list[Tensor] = self.decoder(places, codes)
        return moved

    def loss(self, pairs: Sequence[PairTensors], progress: float) -> TemplateLoss:
        """Decode the template positions of all shapes, and compare with their points."""
        shapes = both_shapes(pairs)
        rests = [*(pair.source_rest for pair in pairs), *(pair.target_rest for pair in pairs)]
        places = [rest for rest in rests if rest is not None]
        if len(places) < len(shapes):
            raise InputError(
                f"{self.system}: got training pairs without their places on a template, expected "
                "generated shapes; try --set pairs.what=human"
            )
        reach = self.config.shift
        shapes = [points + reach * (2 * torch.rand_like(points[:1]) - 1) for points in shapes]
        rebuilt = torch.cat(self.decode(places, self.codes(shapes)))  # (M, 3)
        return TemplateLoss((rebuilt - torch.cat(shapes)).square().mean())

    def partners(self, source: Tensor, target: Tensor) -> Tensor:
        """(N,) target point nearest to where each source point goes through the template."""
        return euclidean_topk(self.places(source, target), target, 1).indices[:, 0]

    def places(self, source: Tensor, target: Tensor, *, steps: int = 0) -> Tensor:
        """(N, 3) where each of (N, 3) source points goes on the target.

        Parameters
        ----------
        source, target
            Normalised points.
        steps
            Of the search for codes that rebuild the shapes better; 0 for the network's own.
        """
        shapes = [source, target]
        codes = self.codes(shapes)  # (2, Z)
        tries = []
        for template in self.templates:  # (P, 3)
            found = self.searched(shapes, codes, template, steps) if steps else codes
            rebuilt = self.decode([template, template], found)  # 2 x (P, 3)
            tries.append((self.misfit(rebuilt, shapes).sum(), rebuilt))
        ours, theirs = min(tries, key=lambda one: float(one[0]))[1]
        nearest = euclidean_topk(source, ours, 1).indices[:, 0]  # (N,)
        return theirs[nearest]

    def misfit(self, rebuilt: Sequence[Tensor], shapes: Sequence[Tensor]) -> Tensor:
        """(B,) Chamfer distances between rebuilt templates and shapes."""
        both = zip(rebuilt, shapes, strict=True)
        return torch.cat([chamfer(own[None], points[None]) for own, points in both])

    def searched(
        self, shapes: Sequence[Tensor], codes: Tensor, template: Tensor, steps: int
    ) -> Tensor:
        """(B, Z) codes after descending the Chamfer distance from those given."""
        with torch.enable_grad():
            found = codes.detach().clone().requires_grad_()  # (B, Z)
            optimizer = torch.optim.Adam([found], lr=_SEARCH_RATE)
            for _ in range(steps):
                rebuilt = self.decode([template] * len(shapes), found)
                loss = self.misfit(rebuilt, shapes).sum()
                (found.grad,) = torch.autograd.grad(loss, [found])
                optimizer.step()
        return found.detach()


def _first_weights(module: nn.Module) -> None:
    """Draw first weights as published: N(0, 0.02), scales of BatchNorm N(1, 0.02)."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm1d):
        nn.init.normal_(module.weight, 1.0, 0.02)


class ElementaryStructures(TemplateNetwork):
    """3D-CODED with a learned deformation of the template."""

    system = "elementary"


class TemplatePeer(LearnedPeer):
    """3D-CODED as a method.

    Parameters
    ----------
    model
        Folder of the weights.
    steps
        Of the search for better codes, for each pair; published are 3000.
    """

    network = TemplateNetwork

    def __init__(self, *, model: str | Path | None = None, steps: int = 0) -> None:
        super().__init__(model=model)
        self._steps = steps

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""
        network = self._network
        assert isinstance(network, TemplateNetwork)
        ours, theirs = network.tensor(source), network.tensor(target)  # (N, 3), (M, 3)
        with torch.no_grad():
            places = network.places(ours, theirs, steps=self._steps)  # (N, 3)
        return landed(source, target, places.double().numpy(), theirs.double().numpy())


class ElementaryPeer(TemplatePeer):
    """Elementary Structures as a method."""

    network = ElementaryStructures
