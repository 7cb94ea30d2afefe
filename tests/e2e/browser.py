"""A real headless Chromium, driven by Debian's chromedriver; it may load nothing from anywhere."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """Start one; skipped only where none is installed."""
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no chromium with its chromedriver here (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield started
    finally:
        started.quit()


def show(
    page: Chrome, file: Path, *, width: int = 1280, dark: bool = False, media: str = "screen", scripts: bool = True
) -> None:
    """Open a file as a person with such a screen would."""
    page.get_log("performance"), page.get_log("browser")
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    page.get(file.as_uri())


def complaints(page: Chrome) -> list[str]:
    """What the console holds."""
    return [entry["message"] for entry in page.get_log("browser")]


def requests(page: Chrome) -> list[str]:
    """Every address that was asked for since the page was opened."""
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def faults(page: Chrome) -> list[str]:
    """What axe-core finds wrong for people who cannot see, or cannot use a mouse."""
    found: dict[str, Any] = Axe().run(page, options={"resultTypes": ["violations"]})  # the rest takes thrice as long
    return [f"{v['id']}: {node['html'][:160]}" for v in found["violations"] for node in v["nodes"]]
