"""Two boots: the right phase is named first, noise is called noise, and facts that differ are told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from phasetrack.core.compare import Side, compare
from phasetrack.core.key import key_of
from phasetrack.core.model import Outcome, PastBoot, PastPhase
from phasetrack.core.noise import Noise, noise_of, wider
from phasetrack.core.past import remembered
from phasetrack.core.recollect import snapshot_of
from phasetrack.edges.history import History, Store
from phasetrack.share import read_boot
from phasetrack.views.compare import compare_json, compare_markdown, compare_page, compare_text, side_label, signed
from tests.talk import FIXTURES, args, hear, patterns, recording, talk

PLAIN, PLAIN_AGAIN, DRAFT_COLD, DRAFT_WARM = (
    "01-plain-file",
    "02-plain-pty",
    "03a-eagle3-file-coldjit",
    "03b-eagle3-pipe",
)


def between(a: str, b: str, **options):
    return compare(hear(recording(a)).snapshot, hear(recording(b)).snapshot, names=(a, b), **options)


def boot(load_s: int, graph_s: int = 10, **arguments: object):
    """A boot of three phases, whose load and capture take as long as asked."""
    loaded, end = (f"{at // 60:02}:{at % 60:02}" for at in (10 + load_s, 10 + load_s + graph_s))
    return talk(
        f"""
        00:00     | {args(tp_size=1, **arguments)}
        00:09     | Init torch distributed begin.
        00:10     | Init torch distributed ends. elapsed=1.00 s, mem usage=0.09 GB
        00:10     | Load weight begin. avail mem=139.13 GB
        {loaded}     | Load weight end. elapsed={load_s} s, type=Llama, avail mem=130 GB, mem usage=8.52 GB.
        {loaded}     | KV Cache is allocated. dtype: torch.bfloat16, #tokens: 19335, K size: 58.57 GB, V size: 58.57 GB
        {loaded}     | Memory pool end. avail mem=12.19 GB
        {loaded}     | Capture cuda graph begin. This can take up to several minutes. avail mem=11.90 GB
        {end}     | Capture cuda graph end. Time elapsed: {graph_s} s. mem usage=0.41 GB. avail mem=11.79 GB.
        {end}     | The server is fired up and ready to roll!
        """
    ).snapshot


def changes(found) -> dict[str, str]:
    return {change.phase: change.kind for change in found.phases}


@pytest.mark.parametrize(
    ("a", "b", "first", "reason"),
    [
        (PLAIN, DRAFT_WARM, "draft_graph", "speculative_algorithm: unset in A, EAGLE3 in B"),
        (PLAIN, "08-multithread-load-pipe", "target_graph", "disable_piecewise_cuda_graph: False in A, True in B"),
        (DRAFT_COLD, DRAFT_WARM, "target_graph", "silent for 42 s in A, 3.0 s in B"),
        (PLAIN, "06f-sigstop-60s-in-graph-capture", "target_graph", "silent for 3.0 s in A, 60 s in B"),
        (PLAIN_AGAIN, PLAIN, "target_load", "Multi-thread loading shards: 1.0 s in A, 5.0 s in B"),
    ],
    ids=["draft model", "torch.compile", "cold JIT cache", "a stopped process", "cold page cache"],
)
def test_our_recordings_differ_first_where_they_were_made_to_differ(a, b, first, reason):
    found = between(a, b)
    assert found.first == first
    assert reason in found.causes[0].reasons
    assert reason in found.because or len(found.causes[0].reasons) > 2


def test_a_boot_compared_with_itself_differs_in_nothing():
    found = between(PLAIN, PLAIN)
    assert (found.first, found.delta_s, found.facts) == (None, 0.0, ())
    assert set(changes(found).values()) == {"same"}
    assert "No phase changed by more than the usual noise." in found.because


def test_swapping_the_boots_turns_every_sign():
    there, back = between(PLAIN, DRAFT_COLD), between(DRAFT_COLD, PLAIN)
    assert [(c.phase, -(c.delta_s or 0.0)) for c in there.causes] == [(c.phase, c.delta_s) for c in back.causes]
    assert back.delta_s == -there.delta_s


def test_a_change_below_the_assumed_band_is_noise():
    found = compare(boot(40), boot(49))
    assert changes(found)["target_load"] == "noise"
    assert found.first is None
    assert found.assumed


def test_a_band_from_history_takes_the_place_of_the_assumed_one():
    a, b = boot(40), boot(49)
    narrow = compare(a, b, noise={"target_load": Noise(spread_s=3.0, runs=9)})
    assert changes(narrow)["target_load"] == "slower"
    assert narrow.first == "target_load"
    wide = compare(boot(40), boot(70), noise={"target_load": Noise(spread_s=35.0, runs=9)})
    assert changes(wide)["target_load"] == "noise"
    assert "spread of 9 like boots" in compare_text(wide)


def test_the_spread_of_like_boots_is_learned_from_complete_phases_of_three_boots_or_more():
    known = boot(40)
    key = key_of(known)
    assert key is not None

    def past(load_s: float, *, complete: bool = True, cache: str | None = None) -> PastBoot:
        load = PastPhase("target_load", 1, load_s, 1.0, complete=complete, cache=cache)
        return PastBoot(key, None, "ready", 60.0, (load, PastPhase("warmup", 1, 2.0, None, complete=False)))

    learned = noise_of([past(40), past(44), past(43), past(500, complete=False)], known)
    assert learned["target_load"] == Noise(4.0, 3)
    assert "warmup" not in learned
    assert noise_of([past(1), past(2)], known) == {}
    others = [replace(past(90), key=replace(key, exact="x", release="x"))] * 3
    assert "target_load" not in noise_of([past(1), past(2), *others], known)

    rows = tuple(replace(row, cache="warm") if row.phase == "target_load" else row for row in known.phases)
    mixed = [past(4, cache="warm"), past(5, cache="warm"), past(6), past(60, cache="cold")]
    assert noise_of(mixed, replace(known, phases=rows))["target_load"] == Noise(2.0, 3), "a cold cache is no noise"


def test_of_two_kinds_of_boots_the_larger_spread_counts():
    a, b = {"x": Noise(1.0, 3), "y": Noise(5.0, 4)}, {"x": Noise(2.0, 9)}
    assert wider(a, b) == {"x": Noise(2.0, 9), "y": Noise(5.0, 4)}


def test_a_boot_of_the_history_compares_like_its_log():
    log = hear(recording(PLAIN)).snapshot
    kept = remembered(log, "server.log")
    assert kept is not None
    recalled = snapshot_of(kept, patterns())
    same = compare(recalled, log)
    assert (same.delta_s, same.first) == (0.0, None)
    assert [fact.name for fact in same.facts if fact.kind == "argument"] == []
    found = compare(recalled, hear(recording("08-multithread-load-pipe")).snapshot)
    assert (found.first, found.delta_s) == ("target_graph", -12.0)
    assert any(why.startswith("Compiling num tokens (") and "only in A" in why for why in found.causes[0].reasons)


def test_the_argument_that_bears_on_the_phase_is_its_reason():
    found = compare(boot(10, 10, enable_torch_compile=False), boot(10, 50, enable_torch_compile=True))
    assert found.first == "target_graph"
    assert "enable_torch_compile: False in A, True in B" in found.because


def test_a_failed_start_explains_no_times_but_says_where_it_failed():
    found = between(PLAIN, "06e-kill9-scheduler-in-load")
    assert (found.first, found.delta_s) == (None, None)
    assert "A was ready after 40 s. B failed in Target weights" in found.because
    assert changes(found)["target_graph"] == "unfinished"
    line = next(line for line in compare_text(found).splitlines() if "Target CUDA graphs" in line)
    assert line.endswith("not compared: B never began it")
    load = next(line for line in compare_text(found).splitlines() if line.startswith("  Target weights"))
    assert load.endswith("not compared: B did not finish it")


def test_facts_that_differ_are_told_and_those_of_every_boot_are_not():
    found = between(PLAIN, "16b-plain-file")
    names = [fact.name for fact in found.facts]
    assert found.facts[0].kind == "version"
    assert not {"pid", "random_seed", "server_args", "weight_load_s"} & set(names)
    assert "weights_bytes" not in names, "equal sizes are no news"
    memory = {fact.name for fact in found.facts if fact.kind == "memory"}
    assert "graph_mem_bytes" in memory
    assert "kv_tokens" not in memory, "half a per mille less is the same"
    assert all(fact.one_sided for fact in found.facts[names.index("asr_max_buffer_seconds") :])


def test_what_only_one_release_prints_is_one_line():
    found = between(PLAIN, "16b-plain-file")
    text = compare_text(found)
    block = text.partition("Arguments that only one of them prints:")[2].splitlines()
    assert [line.split(":")[0].strip() for line in block if line] == ["only A", "only B"]
    assert all(line.endswith("…") and len(line) < 120 for line in block if line)
    assert "unset" not in text
    assert "|  | `asr_max_buffer_seconds, " in compare_markdown(found)


def test_facts_have_titles_and_arguments_keep_their_names():
    text = compare_text(between(PLAIN, DRAFT_WARM))
    assert "_bytes" not in text
    assert "draft KV tokens" in text
    assert "speculative_algorithm" in text


@pytest.mark.parametrize(
    ("label", "boot", "said"),
    [("app.log", 1, "app.log"), ("app.log#1", 1, "app.log, boot 1"), ("app.log#2", 2, "app.log, boot 2"),
     ("app.log", 2, "app.log, boot 2"), ("run#7", 1, "run#7")],
)  # fmt: skip
def test_both_sides_are_named_alike_whatever_way_their_boots_were_asked_for(label, boot, said):
    assert side_label(Side(label, Outcome.READY, 40.0, None, None, boot)) == said


def test_the_charts_of_a_comparison_ask_what_was_known_before_each_start(tmp_path):
    itself = remembered(hear(recording(PLAIN)).snapshot)
    began_s = itself.past.began_s
    store = Store(tmp_path / "history.db")
    for days in (-3, -2, -1, 1, 2):
        past = replace(itself.past, began_s=began_s + days * 86400)
        store.remember([replace(itself, uid=f"{days}", past=past)], now_s=0.0)
    log = str(FIXTURES / PLAIN / "server.log")
    known = read_boot(patterns(), log, History(log, print, store))
    assert next(row for row in known.phases if row.phase == "target_load").expected.runs == 3


def test_no_change_is_never_red():
    a, b = hear(recording(PLAIN)).snapshot, hear(recording(DRAFT_WARM)).snapshot
    page = compare_page(compare(a, b), a, b)
    row = page.partition('data-phase="draft_kv"')[2].partition("</tr>")[0]
    assert 'class="num delta none">0 s<' in row


def test_a_cache_is_a_reason_only_where_both_boots_show_it():
    def cached(known, cache):
        return replace(known, phases=tuple(replace(row, cache=cache) for row in known.phases))

    one, two = boot(10, 10), boot(10, 60)
    shown = compare(cached(one, "warm"), cached(two, "cold"))
    assert "warm cache in A, cold in B" in shown.causes[0].reasons
    guessed = compare(cached(one, "~warm"), cached(two, "~cold"))
    assert not any("cache" in reason for reason in guessed.causes[0].reasons)


def test_every_form_says_the_same_seconds():
    found = between(PLAIN, DRAFT_WARM)
    data = json.loads(json.dumps(compare_json(found)))
    text, markdown = compare_text(found), compare_markdown(found)
    for change in [*data["phases"], data["between_phases"]]:
        line = next(line for line in text.splitlines() if line.strip().startswith(change["title"]))
        row = next(row for row in markdown.splitlines() if row.startswith(f"| {change['title']} "))
        assert signed(change["delta_s"]) in line
        assert f" {signed(change['delta_s'])} |" in row
    assert data["delta_s"] == 7.0
    assert data["schema"] == "phasetrack.compare/1"
    assert data["causes"][0] == data["first"]
