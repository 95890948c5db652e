"""The text of the notice: what always stands in it."""

from __future__ import annotations

import re

import pytest

from bot.channel.port import ListenRequest
from bot.room.notice import (
    ALL_LOCAL,
    ASKING,
    CHAT_READ,
    CHAT_READ_ALOUD,
    COMMANDS,
    DEFAULT_NOTICE,
    HEARD_IS_READ,
    MANAGERS_READ,
    NO_MARK,
    OTHERS_READ,
    ListeningNotice,
    Recipient,
)
from bot.server_settings import ServerSettings
from bot.texts.text import verbatim

RECOGNISER = Recipient(verbatim("the sound of your voice"), "asr.example.org", verbatim("recogniser whisper-1"))
MODEL = Recipient(verbatim("what is said, as text"), "api.openai.com", verbatim("language model gpt-4.1-mini"))


def test_the_notice_names_everybody_who_gets_a_part() -> None:
    """Every recipient is named once with what it gets; without any, the notice says that nothing leaves."""
    text = ListeningNotice((RECOGNISER, MODEL, MODEL)).written()
    assert text.startswith(f"{DEFAULT_NOTICE}\n")
    assert "the sound of your voice to asr.example.org (recogniser whisper-1)" in text
    assert text.count("api.openai.com") == 1
    assert ALL_LOCAL not in text
    assert ALL_LOCAL in ListeningNotice().written()


@pytest.mark.parametrize("wording", [None, "Hello."])
def test_no_wording_removes_the_facts(wording: str | None) -> None:
    """The facts and the commands stay, whatever the server writes."""
    notice = ListeningNotice((MODEL,)).for_room(ServerSettings(notice=wording))
    assert notice.written().startswith(wording or DEFAULT_NOTICE)
    assert all(part in notice.written() for part in ("api.openai.com", COMMANDS))
    assert "This leaves the machine that I run on: what is said, as text to api.openai.com." in " ".join(
        notice.spoken()
    )


def test_where_people_must_agree_the_notice_says_so() -> None:
    """Where the bot asks, the notice says that it hears only those who press the button."""
    notice = ListeningNotice()
    assert ASKING in notice.written(asks=True)
    assert ASKING not in notice.written()


LISTENS = "I only write down what is said"


@pytest.mark.parametrize(
    ("listen", "where"),
    [
        (ListenRequest("file", 7), "post it in this chat as a file when I leave"),
        (ListenRequest("thread", 7), "in a thread of <#7>"),
        (None, None),
    ],
)
@pytest.mark.parametrize("wording", [None, "Hear ye."])
def test_a_room_that_only_writes_down_says_so_and_where(
    listen: ListenRequest | None, where: str | None, wording: str | None
) -> None:
    """In writing and aloud, below the server's own sentences; without such, nothing says that the bot answers.

    Aloud it does not say where: a voice reads no mention of a channel, and what cannot be written is not promised.
    """
    notice = ListeningNotice().for_room(ServerSettings(notice=wording), listen=listen)
    written, spoken = str(notice.written()), " ".join(map(str, notice.spoken()))
    for told in (written, spoken):
        assert told.startswith(wording or ("I am listening" if listen else DEFAULT_NOTICE))
        assert (LISTENS in told) is (listen is not None)
        assert listen is None or DEFAULT_NOTICE not in told
    assert where is None or where in written
    assert not {"<", "#", "post", "thread"}.intersection(re.findall(r"\w+|\S", spoken))


def test_a_mark_that_failed_is_told_with_its_remedy() -> None:
    """If nothing marks the bot as listening, the notice says which permission is missing."""
    notice = ListeningNotice()
    assert NO_MARK in notice.written(marked=False)
    assert NO_MARK not in notice.written(marked=True)


def test_the_notice_says_who_may_read_what_is_said() -> None:
    """Those who are there, always; others if the server has opened its history, or answers in a text channel. It is
    then another notice.
    """
    closed = ListeningNotice().for_room(ServerSettings())
    managers = closed.for_room(ServerSettings(opens_history=True))
    role = closed.for_room(ServerSettings(opens_history=True, history_role=77))
    assert all(HEARD_IS_READ in str(each.written()) for each in (closed, managers, role))
    assert [MANAGERS_READ in str(each.written()) for each in (closed, managers, role)] == [False, True, False]
    assert ["<@&77>" in str(each.written()) for each in (closed, managers, role)] == [False, False, True]
    assert [OTHERS_READ in each.spoken() for each in (closed, managers, role)] == [False, True, True]
    chat = closed.for_room(ServerSettings(chat_channel=601))
    assert CHAT_READ.fill(channel=verbatim("<#601>")) in str(chat.written())
    assert CHAT_READ_ALOUD in chat.spoken()
    assert len({each.digest() for each in (closed, managers, role, chat)}) == 4
