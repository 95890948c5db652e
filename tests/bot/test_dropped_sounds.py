"""Why sounds became no turn, in words for people."""

from __future__ import annotations

from bot.dropped_sounds import REASONS, reasons_text
from bot.texts.text import in_language
from voice.asr.guards import GuardReason
from voice.listening.utterance import DropReason


def test_each_reason_has_words() -> None:
    """Whatever the parts of a room give as a reason has words, and metrics begin with all of them."""
    assert {*DropReason, *GuardReason} <= set(REASONS)


def test_what_was_left_out_is_told_in_the_language_of_the_server() -> None:
    assert reasons_text({"repeated": 2}) == "said twice: 2"
    assert in_language(reasons_text({"repeated": 2}), "de") != "said twice: 2"
