"""The HTML report in a real browser: its numbers, its keys, its silence on the network, its accessibility."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from phasetrack.core.compare import compare
from phasetrack.core.say import duration
from phasetrack.views.compare import compare_json, compare_page, signed
from phasetrack.views.jsonl import snapshot_json
from phasetrack.views.page import report_page
from tests.e2e.browser import chromium, complaints, faults, requests, show
from tests.talk import args, hear, recording, recordings, talk

PLAIN, TWO_RANKS, FAILED = "01-plain-file", "07b-tp2-eagle3-pipe", "06e-kill9-scheduler-in-load"

_ROWS = """
return [...document.querySelectorAll('tr.phase')].map(row => {
  const text = name => { const cell = row.querySelector('.' + name); return cell ? cell.textContent.trim() : ''; };
  const span = row.querySelector('rect.span'), axis = document.querySelector('th.lane svg');
  const lane = axis && axis.getBoundingClientRect();
  const box = span && span.getBoundingClientRect();
  return {phase: row.dataset.phase, occurrence: Number(row.dataset.occurrence), elapsed_s: row.dataset.elapsedS,
    title: row.querySelector('a').textContent, begin: text('begin'), elapsed: text('elapsed'), share: text('share'),
    progress: text('progress'), ranks: text('ranks'), silent: text('silent'),
    left: box && (box.left - lane.left) / lane.width, wide: box && box.width / lane.width};
});
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The page of a log, written once."""
    folder, written = tmp_path_factory.mktemp("pages"), {}

    def file(name: str, text: str | None = None):
        if name not in written:
            written[name] = folder / f"{name}.html"
            written[name].write_text(text or report_page(hear(recording(name)).snapshot), encoding="utf-8")
        return written[name]

    return file


def zoomed(page) -> tuple[float, float]:
    return tuple(page.execute_script("const d = document.querySelector('.gantt').dataset; return [+d.from, +d.to]"))


def press(page, *keys: str) -> None:
    ActionChains(page).send_keys(*keys).perform()


@pytest.mark.parametrize("name", recordings())
def test_every_number_on_the_page_is_that_of_the_json(page, files, name):
    known = snapshot_json(hear(recording(name)).snapshot)
    show(page, files(name))
    shown = {(row["phase"], row["occurrence"]): row for row in page.execute_script(_ROWS)}
    assert len(shown) == len(known["phases"])
    for row in known["phases"]:
        cell = shown[row["phase"], row["occurrence"]]
        begun = row["status"] not in {"pending", "skipped"}
        assert cell["title"] == row["title"]
        assert cell["elapsed"].removeprefix("~") == (duration(row["elapsed_s"]) if begun else "")
        assert (float(cell["elapsed_s"]) if cell["elapsed_s"] else None) == row["elapsed_s"]
        assert cell["elapsed"].startswith("~") == (begun and row["basis"] == "inferred")
        if begun and row["began"]:
            assert cell["begin"] == row["began"][11:19]
        numbers = re.findall(r"\d+", cell["progress"])
        progress = row["progress"]
        assert numbers == ([] if progress is None else [f"{progress['done']:g}", f"{progress['total']:g}"])
        assert cell["ranks"] == (f"{row['ranks_done']}/{row['ranks_seen']}" if row["ranks_seen"] > 1 else "")
    text = page.find_element("tag name", "main").text
    if known["startup_s"] is not None:
        assert duration(known["startup_s"]) in page.find_element("tag name", "h1").text
    if known["failure"] is not None:
        assert f"line {known['failure']['line']}" in text
        assert known["failure"]["message"][:60] in text
    assert duration(known["between_phases_s"]) in text
    assert complaints(page) == []


@pytest.mark.parametrize("name", [PLAIN, TWO_RANKS])
def test_bars_stand_where_their_times_say(page, files, name):
    heard = hear(recording(name)).snapshot
    show(page, files(name))
    length = page.execute_script("return +document.querySelector('.gantt').dataset.length")
    for drawn in page.execute_script(_ROWS):
        row = next(r for r in heard.phases if (r.phase, r.occurrence) == (drawn["phase"], drawn["occurrence"]))
        if drawn["left"] is not None:
            assert drawn["left"] == pytest.approx((row.began_s - heard.started_at_s) / length, abs=0.005)
            assert drawn["wide"] == pytest.approx(row.elapsed_s / length, abs=0.005)


def test_nothing_is_asked_of_the_network(page, files):
    show(page, files(PLAIN))
    assert {url.partition(":")[0] for url in requests(page)} <= {"file", "data"}
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", files(PLAIN).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", recordings())
def test_a_page_is_well_below_half_a_megabyte(files, name):
    assert files(name).stat().st_size < 150_000


def test_keys_zoom_and_move_the_time_line(page, files):
    show(page, files(PLAIN))
    whole = zoomed(page)
    press(page, "+")
    near = zoomed(page)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2, abs=0.01)
    press(page, Keys.ARROW_RIGHT)
    assert zoomed(page)[0] > near[0]
    press(page, Keys.ARROW_LEFT, "-", "-")
    assert zoomed(page) == whole
    press(page, "+", "+", "0")
    assert zoomed(page) == whole


def test_arrow_keys_walk_over_the_phases(page, files):
    show(page, files(PLAIN))
    press(page, Keys.TAB)
    press(page, "+", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.switch_to.active_element.text == "Distributed init"
    press(page, Keys.ARROW_UP)
    assert page.switch_to.active_element.text == "Start processes"


def test_buttons_and_a_drag_zoom_too(page, files):
    show(page, files(PLAIN))
    whole = zoomed(page)
    page.find_element("css selector", "[data-zoom=in]").click()
    assert zoomed(page)[1] - zoomed(page)[0] < whole[1] - whole[0]
    page.find_element("css selector", "[data-zoom=all]").click()
    lane = page.find_element("css selector", "tr.phase td.lane svg")
    wide = lane.size["width"]
    drag = ActionChains(page).move_to_element_with_offset(lane, -wide // 4, 0).click_and_hold()
    drag.move_by_offset(wide // 4, 0).release().perform()
    near = zoomed(page)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 4, rel=0.05)
    assert near[0] == pytest.approx(whole[1] / 4, rel=0.05)


def test_labels_of_the_time_line_follow_the_zoom(page, files):
    show(page, files(PLAIN))
    labels = "return [...document.querySelectorAll('.axis text')].map(text => text.textContent)"
    assert page.execute_script(labels)[0] == "0"
    press(page, "+", "+", "+")
    assert all(label.endswith(" s") for label in page.execute_script(labels))
    assert len(page.execute_script(labels)) >= 2


def test_pointing_at_a_bar_says_what_it_is(page, files):
    show(page, files(PLAIN))
    ActionChains(page).move_to_element(page.find_element("css selector", "#phase-3 rect.span")).perform()
    said = page.find_element("css selector", ".cross output").text
    assert "64/64" in said
    assert re.search(r"15:42:2\d", said)


def test_without_scripts_it_is_a_picture_with_tables(page, files):
    show(page, files(PLAIN), scripts=False)
    try:
        assert not page.find_element("css selector", ".tools").is_displayed()
        assert page.find_element("css selector", "#phase-3 rect.span").size["width"] > 20
        assert page.find_element("css selector", "#phase-3 .elapsed").text == "6.0 s"
        assert page.find_element("css selector", ".axis text").text == "0"
    finally:
        show(page, files(PLAIN))


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("name", [PLAIN, TWO_RANKS, FAILED])
def test_nothing_is_wider_than_the_screen(page, files, name, width):
    show(page, files(name), width=width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("name", "dark", "width"), [(TWO_RANKS, True, 390), (FAILED, False, 1280), (FAILED, True, 768)]
)
def test_axe_finds_nothing(page, files, name, dark, width):
    show(page, files(name), dark=dark, width=width)
    assert faults(page) == []


def test_axe_finds_nothing_with_everything_unfolded(page, files):
    show(page, files(TWO_RANKS))
    page.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert faults(page) == []


def test_dark_and_light_differ_and_print_is_on_white(page, files):
    def paper() -> str:
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    show(page, files(PLAIN))
    light = paper()
    show(page, files(PLAIN), dark=True)
    assert paper() != light
    show(page, files(PLAIN), media="print")
    assert paper() == "rgb(255, 255, 255)"
    assert not page.find_element("css selector", ".tools").is_displayed()


EVIL = (
    "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"' onmouseover='window.pwned=1' </style>{{7*7}}"
)


def test_markup_in_a_log_stays_text(page, files):
    log = talk(
        f"""
        42:00     | {args(model_path=EVIL, tp_size=2, served_model_name=EVIL)}
        42:09 TP0 | Load weight begin. avail mem=139.13 GB
        42:20 TP0 | Scheduler hit an exception: Traceback (most recent call last):
                  |   File "/opt/site/sglang/srt/managers/scheduler.py", line 1, in {EVIL}
                  | ValueError: {EVIL}
        """
    )
    hostile = report_page(log.snapshot)
    assert (
        "49" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", hostile, flags=re.DOTALL).split("7*7")[1][:6]
    )
    show(page, files("hostile", hostile))
    assert page.execute_script("return window.pwned") is None
    assert EVIL in page.find_element("css selector", ".message").text
    assert page.execute_script("return document.querySelectorAll('img, script').length") == 1, "our own script"
    assert complaints(page) == []


def test_a_comparison_shows_the_seconds_of_its_json(page, files):
    a, b = (hear(recording(name)).snapshot for name in (PLAIN, "03b-eagle3-pipe"))
    found = compare(a, b)
    data = compare_json(found)
    show(page, files("compare", compare_page(found, a, b)))
    rows = page.find_elements("css selector", ".changes tbody tr[data-phase]")
    shown = {row.get_attribute("data-phase"): row.find_elements("class name", "num")[-1].text for row in rows}
    assert shown == {c["phase"]: signed(c["delta_s"]) for c in [*data["phases"], data["between_phases"]]}
    assert page.find_element("tag name", "h1").text.startswith("+7.0 s")
    assert complaints(page) == []
    assert faults(page) == []
    show(page, files("compare"), width=390, dark=True)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    assert faults(page) == []
