"""Why sounds became no turn, in words for people. `/status` and the dashboard count them by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.texts.text import Text, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping

OVERLOADED: Final = "overloaded"
RECOGNISER_FAILED: Final = "recogniser_failed"
# Their person opted out, or had them forgotten, before they had a text.
OPTED_OUT: Final = "opted_out"

# The reasons of `voice.listening.utterance`, of `voice.asr.guards`, and of the room's own.
REASONS: Final = {
    "too_short": Text("too short"),
    "near_silence": Text("too quiet"),
    "empty": Text("without words"),
    "no_speech": Text("not speech"),
    "low_confidence": Text("not understood"),
    "gibberish": Text("letters without words"),
    "repetitive": Text("the same over and over"),
    "glossary": Text("noise that sounded like names"),
    "too_sparse": Text("long, but with few words"),
    "phantom_phrase": Text("noise that sounded like words"),
    "repeated": Text("said twice"),
    "own_voice": Text("my own voice"),
    OVERLOADED: Text("too many at once"),
    RECOGNISER_FAILED: Text("the speech recogniser failed"),
    OPTED_OUT: Text("from people who used /opt-out"),
}


def reasons_text(dropped: Mapping[str, int]) -> Text:
    """Return how many sounds were left out for each reason, the most frequent first; empty if there were none."""
    by_count = sorted(dropped.items(), key=lambda each: -each[1])
    return joined(
        (
            Text("{reason}: {number}", number=number, reason=REASONS.get(reason) or verbatim(reason))
            for reason, number in by_count
        ),
        ", ",
    )
