"""Help teaches with examples that would run, and shells complete what there is."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from functools import cache

import pytest
import typer
from typer.testing import CliRunner

from phasetrack.cli import app
from phasetrack.teach import LESSONS

# As the installed script starts it: shells ask a program of this name.
_PROGRAM = "import sys; sys.argv[0] = 'phasetrack'; from phasetrack.cli import main; main()"


@cache
def commands() -> dict[str, object]:
    """Every command, by the words that call it."""
    found: dict[str, object] = {}

    def walk(group, words: str) -> None:
        for name, command in group.commands.items():
            found[f"{words}{name}"] = command
            if hasattr(command, "commands"):
                walk(command, f"{words}{name} ")

    walk(typer.main.get_command(app), "")
    return found


def test_every_command_is_taught_and_nothing_else_is():
    assert LESSONS.keys() - {""} == commands().keys()
    bare = [name for name, lesson in LESSONS.items() if not lesson.examples]
    assert bare == [name for name, command in commands().items() if hasattr(command, "commands")]


@pytest.mark.parametrize("name", ["", *commands()])
def test_help_shows_its_examples_unwrapped(name):
    said = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"})
    assert said.exit_code == 0
    for command, what in LESSONS[name].examples:
        assert f"    # {what}\n    {command}\n" in said.output


@pytest.mark.parametrize("example", [command for lesson in LESSONS.values() for command, _ in lesson.examples])
def test_every_example_is_understood(example):
    words = shlex.split(example, comments=False)
    start = words.index("phasetrack") + 1
    ends = [k for k, word in enumerate(words) if word in {"|", "&&"} and k > start]
    given = words[start : ends[0] if ends else len(words)]
    size = 2 if " ".join(given[:2]) in commands() else 1
    command = commands()[" ".join(given[:size])]
    arguments = given[size:]
    context = command.context_class(command, info_name="x", **getattr(command, "context_settings", {}))
    assert command.make_parser(context).parse_args(list(arguments)) is not None


@pytest.mark.parametrize("width", [80, 100])
def test_help_fits_the_terminal(width):
    for name in commands():
        said = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": str(width)}, terminal_width=width)
        assert all(len(line) <= width for line in said.output.splitlines()), name


def complete(shell: str, words: str) -> str:
    asked = {"_PHASETRACK_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    asked |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=os.environ | asked, capture_output=True, check=False)
    return done.stdout.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_choices(shell):
    assert "report" in complete(shell, "phasetrack rep")
    assert "status" not in complete(shell, "phasetrack rep")
    said = complete(shell, "phasetrack report --format ")
    assert all(form in said for form in ("text", "json", "ndjson", "md", "html", "trace"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_can_be_shown(shell):
    asked = {"_PHASETRACK_COMPLETE": f"source_{shell}"}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=os.environ | asked, capture_output=True, check=False)
    assert b"phasetrack" in done.stdout
    assert done.returncode == 0


def test_bash_itself_completes_with_the_script(tmp_path):
    shown = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=os.environ | {"_PHASETRACK_COMPLETE": "source_bash"}, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    program = tmp_path / "phasetrack"
    program.write_text(f"#!{sys.executable}\n{_PROGRAM}\n")
    program.chmod(0o755)
    asking = "COMP_WORDS=(phasetrack com); COMP_CWORD=1; _phasetrack_completion phasetrack; echo ${COMPREPLY[@]}"
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", f"{shown}\n{asking}"], env=env, capture_output=True, check=False)
    assert done.stdout.decode().split() == ["compare"]
