"""What ``--help`` shows beside the options: a line for the list of commands, and examples that can be pasted."""

from __future__ import annotations

from typing import Any, NamedTuple


class Lesson(NamedTuple):
    """How one command is taught."""

    short: str  # in the list of commands
    examples: tuple[tuple[str, str], ...]  # (command line, what it is for)


LESSONS = {
    "": Lesson(
        "",
        (
            ("phasetrack demo", "watch a recorded start, no server needed"),
            ("phasetrack tail server.log", "follow one live"),
            ("phasetrack report server.log -f html -o boot.html", "afterwards: what took so long?"),
        ),
    ),
    "tail": Lesson(
        "Follow a start live: a screen, or plain lines in a pipe.",
        (
            ("phasetrack tail server.log", "the screen; q leaves it"),
            ("docker logs -f sglang 2>&1 | phasetrack tail -", "a container's output"),
            ("phasetrack tail server.log --output json | jq .type", "one record a line, for programs"),
            ("phasetrack tail node0.log node1.log", "several nodes, as plain lines"),
        ),
    ),
    "status": Lesson(
        "Answer once: which phase, how far, is the silence normal?",
        (
            ("phasetrack status server.log", "one line; the exit code tells the outcome"),
            ("phasetrack status server.log --json | jq .verdict", "everything that is known"),
            ("phasetrack status server.log --at-line 40", "what was known then"),
        ),
    ),
    "wait": Lesson(
        "Block until it is ready, has failed or is stuck.",
        (
            ("phasetrack wait server.log --timeout 45m && ./bench.sh", "go on once it is ready"),
            ("phasetrack wait server.log --until target_graph", "any phase will do"),
            ("phasetrack wait server.log --new --fail-on suspect", "yesterday's ready in the file does not count"),
        ),
    ),
    "run": Lesson(
        "Start a server with its output in a log file, and follow it.",
        (
            ("phasetrack run -- python -m sglang.launch_server --model-path M", "names the log file itself"),
            ("phasetrack run --log server.log --record launch.cast -- ./serve.sh", "recorded, with evidence beside"),
        ),
    ),
    "report": Lesson(
        "Postmortem of a whole log, as text or a page to share.",
        (
            ("phasetrack report server.log", "a table of phases and the first cause"),
            ("phasetrack report server.log -f html -o boot.html", "one page: time line, curves, facts"),
            ("phasetrack report server.log -f md | gh issue create -F -", "for an issue"),
            ("phasetrack report server.log -f trace -o boot.json", "open it in ui.perfetto.dev"),
            ("phasetrack report server.log --bundle boot.tar.gz", "masked, to give away; nothing is sent"),
            ("phasetrack report server.log --boot 2", "an earlier boot in the same file"),
        ),
    ),
    "compare": Lesson(
        "Two boots phase by phase: what explains the difference?",
        (
            ("phasetrack compare old.log new.log", "what got slower, and why"),
            ("phasetrack compare 'server.log#1' 'server.log#2'", "two boots of one file"),
            ("phasetrack compare 12 server.log", "with boot 12 of 'phasetrack history list'"),
            ("phasetrack compare old.log new.log -f html -o diff.html", "both time lines on one scale"),
        ),
    ),
    "doctor": Lesson(
        "What can be seen from here, and what to do about it.",
        (
            ("phasetrack doctor", "this machine"),
            ("phasetrack doctor server.log", "this log, its process and its port, too"),
        ),
    ),
    "replay": Lesson(
        "Watch a start again, with what was known at each moment.",
        (
            ("phasetrack replay server.log", "the screen of tail; space stops it, [ and ] go by phases"),
            ("phasetrack replay start.cast --from target_graph --speed 10", "from there, ten times as fast"),
            ("phasetrack replay server.log.gz --idle 5s", "no silence lasts longer than 5 s"),
            ("phasetrack replay server.log --plain", "what tail would have printed"),
        ),
    ),
    "demo": Lesson(
        "A recorded start that is shipped along.",
        (("phasetrack demo", "no server needed; q leaves"), ("phasetrack demo --speed 1", "at its own pace")),
    ),
    "history": Lesson("What earlier boots of this machine took.", ()),
    "history list": Lesson(
        "List boots, the newest first.",
        (("phasetrack history list", "numbers for show and compare"),),
    ),
    "history show": Lesson("Show one boot.", (("phasetrack history show 12", "phases, caches, steps"),)),
    "history import": Lesson(
        "Learn from old logs and casts.",
        (("phasetrack history import logs", "every boot of every log below"),),
    ),
    "history export": Lesson(
        "Print every boot, for another machine.",
        (("phasetrack history export -o boots.ndjson", "there: phasetrack history import boots.ndjson"),),
    ),
    "history forget": Lesson(
        "Delete boots.",
        (("phasetrack history forget --older-than 90", "days"),),
    ),
    "patterns": Lesson("The rules by which a log is read.", ()),
    "patterns list": Lesson(
        "List the rules.",
        (("phasetrack patterns list --role failure", "every failure that is known, one a line"),),
    ),
    "patterns explain": Lesson(
        "Explain one rule.",
        (("phasetrack patterns explain sglang.target_load.begin", "the lines it takes, and where it comes from"),),
    ),
    "patterns check": Lesson(
        "Prove every rule by its samples.",
        (("phasetrack patterns check mine.toml", "your own beside the shipped ones"),),
    ),
}  # fmt: skip


def teach(command: Any, name: str) -> None:
    """Give a command, and those below it, their line in the list and their examples."""
    if name in LESSONS:
        command.short_help = LESSONS[name].short or None
        command.epilog = epilog(name)
    for below, sub in getattr(command, "commands", {}).items():
        teach(sub, f"{name} {below}")


def epilog(name: str) -> str:
    """The examples of a command as click prints them: unwrapped, each under what it is for."""
    lesson = LESSONS.get(name)
    if lesson is None or not lesson.examples:
        return ""
    lines = [line for command, what in lesson.examples for line in (f"  # {what}", f"  {command}")]
    return "\b\nExamples:\n" + "\n".join(lines)
