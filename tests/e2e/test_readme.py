"""A newcomer with the wheel and the README alone: every command in it runs as printed."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from phasetrack.errors import Exit
from phasetrack.teach import LESSONS
from tests.e2e.newcomer import (
    README,
    Command,
    Newcomer,
    blocks_of,
    commands_of,
    furnish,
    mentions_of,
)
from tests.talk import ROOT

# What a newcomer's machine lacks here; their examples are checked, not run.
_LACKING = ("docker", "gh ", "sglang.launch_server", "phasetrack compare 12", "show 12")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory, fresh_python) -> Newcomer:
    home = tmp_path_factory.mktemp("newcomer")
    furnish(home)
    return Newcomer(home, fresh_python)


def test_every_command_of_the_readme_runs_as_printed(newcomer):
    wrong = [newcomer.check(c.text) if c.needs else newcomer.run(c.text) for c in commands_of(README)]
    assert "\n\n".join(filter(None, wrong)) == ""


def test_every_command_that_the_readme_mentions_exists(newcomer):
    wrong = [newcomer.check(text) for text in mentions_of(README)]
    assert "\n\n".join(filter(None, wrong)) == ""


def test_the_readme_tells_of_every_command_and_every_exit_code():
    told = {text.split()[1] for text in mentions_of(README)}
    assert told >= {name for name in LESSONS if name and " " not in name} - {"demo"}
    table = README.partition("## Exit codes")[2].partition("\n## ")[0]
    codes = re.findall(r"\d+", " ".join(re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)))
    assert list(map(int, codes)) == sorted(Exit)


def test_the_readmes_startup_probe_is_a_command_that_there_is(newcomer):
    (words,) = re.findall(r"command: \[(.*)\]", "".join(blocks_of(README, "yaml")))
    assert newcomer.check(words.replace(", ", " ")) == ""


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\((?!https:)([^)]+)\)", README)
    assert "tests/screens/tail.svg" in links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_every_example_of_the_help_runs_as_printed(newcomer):
    def wrong(example: str) -> str:
        lacks = any(word in example for word in _LACKING)
        return newcomer.check(example) if lacks else newcomer.run(example)

    examples = [command for lesson in LESSONS.values() for command, _ in lesson.examples]
    with ThreadPoolExecutor(4) as together:  # most of them wait
        assert "\n\n".join(filter(None, together.map(wrong, examples))) == ""


def test_the_wheel_brings_templates_patterns_and_nothing_of_the_tests(newcomer):
    listed = subprocess.run(
        [newcomer.python, "-c", "import importlib.metadata as m; print(*m.files('phasetrack'), sep='\\n')"],
        capture_output=True, check=True, env=newcomer.environment,
    ).stdout.decode()  # fmt: skip
    for wanted in ("views/templates/report.html.j2", "views/templates/page.css", "_patterns/sglang.toml"):
        assert f"phasetrack/{wanted}" in listed
    assert "tests/" not in listed


def test_a_screen_is_no_need_of_plain_commands(newcomer):
    """Reports must work, and start quickly, where Textual cannot even be imported."""
    code = (
        "import sys; sys.modules['textual'] = None; sys.argv = ['phasetrack', 'report', 'server.log', '-f', 'html'];"
        "from phasetrack.cli import main; main()"
    )
    done = subprocess.run([newcomer.python, "-c", code], cwd=newcomer.folder, env=newcomer.environment, check=False,
                          capture_output=True)  # fmt: skip
    assert done.returncode == 0
    assert b"</html>" in done.stdout


SAMPLE = """
Try it:

```sh
# a comment
phasetrack demo
phasetrack report server.log \\
    -f html -o boot.html
ls boot.html
phasetrack tail server.log
```

<!-- needs: docker -->
```sh
docker logs -f sglang 2>&1 | phasetrack tail -
```

```console
$ phasetrack status server.log
READY: …
```

```python
import nothing
```

Then `phasetrack compare old.log new.log` says why, and `phasetrack report --fly` does not exist.
"""


def test_commands_are_read_from_the_blocks_that_hold_them():
    assert commands_of(SAMPLE) == [
        Command("phasetrack demo"),
        Command("phasetrack report server.log -f html -o boot.html"),
        Command("ls boot.html"),
        Command("phasetrack tail server.log"),
        Command("docker logs -f sglang 2>&1 | phasetrack tail -", "docker"),
        Command("phasetrack status server.log"),
    ]
    assert mentions_of(SAMPLE) == ["phasetrack compare old.log new.log", "phasetrack report --fly"]


def test_a_newcomer_notices_what_does_not_run(newcomer):
    assert newcomer.run("phasetrack demo") == ""
    assert "gave 2" in newcomer.run("phasetrack report --fly server.log")
    assert "gave 6" in newcomer.run("phasetrack report nowhere.log")
    assert "has no --fly" in newcomer.check("phasetrack report --fly")
    assert "no 'fly'" in newcomer.check("docker logs x | phasetrack fly")
    assert "is no shell" in newcomer.check("phasetrack report 'x")
    assert newcomer.check("docker logs x 2>&1 | phasetrack tail - --output plain") == ""
