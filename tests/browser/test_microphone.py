"""The page with a microphone in a real browser: it hears a recording, and the bot answers aloud."""

from __future__ import annotations

from pathlib import Path

from tests.browser.microphone import hearing, opened, served
from tests.node.packages import installed_packages

REFUSE = "navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'))"


async def test_somebody_talks_with_the_bot(tmp_path: Path, whisper_model_dir: Path) -> None:
    """The recording's words stand on the page, with what was decided, remembered and answered, and the answer is
    played. Meanwhile nobody else can talk, and a microphone that is refused is told with the remedy.
    """
    axe = (installed_packages() / "axe-core" / "axe.min.js").read_text("utf-8")
    async with served(tmp_path / "bot") as link, hearing(tmp_path, "1-ada.ogg", pause_s=20.0) as chromium:
        refused = await opened(chromium, link, script=REFUSE)
        assert "allow it" in await refused.inner_text("#state[data-bad]")
        page = await opened(chromium, link)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        await page.locator(".person", has_text="good to have you here").wait_for()
        await page.locator(".why", has_text="It answers: ").wait_for()
        await page.locator(".bot").first.wait_for()
        await page.wait_for_selector("body[data-played]")
        assert "word for word" in await page.inner_text("#turns")
        second = await opened(chromium, link)
        assert "another page" in await second.inner_text("#state[data-bad]")
        await page.evaluate(axe)
        violations = (await page.evaluate("axe.run({resultTypes: ['violations']})"))["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == []
        await page.click("#talk")
        await page.wait_for_selector("body[data-state=silent]")
        assert complaints == []
