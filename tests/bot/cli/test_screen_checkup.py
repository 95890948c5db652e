"""What `roomtone doctor` reports about shared screens."""

from __future__ import annotations

import pytest

from bot.cli.checks import Status, check_screens
from bot.settings import WebSettings
from voice.screen.settings import ScreenSettings

OFF, MODEL = ScreenSettings(enabled=False), ScreenSettings(model="eyes")


@pytest.mark.parametrize(
    ("screen", "url", "installed", "status", "told"),
    [
        (ScreenSettings(), "", True, Status.OK, "on this machine alone"),
        (ScreenSettings(), "https://watch.example.org", True, Status.OK, "pages at https://watch.example.org"),
        (ScreenSettings(), "http://localhost:8095", True, Status.OK, "embedded reading"),
        (ScreenSettings(), "http://watch.example.org", True, Status.WARNING, "not https"),
        (ScreenSettings(), "", False, Status.WARNING, "nothing reads them"),
        (MODEL, "", False, Status.WARNING, "the vision model alone"),
        (MODEL, "", True, Status.OK, "the vision model eyes"),
        (OFF, "", False, Status.OK, "switched off"),
    ],
)
def test_screens(screen: ScreenSettings, url: str, installed: bool, status: Status, told: str) -> None:
    """A finding about screens is at most a warning, and each warning has a remedy."""
    finding = check_screens(screen, WebSettings(public_url=url), installed=installed)
    assert finding.status is status
    assert told in finding.detail
    assert bool(finding.remedy) is (status is Status.WARNING)
