"""The text of the notice: what always stands in it."""

from __future__ import annotations

import pytest

from bot.room.notice import ALL_LOCAL, ASKING, COMMANDS, NO_MARK, ListeningNotice, Recipient
from bot.settings import DEFAULT_NOTICE, RoomSettings
from bot.texts.text import verbatim

RECOGNISER = Recipient(verbatim("the sound of your voice"), "asr.example.org", verbatim("recogniser whisper-1"))
MODEL = Recipient(verbatim("what is said, as text"), "api.openai.com", verbatim("language model gpt-4.1-mini"))


def test_the_notice_names_everybody_who_gets_a_part() -> None:
    """Every recipient is named once with what it gets; without any, the notice says that nothing leaves."""
    text = ListeningNotice("I listen.", (RECOGNISER, MODEL, MODEL)).written()
    assert text.startswith("I listen.\n")
    assert "the sound of your voice to asr.example.org (recogniser whisper-1)" in text
    assert text.count("api.openai.com") == 1
    assert ALL_LOCAL not in text
    assert ALL_LOCAL in ListeningNotice("I listen.").written()


@pytest.mark.parametrize("wording", ["", "  \n ", "Hello."])
def test_no_wording_removes_the_facts(wording: str) -> None:
    """The facts and the commands stay, whatever the operator writes; an empty wording becomes the default."""
    notice = ListeningNotice(RoomSettings(notice=wording).notice, (MODEL,))
    assert notice.written().startswith(wording.strip() or DEFAULT_NOTICE)
    assert all(part in notice.written() for part in ("api.openai.com", COMMANDS))
    assert "api.openai.com" in " ".join(notice.spoken())


def test_where_people_must_agree_the_notice_says_so() -> None:
    """Where the bot asks, the notice says that it hears only those who press the button."""
    notice = ListeningNotice("I listen.")
    assert ASKING in notice.written(asks=True)
    assert ASKING not in notice.written()


def test_a_mark_that_failed_is_told_with_its_remedy() -> None:
    """If nothing marks the bot as listening, the notice says which permission is missing."""
    notice = ListeningNotice("I listen.")
    assert NO_MARK in notice.written(marked=False)
    assert NO_MARK not in notice.written(marked=True)
