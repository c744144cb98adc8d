"""Write the figures of results/*.json into README, docs and model cards, between marks.

    python -m tools.results_page            # rewrite what changed
    python -m tools.results_page --check    # only say what would change; exit code 1 if anything

A mark is ``<!-- results: KIND WORDS -->`` and ends at ``<!-- /results -->``; the text between is
generated. `tools.result_tables.KINDS` lists the kinds. A mark without results keeps its text.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tools.result_tables import KINDS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
_MARK = re.compile(
    r"(<!-- results: (?P<spec>[^>]*?) -->)(?P<old>.*?)(<!-- /results -->)", re.DOTALL
)
_OPENING = "<!-- results:"


def pages() -> list[Path]:
    """Files that may hold marks."""
    return [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "src" / "ltenet" / "weights").glob("*/README.md")),
    ]


def rewritten(text: str, results: Path = RESULTS) -> tuple[str, list[str]]:
    """Replace what is between the marks of a text.

    Returns
    -------
    tuple
        The new text, and the marks without results.
    """
    lacking: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        spec = match["spec"].strip()
        kind, *words = spec.split()
        if kind not in KINDS:
            raise SystemExit(
                f"got the mark 'results: {spec}', expected one of {', '.join(KINDS)}; "
                "check the spelling"
            )
        made = KINDS[kind](words, results)
        if made is None:
            lacking.append(spec)
            return match[0]
        inside = made if kind == "figure" else f"\n{made}\n"
        return f"{match[1]}{inside}{match[4]}"

    new = _MARK.sub(replaced, text)
    if text.count(_OPENING) != len(_MARK.findall(text)):
        raise SystemExit("got a mark 'results:' without its end; close it with <!-- /results -->")
    return new, lacking


def main() -> None:
    """Rewrite, or check."""
    parser = argparse.ArgumentParser(description="Write results/*.json into README, docs, cards.")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    changed = []
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new, lacking = rewritten(old)
        for spec in lacking:
            print(f"{page.relative_to(ROOT)}: nothing measured yet for '{spec}'", file=sys.stderr)
        if new != old:
            changed.append(page)
            if not options.check:
                page.write_text(new, encoding="utf-8", newline="\n")
    for page in changed:
        print(f"{page.relative_to(ROOT)}: {'differs' if options.check else 'written'}")
    if options.check and changed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
