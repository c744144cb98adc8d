"""Tables of time and memory as Markdown, from what `python -m benchmarks.NAME --json` printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])


def compute_table(result: dict[str, Any]) -> str:
    """Compare the core with a plain reference."""
    seconds, setting = result["seconds"], result["setting"]
    products = f"{result['embed_ratio_to_products']:.0f} to a reference by matrix products"
    cases = (
        ("embed one shape", "embed", f"{result['embed_ratio']:.0f} ({products})"),
        (
            f"train the encoder, {setting['encoder_shapes']} shapes",
            "encoder_train",
            f"{result['encoder_train_ratio']:.0f}",
        ),
        (
            f"a whole training step, {setting['step_pairs']} pairs",
            "step",
            f"{result['step_ratio']:.0f}",
        ),
    )
    rows = [
        [label, *(f"{seconds[key][who]:.3g} s" for who in ("ltenet", "reference")), ratio]
        for label, key, ratio in cases
    ]
    peaks = [f"{result['step_peak_bytes'][who] / 1e9:.2f} GB" for who in ("ltenet", "reference")]
    rows.append(["its peak memory", *peaks, f"{result['step_memory_ratio']:.2f}"])
    threads, torch = setting["threads"], result["versions"]["torch"]
    return "\n".join(
        [
            markdown_table(["", "ltenet", "reference", "ratio"], rows),
            "",
            f"Medians, {threads} threads, torch {torch}.",
        ]
    )


def matching_table(result: dict[str, Any]) -> str:
    """Compare the whole pipeline with deformable registration."""
    rows = [
        [name, f"{result['seconds'][key]:.2g} s", f"{result['err_percent'][key]:.2f}"]
        for name, key in (("`ltenet.match`", "ltenet"), ("pycpd, 100 iterations", "pycpd"))
    ]
    heads = [f"{result['points']:,} points", "a pair", "err, % of dmax"]
    told = f"Median of {result['pairs']} generated pairs; {result['ratio']:.1f} times faster."
    return "\n".join([markdown_table(heads, rows), "", told])


def scale_table(result: dict[str, Any]) -> str:
    """Show how matching grows."""
    rows = [
        [f"{run['points']:,}", f"{run['seconds']:.3g} s", f"{run['peak_gb']:.2f} GB"]
        for run in result["runs"]
    ]
    return markdown_table(["points of each shape", "time", "peak memory"], rows)


#: By the name of the benchmark.
SPEED: dict[str, Callable[[dict[str, Any]], str]] = {
    "compute": compute_table,
    "matching": matching_table,
    "scale": scale_table,
}
