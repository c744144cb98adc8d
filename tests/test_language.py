"""The language of messages and pages: errors in three parts, and no quaint phrases."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ltenet
from ltenet import errors

PACKAGE = Path(ltenet.__file__).parent
ROOT = Path(__file__).parents[1]

ERRORS = {
    name
    for name, member in inspect.getmembers(errors, inspect.isclass)
    if issubclass(member, errors.LTENetError)
}
THREE_PARTS = re.compile(r"\bgot\b.*\bexpected\b.*\btry\b", re.DOTALL | re.IGNORECASE)

#: Messages made elsewhere that get the name of their file here.
RELAYED = {"{}: {}", "{}: {}; {}", "in a loading process:\n{}"}

#: Errors that pass on the message of another one, with the reason.
PASSED_ON = {
    "viewer/reading.py": "puts the user's name of the file in place of the app's",
    "viewer/checking.py": "tells what another process found",
}

#: Phrases that no page, docstring, comment or message contains.
BANNED = (
    r"\bcame;",
    r"\bcame without\b",
    r"\bis needed;",
    r"\bare needed;",
    r"\bwere asked for\b",
    r"\bOf equals\b",
    r"\bwhat became of\b",
    r"\bwhat was looked at\b",
    r"\bwhatever way\b",
    r"\bin turns\b(?!:)",
    r"\bof the weights before\b",
    r"\bhas a say\b",
    r"\bto the letter\b",
)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def pages() -> list[Path]:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *PACKAGE.rglob("*.md")]
    return sorted([*texts, *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml")])


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def text_of(node: ast.expr) -> str | None:
    """Literal text of a message, with {} for fields; None if it is not written out in place."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) or "{}" for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None and right is None else f"{left or '{}'}{right or '{}'}"
    return None


def messages(tree: ast.Module) -> Iterator[tuple[int, str | None]]:
    """Yield line and text of every error of ours that a file makes.

    A prefix before the message of another error, f"{path}: {error}", is not a message of its own.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in ERRORS:
                text = text_of(node.args[0]) if node.args else ""
                if text not in RELAYED:
                    yield node.lineno, text
            elif name == "failure":  # of a file: where, what and what to try
                parts = [text_of(part) for part in node.args[-2:]]
                if any(parts):  # else relayed
                    yield node.lineno, None if None in parts else "; ".join(map(str, parts))


def named(path: Path) -> str:
    return path.relative_to(ROOT if path.is_relative_to(ROOT) else PACKAGE).as_posix()


@pytest.mark.parametrize("path", modules(), ids=named)
def test_errors_have_three_parts(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wrong = [
        f"{line}: {text or 'the message is not written where the error is made'}"
        for line, text in messages(tree)
        if not (text is None and relative(path) in PASSED_ON)
        and (text is None or not THREE_PARTS.search(text))
    ]
    assert not wrong, "word it 'got ..., expected ...; try ...':\n" + "\n".join(wrong)


def test_messages_are_found() -> None:
    code = (
        'raise InputError(f"{path}: got {n} rows, expected 3; " "try another")\n'
        'raise errors.UsageError("got nothing, " + "expected a name; try human")\n'
        'raise InputError(message)\nraise ValueError("nothing of ours")\n'
        'raise failure(path, 3, "got a", "try b")\nraise InputError(f"{path}: {error}")\n'
    )
    found = dict(messages(ast.parse(code)))
    assert found[1] == "{}: got {} rows, expected 3; try another"
    assert found[2] == "got nothing, expected a name; try human"
    assert found[3] is None
    assert 4 not in found
    assert found[5] == "got a; try b"
    assert 6 not in found
    assert THREE_PARTS.search("got a, expected b; try c")
    assert not THREE_PARTS.search("a came; b is needed; try c")


@pytest.mark.parametrize("path", pages(), ids=named)
def test_no_quaint_phrases(path: Path) -> None:
    text = " ".join(path.read_text(encoding="utf-8").split())
    found = [phrase for phrase in BANNED if re.search(phrase, text)]
    assert not found
