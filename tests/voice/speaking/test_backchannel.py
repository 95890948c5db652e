"""What words over the bot's own ask of it."""

from __future__ import annotations

import pytest

from voice.speaking.backchannel import OverlapIntent, classify_overlap

M = OverlapIntent


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Mm-hm.", M.GO_ON),
        ("Mhm, yeah.", M.GO_ON),
        ("Hahahaha!", M.GO_ON),
        ("[laughter]", M.GO_ON),
        ("(coughs)", M.GO_ON),
        ("Okay, right.", M.GO_ON),
        ("Oh wow, nice.", M.GO_ON),
        ("That's right.", M.GO_ON),
        ("…", M.GO_ON),
        ("", M.GO_ON),
        ("Yeah yeah yeah yeah yeah.", M.MAKE_ROOM),
        ("No.", M.MAKE_ROOM),
        ("What?", M.MAKE_ROOM),
        ("Yes, but we leave on Friday.", M.MAKE_ROOM),
        ("Good morning everybody", M.MAKE_ROOM),
        ("Stop!", M.BE_SILENT),
        ("Shut up.", M.BE_SILENT),
        ("Hold on", M.BE_SILENT),
        ("That’s enough.", M.BE_SILENT),
        ("Don't stop.", M.MAKE_ROOM),
        ("We could wait.", M.MAKE_ROOM),
        ("Ach so.", M.GO_ON),
        ("D'accord.", M.GO_ON),
        ("Sí, claro.", M.GO_ON),
        ("Warte mal!", M.BE_SILENT),
        ("¡Cállate!", M.BE_SILENT),
        ("Aspetta un attimo", M.BE_SILENT),
        ("Ja, aber nicht heute.", M.MAKE_ROOM),
    ],
)
def test_words_say_go_on_make_room_or_be_silent(text: str, meaning: OverlapIntent) -> None:
    """Listeners' noises want no floor, a short 'stop' wants silence, everything else wants to be heard."""
    assert classify_overlap(text) is meaning
