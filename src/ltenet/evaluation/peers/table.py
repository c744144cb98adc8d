"""Every matching method by name, ours first, under one signature.

`PEERS` says where the code of a method is; nothing is imported before a method is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol

from ltenet.correspondence import Correspondence
from ltenet.errors import UsageError
from ltenet.shape import Shape


class PairMatcher(Protocol):
    """Matches two shapes; every source point gets a partner."""

    def __call__(self, source: Shape, target: Shape) -> Correspondence:
        """Map source to target."""


class Peer(NamedTuple):
    """One method.

    Attributes
    ----------
    place
        "module:Class". The class takes the options as keywords; its instances are `PairMatcher`.
    summary
        What it does, in a few words.
    takes
        Which options of a benchmark it has: some of "model", "orient", "refine" and "seed".
    fixed
        Options that the name of the method implies.
    learning
        Of methods that are trained: "supervised" by known correspondences, or "unsupervised".
    post
        What refines the map afterwards, empty for nothing.
    system
        Of methods that are trained: name of the preset that trains their weights.
    mesh
        Whether it looks at the surface, and uses faces where there are some.
    """

    place: str
    summary: str
    takes: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = {}
    learning: Literal["supervised", "unsupervised"] | None = None
    post: str = ""
    system: str | None = None
    mesh: bool = False

    @property
    def module(self) -> str:
        """Module that holds the code."""
        return self.place.partition(":")[0]


_ROOM = "ltenet.evaluation.peers"
_LEARNED = "ltenet.evaluation.peers.learned"
_DENSITIES = {"kc": "kernel correlation", "l2": "L2 distance (GMMReg)", "cs": "Cauchy-Schwarz"}
_DEFORMATIONS = {"rigid": "rigid", "affine": "affine", "tps": "thin-plate"}

_POST = {"steps": "search for codes", "zoomout": "ZoomOut", "pmf": "product manifold filter"}


def _learned(
    place: str,
    learning: Literal["supervised", "unsupervised"],
    names: Mapping[str, str],
    fixed: Mapping[str, Mapping[str, Any]] = {},
) -> dict[str, Peer]:
    """Entries of one trained network: plain, first, and with post-processing."""
    entries: dict[str, Peer] = {}
    system = next(iter(names))
    for name, summary in names.items():
        own = fixed.get(name, {})
        post = next((_POST[word] for word in (*own, *own.values()) if word in _POST), "")
        entries[name] = Peer(
            f"{_LEARNED}.{place}",
            summary,
            ("model",),
            fixed=own,
            learning=learning,
            post=post,
            system=system,
            mesh=place.startswith(("geofmnet", "shot_networks")),
        )
    return entries


#: Methods by name.
PEERS: dict[str, Peer] = {
    "ltenet": Peer(
        f"{_ROOM}.pipeline:Pipeline",
        "the whole pipeline: orientation, embedding, refinement",
        takes=("model", "orient", "refine", "seed"),
    ),
    "embedding": Peer(
        f"{_ROOM}.embedding:NearestFeature",
        "nearest feature, the paper's test phase",
        takes=("model",),
    ),
    "nearest": Peer(f"{_ROOM}.coordinates:NearestPoint", "nearest point after centring"),
    "icp": Peer(f"{_ROOM}.coordinates:ICP", "iterative closest point, rigid"),
    "cpd": Peer(f"{_ROOM}.coordinates:CPD", "coherent point drift, non-rigid (pycpd)"),
    "transport": Peer(f"{_ROOM}.coordinates:Transport", "optimal transport of coordinates (POT)"),
    "fmaps": Peer(
        f"{_ROOM}.functional_maps:FunctionalMaps",
        "functional maps, WKS and ZoomOut (pyfmaps)",
        post="ZoomOut",
        mesh=True,
    ),
    **{
        kind: Peer(
            f"{_ROOM}.descriptors:NearestDescriptor",
            f"nearest {long}",
            fixed={"kind": kind},
            mesh=True,
        )
        for kind, long in (
            ("hks", "heat kernel signature"),
            ("wks", "wave kernel signature"),
            ("gps", "global point signature"),
        )
    },
    **{
        f"density-{density}-{deformation}": Peer(
            f"{_ROOM}.registration:DensityRegistration",
            f"{long}, {kind} motion",
            fixed={"density": density, "deformation": deformation},
        )
        for density, long in _DENSITIES.items()
        for deformation, kind in _DEFORMATIONS.items()
    },
    **{
        kind: Peer(f"{_ROOM}.local_descriptors:LocalDescriptor", long, fixed={"kind": kind})
        for kind, long in (
            ("shape-context", "most similar shape context, upright shapes"),
            ("spin-image", "most similar spin image"),
            ("fpfh", "nearest fast point feature histogram"),
            ("shot", "nearest SHOT"),
            ("multiscale", "nearest surface variation at many scales"),
            ("geodesic-histogram", "nearest histogram of geodesic distances"),
        )
    },
    "rpm": Peer(
        f"{_ROOM}.softassign:SoftAssign",
        "robust point matching: softassign, affine",
        fixed={"deformation": "affine"},
    ),
    "tps-rpm": Peer(
        f"{_ROOM}.softassign:SoftAssign",
        "robust point matching: softassign, thin plates",
        fixed={"deformation": "tps"},
    ),
    "rpm-l2e": Peer(f"{_ROOM}.rpm_l2e:RPML2E", "shape contexts and robust displacements"),
    **{
        f"chamfer-{deformation}": Peer(
            f"{_ROOM}.nearest_registration:NearestRegistration",
            f"Chamfer matching, {kind} motion",
            fixed={"kernel": "chamfer", "deformation": deformation},
        )
        for deformation, kind in _DEFORMATIONS.items()
    },
    "lm-icp": Peer(
        f"{_ROOM}.nearest_registration:NearestRegistration",
        "LM-ICP: nearest points under a Huber kernel, rigid",
        fixed={"kernel": "huber", "deformation": "rigid"},
    ),
    "nonrigid-icp": Peer(f"{_ROOM}.nonrigid_icp:NonRigidICP", "non-rigid ICP, local affine maps"),
    **{
        kind: Peer(f"{_ROOM}.spectral_matching:SpectralMatching", long, fixed={"kind": kind})
        for kind, long in (
            ("umeyama", "eigenvectors of the proximity, one to one (Umeyama)"),
            ("modal", "eigenvectors of the proximity, Gaussians of their differences"),
            ("laplacian-em", "Laplacian eigenfunctions aligned by EM"),
        )
    },
    "gromov-wasserstein": Peer(
        f"{_ROOM}.gromov_wasserstein:GromovWasserstein",
        "fused Gromov-Wasserstein, geodesics and WKS (POT)",
    ),
    "fmaps-sinkhorn": Peer(
        f"{_ROOM}.functional_maps:FunctionalMaps",
        "functional maps read off by fast Sinkhorn filters",
        fixed={"readoff": "sinkhorn"},
        post="ZoomOut",
        mesh=True,
    ),
    "fmaps-oriented": Peer(
        f"{_ROOM}.functional_maps:FunctionalMaps",
        "functional maps that keep orientation, meshes only (pyfmaps)",
        fixed={"orientation": 1.0},
        post="ZoomOut",
        mesh=True,
    ),
    **_learned("corrnet3d:CorrNet3DPeer", "unsupervised", {"corrnet3d": "CorrNet3D"}),
    **_learned(
        "template_networks:TemplatePeer",
        "supervised",
        {"3d-coded": "3D-CODED", "3d-coded-search": "3D-CODED, codes searched for"},
        {"3d-coded-search": {"steps": 200}},
    ),
    **_learned(
        "template_networks:ElementaryPeer",
        "supervised",
        {
            "elementary": "Elementary Structures, learned template",
            "elementary-search": "Elementary Structures, codes searched for",
        },
        {"elementary-search": {"steps": 200}},
    ),
    **_learned("diff_fmaps:DiffFMapsPeer", "supervised", {"diff-fmaps": "Diff-FMaps"}),
    **_learned(
        "diff_fmaps:UniversalPeer",
        "supervised",
        {"diff-fmaps-universal": "Diff-FMaps, universal embedding"},
    ),
    **_learned(
        "geofmnet:GeoFMNetPeer",
        "supervised",
        {"geofmnet": "GeoFMNet, DiffusionNet features", "geofmnet-zoomout": "the same, ZoomOut"},
        {"geofmnet-zoomout": {"refine": "zoomout"}},
    ),
    **_learned(
        "shot_networks:SurfmNetPeer",
        "unsupervised",
        {"surfmnet": "SURFMNet, SHOT", "surfmnet-zoomout": "the same, ZoomOut"},
        {"surfmnet-zoomout": {"refine": "zoomout"}},
    ),
    **_learned(
        "shot_networks:FMNetPeer",
        "supervised",
        {"fmnet": "FMNet, SHOT", "fmnet-pmf": "the same, product manifold filter"},
        {"fmnet-pmf": {"refine": "pmf"}},
    ),
    **_learned(
        "shot_networks:UnsupervisedFMNetPeer",
        "unsupervised",
        {
            "fmnet-unsupervised": "unsupervised FMNet, SHOT",
            "fmnet-unsupervised-pmf": "the same, product manifold filter",
        },
        {"fmnet-unsupervised-pmf": {"refine": "pmf"}},
    ),
    **_learned("pointnet_features:PointNetPeer", "supervised", {"pointnet": "PointNet features"}),
}


def find_peer(name: str) -> Peer:
    """Look a method up by name."""
    if name not in PEERS:
        raise UsageError(
            f"got the method '{name}', expected one of {', '.join(PEERS)}; try another spelling"
        )
    return PEERS[name]


def make_peer(name: str, options: Mapping[str, Any] | None = None) -> PairMatcher:
    """Make a method by its name in `PEERS`, with its own options."""
    peer = find_peer(name)
    given = dict(options or {})
    module, _, kind = peer.place.partition(":")
    try:
        made: PairMatcher = getattr(import_module(module), kind)(**peer.fixed, **given)
    except TypeError as error:
        raise UsageError(
            f"{name}: got the options {given} ({error}), expected options of that method; "
            "try leaving them out"
        ) from error
    return made
