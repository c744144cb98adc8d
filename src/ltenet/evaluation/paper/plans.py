"""The rows of each experiment, as the paper has them; `PLANS` lists them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ltenet.data.body_pairs import What
from ltenet.evaluation.methods import METHODS
from ltenet.evaluation.paper.plan import SETTINGS, LinearMap, Plan, Recipe, Row
from ltenet.model import available_weights

#: Noise levels of the paper, in the unit of the set.
NOISES: dict[What, tuple[float, ...]] = {
    "human": (0.0, 0.01, 0.05, 0.1),
    "animal": (0.0, 0.001, 0.005, 0.01),
}
SIGMAS = (0.01 / 9, 0.01 / 3, 0.01, 0.03, 0.09)
NEIGHBORS = (5, 10, 20, 49)
DIMENSIONS = (32, 64, 128, 256, 512, 1024)

_NO_SMOOTHNESS = "reconstruction.objective.smoothness=0"
#: Parts of the objective that the paper switches off, by the name of what is left.
_PARTS = {
    "self": ("reconstruction.objective.cross=0", _NO_SMOOTHNESS),
    "cross": ("reconstruction.objective.itself=0", _NO_SMOOTHNESS),
    "self and cross": (_NO_SMOOTHNESS,),
    "full": (),
}
_LINEAR_MAPS: dict[LinearMap | None, str] = {
    None: "embedding as it is",
    "all": "optimal linear map (oracle, all points)",
    "half": "optimal linear map (oracle, tested on the other half)",
    "half-ridge": "the same, drawn to the identity",
}


def ltenet(what: What = "human", variant: str = "", *changes: str) -> Recipe:
    """LTENet as in the paper, with changes that have a name."""
    name = f"ltenet-{what}" + (f"-{variant}" if variant else "")
    return Recipe(name=name, preset="paper", what=what, changes=changes)


def dpc(what: What = "human", variant: str = "", *changes: str) -> Recipe:
    """DPC, the paper's baseline, with changes that have a name."""
    name = f"dpc-{what}" + (f"-{variant}" if variant else "")
    return Recipe(name=name, preset="dpc", what=what, changes=changes)


def _objective(part: str, pool: int = 2000) -> Recipe:
    """LTENet with a part of its objective and a number of training shapes."""
    words = [] if part == "full" else [part.replace(" ", "-")]
    if pool != 2000:
        words.append(f"pool-{pool}")
    changes = _PARTS[part] + ((f"pairs.pool={pool}",) if pool != 2000 else ())
    return ltenet("human", "-".join(words), *changes)


def main(runs: Path) -> Plan:
    """Table 1: our weights, those of the paper's recipes, and every peer."""
    rows = []
    for what in SETTINGS:
        for name in (name for name in available_weights() if name.startswith(what)):
            for refine, how in (
                ("none", "nearest neighbour"),
                ("coherent", "refined"),
                ("ot", "optimal transport"),
            ):
                label = f"weights `{name}`, {how}"
                rows.append(
                    Row(label=label, setting=what, weights=name, method="ltenet", refine=refine)
                )
        rows.append(Row(label="LTENet", setting=what, weights=ltenet(what), published="LTENet"))
        rows.append(Row(label="DPC", setting=what, weights=dpc(what), published="DPC"))
        # Long runs of the presets, if somebody made them.
        for preset in ("paper", "dpc") if what == "human" else ():
            folder = runs / preset / "best"
            if (folder / "model.safetensors").is_file():
                rows.append(Row(label=f"run `{preset}`", setting=what, weights=str(folder)))
        peers = [name for name in METHODS if name not in ("ltenet", "embedding")]
        rows += [Row(label=name, setting=what, method=name) for name in peers]
    return Plan(rows=tuple(rows), note="Our peers run as docs/evaluation.md describes them.")


def curves(runs: Path) -> Plan:
    """Accuracy over tolerance in both settings."""
    rows = [row for what in SETTINGS for row in _compared(what)]
    return Plan(rows=tuple(rows), plot=True)


def noise(runs: Path) -> Plan:
    """Noise on the source only, at the paper's levels."""
    rows = [
        replace(
            row,
            label=f"{row.label}, noise {level:g}",
            noise=level,
            published=row.published if level == 0 else None,
        )
        for what in SETTINGS
        for level in NOISES[what]
        for row in _compared(what)
    ]
    return Plan(rows=tuple(rows), samplings=("shared",), plot=True)


