"""Whether words spoken over the bot are a backchannel, a request to stop, or something else."""

from __future__ import annotations

import pytest

from voice.speaking.backchannel import OverlapIntent, classify_overlap

M = OverlapIntent


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Mm-hm.", M.CONTINUE),
        ("Mhm, yeah.", M.CONTINUE),
        ("Hahahaha!", M.CONTINUE),
        ("[laughter]", M.CONTINUE),
        ("(coughs)", M.CONTINUE),
        ("Okay, right.", M.CONTINUE),
        ("Oh wow, nice.", M.CONTINUE),
        ("That's right.", M.CONTINUE),
        ("…", M.CONTINUE),
        ("", M.CONTINUE),
        ("Yeah yeah yeah yeah yeah.", M.YIELD),
        ("No.", M.YIELD),
        ("What?", M.YIELD),
        ("Yes, but we leave on Friday.", M.YIELD),
        ("Good morning everybody", M.YIELD),
        ("Stop!", M.STOP),
        ("Shut up.", M.STOP),
        ("Hold on", M.STOP),
        ("That’s enough.", M.STOP),
        ("Don't stop.", M.YIELD),
        ("We could wait.", M.YIELD),
        ("Ach so.", M.CONTINUE),
        ("D'accord.", M.CONTINUE),
        ("Sí, claro.", M.CONTINUE),
        ("Warte mal!", M.STOP),
        ("Stopp!", M.STOP),
        ("¡Cállate!", M.STOP),
        ("Aspetta un attimo", M.STOP),
        ("Ja, aber nicht heute.", M.YIELD),
    ],
)
def test_words_say_go_on_make_room_or_be_silent(text: str, meaning: OverlapIntent) -> None:
    """Backchannels let the bot go on, a short 'stop' asks for silence, and any other speech takes the turn."""
    assert classify_overlap(text) is meaning
