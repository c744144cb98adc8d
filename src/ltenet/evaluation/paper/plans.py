"""The rows of each experiment, as the paper has them; `PLANS` lists them by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ltenet.bodies.body_pairs import What
from ltenet.data.readers import open_set, set_folder
from ltenet.errors import MissingError
from ltenet.evaluation.paper.peer_plans import peer_rows
from ltenet.evaluation.paper.plan import CONTROL, GENERATED, ExperimentPlan, LinearMap, Row
from ltenet.evaluation.paper.recipes import OUTLOOK, Recipe
from ltenet.method.model import available_weights

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


def ltenet(what: What = "human") -> Recipe:
    """LTENet as in the paper, for the main comparison."""
    return Recipe(name=f"paper-{what}", preset="paper", what=what)


def dpc(what: What = "human") -> Recipe:
    """DPC, the paper's baseline, for the main comparison."""
    return Recipe(name=f"dpc-{what}", preset="dpc", what=what)


def control(what: What = "human") -> Recipe:
    """Return the first weights of all trainings, which know nothing but their statistics."""
    return Recipe(name=f"control-{what}", preset="paper", what=what, trained=False)


def ablation(variant: str, *changes: str, decides: bool = True) -> Recipe:
    """LTENet on people with changes that have a name; a second seed where a verdict needs it."""
    return Recipe(
        name=f"ablation-{variant}",
        preset="paper",
        what="human",
        changes=changes,
        scale="ablation",
        seeds=(0, 1) if decides else (0,),
    )


#: LTENet and DPC at the length of the ablations.
_FULL = ablation("full")
_DPC = replace(ablation("dpc"), preset="dpc")


def _objective(part: str, pool: int = 2000, *, decides: bool = True) -> Recipe:
    """LTENet with a part of its objective and a number of training shapes."""
    words = [part.replace(" ", "-")] + ([f"pool-{pool}"] if pool != 2000 else [])
    changes = _PARTS[part] + ((f"pairs.pool={pool}",) if pool != 2000 else ())
    return ablation("-".join(words), *changes, decides=decides)


def main(data: Path | None) -> ExperimentPlan:
    """Table 1: the paper's recipes, our weights, and every peer: what is cheap comes first."""
    rows = [row for what in GENERATED for row in _own_rows(what)]
    rows += [row for what in GENERATED for row in _weights_rows(what)]
    rows += [row for what in GENERATED for row in peer_rows(what)]
    note = (
        "Our peers run as docs/peers.md describes them. Learned ones are trained anew on generated "
        "shapes, for equal minutes: no reproduction of their papers. The paper's SURFMNet and "
        "GeoFMNet had faces and post-processing."
    )
    if data is not None:
        published, told = _published(data)
        rows, note = [*rows, *published], f"{note} {told}"
    return ExperimentPlan(rows=tuple(rows), cost=True, note=note)


def _own_rows(what: What) -> list[Row]:
    """LTENet, as the paper has it and turned upright first, DPC, and their control."""
    first, second, *_, last = _compared(what)
    turned = replace(first, label="LTENet, turned upright first", published=None)
    return [first, replace(turned, method="ltenet", refine="none", oriented=True), second, last]


def _weights_rows(what: What) -> list[Row]:
    """Weights that ship, with each way to refine a map."""
    ways = {"none": "nearest neighbour", "coherent": "refined", "ot": "optimal transport"}
    rows = []
    for name in (name for name in available_weights() if name.startswith(what)):
        own = Row(label=f"weights `{name}`", setting=what, weights=name, method="ltenet")
        rows += [
            replace(own, label=f"{own.label}, {how}", refine=refine) for refine, how in ways.items()
        ]
    return rows


#: Training sets of the paper, by setting.
_PUBLISHED = {"human": "surreal", "shrec": "shrec19", "animal": "smal"}


def _published(data: Path) -> tuple[list[Row], str]:
    """Rows that are trained on the paper's own sets, as far as a folder has them."""
    rows, absent = [], []
    for setting, name in _PUBLISHED.items():
        folder = set_folder(name, data)
        try:
            # Some readers take any array they find, so the set must go by its name.
            here = folder != data or (data / f"{name}.npz").is_file()
            here = here and len(open_set(name, folder)) > 0
        except MissingError:
            here = False
        if not here:
            absent.append(name)
            continue
        place = f"pairs.data={json.dumps(str(data.resolve()))}"
        for label, preset in (("LTENet", "paper"), ("DPC", "dpc")):
            recipe = Recipe(
                name=f"{preset}-{name}",
                preset="paper" if preset == "paper" else "dpc",
                what=name,
                changes=(place,),
            )
            label_of_row = f"{label}, trained on {name}"
            rows.append(Row(label=label_of_row, setting=setting, weights=recipe, published=label))
    if not absent:
        return rows, "SURREAL, SMAL and SHREC'19 were there to train on."
    return rows, f"Not there to train on: {', '.join(absent)}; generated bodies stand in."


def curves(data: Path | None) -> ExperimentPlan:
    """Accuracy over tolerance in both settings."""
    rows = [row for what in GENERATED for row in _compared(what)]
    return ExperimentPlan(rows=tuple(rows), also=False, plot=True)


def noise(data: Path | None) -> ExperimentPlan:
    """Noise on the source only, at the paper's levels."""
    rows = [
        replace(
            row,
            label=f"{row.label}, noise {level:g}",
            noise=level,
            published=row.published if level == 0 else None,
        )
        for what in GENERATED
        for level in NOISES[what]
        for row in _compared(what)
    ]
    return ExperimentPlan(rows=tuple(rows), samplings=("shared",), also=False, plot=True)


