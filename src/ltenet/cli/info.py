"""`ltenet info`: what weights are, or how a training run went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from ltenet.cli.command import Command, Result
from ltenet.cli.output import say, table
from ltenet.errors import InputError, MissingError

if TYPE_CHECKING:
    from ltenet.training.runs import RunFolder


@dataclass(frozen=True, kw_only=True)
class Info(Command):
    """Describe weights, or summarise a training run and draw its losses and validations.

    The plot goes to RUN/curves.png if matplotlib is installed (extra `plot`).

    Examples
    --------
      ltenet info human
      ltenet info my-run --runs runs
    """

    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")]]
    """Weights or a run, by name or folder; a run comes first."""
    runs: Path = Path("runs")
    """Folder of all runs."""

    def run(self) -> Result:
        """Find out which of the two it is."""
        from ltenet.method.model import available_weights, find_weights
        from ltenet.training.runs import find_run

        try:
            run = find_run(self.name, self.runs)
        except MissingError as missing:
            try:
                return describe_weights(self.name, find_weights(self.name))
            except MissingError:
                known = ", ".join(available_weights()) or "none"
                raise MissingError(
                    f"got '{self.name}', expected a run in {self.runs} or weights ({known}), by "
                    "name or folder; try `ltenet info human`"
                ) from missing
        if (run.path / "model.safetensors").is_file():  # adapted weights keep their settings
            return describe_weights(self.name, run.path)
        if self.name in available_weights():
            say(f"{self.name}: this is the run {run.path}; weights of that name ship with ltenet")
        return _describe_run(run)


def _describe_run(run: RunFolder) -> Result:
    from ltenet.training.summary import plot, sparkline, summarize_run

    summary = summarize_run(run)
    picture = run.path / "curves.png"
    drawn = plot(summary, picture)
    figures = {
        "run": str(run.path),
        "name": summary.name,
        "steps": summary.steps,
        "minutes": round(summary.minutes, 2),
        "pairs_per_second": round(summary.pairs_per_second, 2),
        "best_step": summary.best_step,
        "plot": str(picture) if drawn else None,
    }
    rows = [*figures.items(), *((f"best {k}", round(v, 4)) for k, v in summary.best.items())]
    lines = [
        (name, sparkline(curve.values), f"{curve.values[0]:.4g} -> {curve.values[-1]:.4g}")
        for name, curve in summary.curves.items()
    ]
    text = table(rows) + ("\n\n" + table(lines) if lines else "")
    return Result({**figures, "best": summary.best}, text)


def describe_weights(name: str, folder: Path) -> Result:
    """Tell what `config.json`, the weights and the model card say, without loading the network."""
    from safetensors import SafetensorError, safe_open

    from ltenet.io.formats.documents import read_json
    from ltenet.matching import confidence, orientation

    try:
        document = read_json(folder / "config.json")
        system = document.get("system")
        settings = document["model" if system is None else "network"]
        with safe_open(folder / "model.safetensors", framework="np") as tensors:
            shapes = [tensors.get_slice(key).get_shape() for key in tensors.keys()]  # noqa: SIM118
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise InputError(
            f"{folder}: got weights that cannot be read ({error}), expected config.json and "
            "model.safetensors as ltenet writes them; try to copy the folder again"
        ) from None
    common: dict[str, Any] = {
        "weights": name,
        "folder": str(folder),
        "parameters": sum(_size(shape) for shape in shapes),
    }
    if system is not None:  # another learned method, which has no frames and no probabilities
        use = f"ltenet match SOURCE TARGET --method {system} --model {folder}"
        figures = {**common, "system": system, "network": settings, "use": use}
        rows = [(key, value) for key, value in figures.items() if key != "network"]
        return Result(figures, table([*rows, *settings.items()]))
    encoder = settings.get("encoder", {})
    figures = {
        **common,
        "dimension": encoder.get("dimension", 512),
        "neighbors": encoder.get("neighbors"),
        "bytes": sum(file.stat().st_size for file in folder.iterdir() if file.is_file()),
        "orientation": (folder / orientation.FILE).is_file(),
        "calibration": (folder / confidence.FILE).is_file(),
    }
    card = _card(folder / "README.md")
    known = {
        "orientation": "turns shapes upright by itself",
        "calibration": "probabilities are calibrated",
    }
    lacking = {
        "orientation": "none: shapes must stand upright (y up) and face the same way",
        "calibration": "none: probabilities are a guess",
    }
    rows = [
        (key, (known if value else lacking)[key] if key in known else value)
        for key, value in figures.items()
        if value is not None
    ]
    text = table(rows) + (f"\n\n{card}" if card else "")
    return Result({**figures, "card": card}, text)


def _size(shape: list[int]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


def _card(path: Path) -> str:
    """Read the model card up to its tables: what the weights are for, data, training."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    if lines[:1] == ["---"] and "---" in lines[1:]:  # metadata of model hubs
        lines = lines[lines.index("---", 1) + 1 :]
    end = next((k for k, line in enumerate(lines) if line.startswith("## ")), len(lines))
    return "\n".join(line for line in lines[:end] if not line.startswith("# ")).strip()


COMMAND = Info
