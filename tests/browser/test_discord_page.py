"""The page of the README's picture of Discord: what a bot posts is text, whatever it contains."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from tests.browser.discord_page import Column, Shown, discord_page

HOSTILE = '<img src=x onerror=alert(1)> **<script>x</script>** `<b>` <@1> <t:0:f> \\*as it is\\* \\<i> \0 0" style="x'
NAMES = {1: "<script>Ada</script>"}


def message(text: str) -> dict[str, Any]:
    return {
        "author": {"global_name": text},
        "timestamp": "2026-01-02T20:15:00+00:00",
        "flags": 64,
        "content": text,
        "embeds": [{"title": text, "description": f"- {text}\n- {text}", "fields": [{"name": text, "value": text}]}],
        "components": [{"components": [{"style": 3, "label": text}]}],
    }


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, frozenset[str]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag with the names of its attributes."""
        self.seen.add((tag, frozenset(name for name, _ in attrs)))


def test_what_is_posted_makes_no_markup() -> None:
    """Hostile words add no tag and no attribute to those of the page, wherever they stand."""
    kinds = []
    for text, names in (("**a** *b* `c` <@1> <t:0:f>", {1: "Ada"}), (HOSTILE, NAMES)):
        tags = _Tags()
        column = Column(text, text, [Shown(message(text), (text, text))])
        tags.feed(page := discord_page([column], names))
        kinds.append(tags.seen)
        assert "<script" not in page
    assert kinds[1] <= kinds[0]


def test_discords_markdown_is_drawn() -> None:
    """Mentions, times, emphasis and lists look as in Discord; what stands behind a backslash is as it is."""
    page = discord_page([Column("Lounge", "all", [Shown(message("- **Ada:** \\*hm\\* <@2> <t:60:t>"))])], {2: "Ben"})
    for drawn in (
        '<span class="item"><b>Ada:</b> *hm* ',
        '<span class="mention">@Ben</span>',
        '<span class="time">0:01</span>',
    ):
        assert drawn in page
