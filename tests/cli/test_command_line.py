"""The command that a result names is the one to type."""

from __future__ import annotations

from pathlib import Path

from ltenet.cli.bench import Bench
from ltenet.cli.command import command_line
from ltenet.cli.paper import Paper


def test_defaults_are_left_out() -> None:
    assert command_line(Bench(benchmark="generated"), "bench") == "ltenet bench generated"


def test_options_in_the_order_of_the_help() -> None:
    command = Bench(
        benchmark="faust",
        data=Path("/somewhere"),
        method="icp",
        option=("iterations=5", "tolerance=0"),
        no_cycle=True,
        json=True,
        workers=2,
        output=Path("out"),
    )
    assert command_line(command, "bench") == (
        "ltenet bench faust --data DIR --method icp --option iterations=5 --option tolerance=0 "
        "--no-cycle"
    )


def test_a_folder_that_must_be_given() -> None:
    command = Paper(name="real", output=Path("out"), shapes=(Path("a.ply"), Path("b.ply")))
    assert command_line(command, "paper") == "ltenet paper real -o DIR --shapes a.ply b.ply"