def _compared(what: What) -> tuple[Row, ...]:
    """LTENet and DPC as the paper trains them, and our own weights, which need to be turned."""
    own = Row(label=f"weights `{what}`", setting=what, weights=what, method="ltenet", refine="none")
    return (
        Row(label="LTENet", setting=what, weights=ltenet(what), published="LTENet"),
        Row(label="DPC", setting=what, weights=dpc(what), published="DPC"),
        own,
        _control(what),
    )


def _control(what: What = "human") -> Row:
    return Row(label=CONTROL, setting=what, weights=control(what))


def local_linearity(data: Path | None) -> ExperimentPlan:
    """LTENet and DPC, with and without the smoothness term E_r."""
    recipes = {
        "DPC without E_r": replace(
            _DPC, name="ablation-dpc-no-smoothness", changes=(_NO_SMOOTHNESS,)
        ),
        "DPC": _DPC,
        "LTENet without E_r": _objective("self and cross"),
        "LTENet": _FULL,
    }
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",))


def linear(data: Path | None) -> ExperimentPlan:
    """Learned embeddings, and the optimal linear map between them as an oracle."""
    rows = [
        Row(
            label=f"{label}, {how}",
            setting=what,
            weights=weights,
            linear=kind,
            published=label if kind is None else None,
        )
        for what in GENERATED
        for label, weights in (
            ("LTENet", ltenet(what)),
            ("DPC", dpc(what)),
            (CONTROL, control(what)),
            (f"weights `{what}`", what),
        )
        for kind, how in _LINEAR_MAPS.items()
    ]
    note = (
        "The linear map is found from the true correspondence: an oracle, not a method. With as "
        "many channels as points to fit, it can learn these by heart; the other half of the points "
        "tells what it is worth. The untrained network tells how much of it is owed to learning."
    )
    return ExperimentPlan(rows=tuple(rows), samplings=("shared",), also=False, plot=True, note=note)


def design(data: Path | None) -> ExperimentPlan:
    """Parts of the objective, and other divergences."""
    recipes = {part: _objective(part) for part in ("self", "cross", "self and cross")}
    recipes["Chamfer"] = ablation("chamfer", "model.divergence.kind=chamfer")
    recipes["earth mover's"] = ablation("emd", "model.divergence.kind=emd")
    recipes["full"] = _FULL
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",))


def sigma(data: Path | None) -> ExperimentPlan:
    """Bandwidth of the divergence."""
    recipes = {
        f"sigma {value:.2g}": ablation(f"sigma-{value:.2g}", f"model.divergence.sigma={value}")
        for value in SIGMAS
    }
    recipes["sigma 0.01"] = _FULL
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",), plot=True)


def neighbors(data: Path | None) -> ExperimentPlan:
    """Vary the number K of neighbours."""
    recipes = {
        f"K = {count}": ablation(f"k-{count}", f"model.transform.neighbors={count}")
        for count in NEIGHBORS
    }
    recipes["K = 10"] = _FULL
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",), plot=True)


def dimension(data: Path | None) -> ExperimentPlan:
    """Dimension D of the embedding."""
    recipes = {
        f"D = {size}": ablation(
            f"d-{size}", f"model.encoder.dimension={size}", decides=size in (32, 1024)
        )
        for size in DIMENSIONS
    }
    recipes["D = 512"] = _FULL
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",))


def size(data: Path | None) -> ExperimentPlan:
    """Vary the number of training shapes, a tenth of which is held back."""
    recipes = {
        f"{part}, {pool:,} shapes": _objective(part, pool, decides=pool == 2000 or part == "full")
        for pool in (2000, 230_000)
        for part in _PARTS
    }
    few = {f"full, {pool:,} shapes": _objective("full", pool, decides=False) for pool in (20, 200)}
    recipes = few | recipes
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",))


def outlook(data: Path | None) -> ExperimentPlan:
    """Other weights, neighbours and encoders, one training each: no claim to decide."""
    recipes = {"LTENet": _FULL}
    for label, (name, change) in OUTLOOK.items():
        recipes[label] = ablation(name, change, decides=False)
    return ExperimentPlan(rows=_rows(recipes), samplings=("shared",))


def _rows(recipes: dict[str, Recipe]) -> tuple[Row, ...]:
    """Rows of an ablation, which is done on people, and their control."""
    rows = [
        Row(label=label, setting="human", weights=recipe, published=label)
        for label, recipe in recipes.items()
    ]
    return (*rows, _control())


#: Experiments that are tables of rows: their plans, given a folder of sets to train on, or None.
PLANS: dict[str, Callable[[Path | None], ExperimentPlan]] = {
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
    "outlook": outlook,
}

#: The order in which the rows are trained, by experiment and seed: what verdicts rest on first.
_ORDER = (
    ("main", 0),
    *((name, seed) for name in ("design", "local-linearity") for seed in (0, 1)),
    ("main", 1),
    *((name, seed) for name in ("neighbors", "sigma", "dimension", "size") for seed in (0, 1)),
    ("outlook", 0),  # last: runs that wait keep their places
)


class PlannedRun(NamedTuple):
    """One training behind the tables."""

    recipe: Recipe
    seed: int

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.recipe.run_name(self.seed)


def planned_runs() -> tuple[PlannedRun, ...]:
    """All trainings behind the tables, each once; those of verdicts before the others."""
    found: list[PlannedRun] = []
    for deciding in (True, False):
        for name, seed in _ORDER:
            for row in PLANS[name](None).rows:
                recipe = row.weights
                if isinstance(recipe, Recipe) and recipe.trained and seed in recipe.seeds:
                    planned = PlannedRun(recipe, seed)
                    if (len(recipe.seeds) > 1) == deciding and planned not in found:
                        found.append(planned)
    return tuple(found)
