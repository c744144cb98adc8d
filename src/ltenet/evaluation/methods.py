"""Every method under one signature, `method(source, target) -> Correspondence`, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ltenet.correspondence import Correspondence
from ltenet.errors import UsageError
from ltenet.shape import Shape


class Method(Protocol):
    """What matches two shapes; every source point gets a partner."""

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""


class MethodSpec(NamedTuple):
    """How a method is made.

    Attributes
    ----------
    make
        Makes it from its options.
    module
        Where its code lives, imported when it is made.
    summary
        What it does, in a few words.
    takes
        Which options of a benchmark it has: some of "model", "orient", "refine" and "seed".
    """

    make: Callable[..., Method]
    module: str
    summary: str
    takes: tuple[str, ...] = ()


def make_method(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """Make a method by its name in `METHODS`, with its own options."""
    spec = method_spec(name)
    try:
        return spec.make(**(options or {}))
    except TypeError as error:
        raise UsageError(
            f"{name}: the options {dict(options or {})} came ({error}); options of that method "
            "are needed; leave them out for its defaults"
        ) from error


def method_spec(name: str) -> MethodSpec:
    """Look a method up by name."""
    if name not in METHODS:
        raise UsageError(
            f"the method '{name}' came; one of {', '.join(METHODS)} is needed; check the spelling"
        )
    return METHODS[name]


def _pipeline(**options: Any) -> Method:
    from ltenet.matching import MatchConfig, Matcher

    # A benchmark scores every point, also those that matching would rather leave out.
    matcher = Matcher(MatchConfig(**{"threshold": 0.0, **options}))
    return matcher.match


def _embedding(**options: Any) -> Method:
    from ltenet.evaluation.embedding import NearestFeature

    return NearestFeature(**options)


def _nearest(**options: Any) -> Method:
    from ltenet.evaluation.coordinates import NearestPoint

    return NearestPoint(**options)


def _icp(**options: Any) -> Method:
    from ltenet.evaluation.coordinates import ICP

    return ICP(**options)


def _cpd(**options: Any) -> Method:
    from ltenet.evaluation.coordinates import CPD

    return CPD(**options)


def _transport(**options: Any) -> Method:
    from ltenet.evaluation.coordinates import Transport

    return Transport(**options)


def _functional_maps(**options: Any) -> Method:
    from ltenet.evaluation.functional_maps import FunctionalMaps

    return FunctionalMaps(**options)


def _descriptor(kind: Any) -> Callable[..., Method]:
    def make(**options: Any) -> Method:
        from ltenet.evaluation.descriptors import NearestDescriptor

        return NearestDescriptor(kind=kind, **options)

    return make


def _density(density: Any, deformation: Any) -> Callable[..., Method]:
    def make(**options: Any) -> Method:
        from ltenet.evaluation.registration import DensityRegistration

        return DensityRegistration(density=density, deformation=deformation, **options)

    return make


_HERE = "ltenet.evaluation"
_DENSITIES = {"kc": "kernel correlation", "l2": "L2 distance (GMMReg)", "cs": "Cauchy-Schwarz"}
_DEFORMATIONS = {"rigid": "rigid", "affine": "affine", "tps": "thin-plate"}

#: Methods by name, our own first.
METHODS: dict[str, MethodSpec] = {
    "ltenet": MethodSpec(
        _pipeline,
        "ltenet.matching",
        "the whole pipeline: orientation, embedding, refinement",
        ("model", "orient", "refine", "seed"),
    ),
    "embedding": MethodSpec(
        _embedding, f"{_HERE}.embedding", "nearest feature, the paper's test phase", ("model",)
    ),
    "nearest": MethodSpec(_nearest, f"{_HERE}.coordinates", "nearest point after centring"),
    "icp": MethodSpec(_icp, f"{_HERE}.coordinates", "iterated closest points, rigid"),
    "cpd": MethodSpec(_cpd, f"{_HERE}.coordinates", "coherent point drift, smooth (pycpd)"),
    "transport": MethodSpec(
        _transport, f"{_HERE}.coordinates", "optimal transport of coordinates (POT)"
    ),
    "fmaps": MethodSpec(
        _functional_maps, f"{_HERE}.functional_maps", "functional maps, WKS and ZoomOut (pyfmaps)"
    ),
    **{
        kind: MethodSpec(_descriptor(kind), f"{_HERE}.descriptors", f"nearest {long}")
        for kind, long in (
            ("hks", "heat kernel signature"),
            ("wks", "wave kernel signature"),
            ("gps", "global point signature"),
        )
    },
    **{
        f"density-{density}-{deformation}": MethodSpec(
            _density(density, deformation), f"{_HERE}.registration", f"{long}, {kind} motion"
        )
        for density, long in _DENSITIES.items()
        for deformation, kind in _DEFORMATIONS.items()
    },
}