def _compared(what: What) -> tuple[Row, ...]:
    """LTENet and DPC as the paper trains them, and our own weights, which need to be turned."""
    own = Row(label=f"weights `{what}`", setting=what, weights=what, method="ltenet", refine="none")
    return (
        Row(label="LTENet", setting=what, weights=ltenet(what), published="LTENet"),
        Row(label="DPC", setting=what, weights=dpc(what), published="DPC"),
        own,
    )


def local_linearity(runs: Path) -> Plan:
    """LTENet and DPC, with and without the smoothness term E_r."""
    recipes = {
        "DPC without E_r": dpc("human", "no-smoothness", _NO_SMOOTHNESS),
        "DPC": dpc(),
        "LTENet without E_r": _objective("self and cross"),
        "LTENet": ltenet(),
    }
    return Plan(rows=_rows(recipes))


def linear(runs: Path) -> Plan:
    """Learned embeddings, and the optimal linear map between them as an oracle."""
    rows = [
        Row(
            label=f"{label}, {how}",
            setting=what,
            weights=weights,
            linear=kind,
            published=label if kind is None else None,
        )
        for what in SETTINGS
        for label, weights in (
            ("LTENet", ltenet(what)),
            ("DPC", dpc(what)),
            ("untrained", replace(ltenet(what, "untrained"), trained=False)),
            (f"weights `{what}`", what),
        )
        for kind, how in _LINEAR_MAPS.items()
    ]
    note = (
        "The linear map is found from the true correspondence: an oracle, not a method. With as "
        "many channels as points to fit, it can learn these by heart; the other half of the points "
        "tells what it is worth. The untrained network tells how much of it is owed to learning."
    )
    return Plan(rows=tuple(rows), samplings=("shared",), plot=True, note=note)


def design(runs: Path) -> Plan:
    """Parts of the objective, and other divergences."""
    recipes = {part: _objective(part) for part in ("self", "cross", "self and cross")}
    recipes["Chamfer"] = ltenet("human", "chamfer", "model.divergence.kind=chamfer")
    recipes["earth mover's"] = ltenet("human", "emd", "model.divergence.kind=emd")
    recipes["full"] = ltenet()
    return Plan(rows=_rows(recipes))


def sigma(runs: Path) -> Plan:
    """Bandwidth of the divergence."""
    recipes = {
        f"sigma {value:.2g}": ltenet(
            "human", f"sigma-{value:.2g}", f"model.divergence.sigma={value}"
        )
        for value in SIGMAS
    }
    recipes["sigma 0.01"] = ltenet()
    return Plan(rows=_rows(recipes), plot=True)


def neighbors(runs: Path) -> Plan:
    """Vary the number K of neighbours."""
    recipes = {
        f"K = {count}": ltenet("human", f"k-{count}", f"model.transform.neighbors={count}")
        for count in NEIGHBORS
    }
    recipes["K = 10"] = ltenet()
    return Plan(rows=_rows(recipes), plot=True)


def dimension(runs: Path) -> Plan:
    """Dimension D of the embedding."""
    recipes = {
        f"D = {size}": ltenet("human", f"d-{size}", f"model.encoder.dimension={size}")
        for size in DIMENSIONS
    }
    recipes["D = 512"] = ltenet()
    return Plan(rows=_rows(recipes))


def size(runs: Path) -> Plan:
    """Vary the number of training shapes, a tenth of which is held back."""
    recipes = {
        f"{part}, {pool:,} shapes": _objective(part, pool)
        for pool in (2000, 230_000)
        for part in _PARTS
    }
    recipes = {f"full, {pool:,} shapes": _objective("full", pool) for pool in (20, 200)} | recipes
    return Plan(rows=_rows(recipes))


def _rows(recipes: dict[str, Recipe]) -> tuple[Row, ...]:
    return tuple(
        Row(label=label, setting=recipe.what, weights=recipe, published=label)
        for label, recipe in recipes.items()
    )


#: Experiments that are tables of rows: their plans, given the folder of runs.
PLANS: dict[str, Callable[[Path], Plan]] = {
    "main": main,
    "curves": curves,
    "noise": noise,
    "local-linearity": local_linearity,
    "linear": linear,
    "design": design,
    "sigma": sigma,
    "neighbors": neighbors,
    "dimension": dimension,
    "size": size,
}
