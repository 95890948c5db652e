"""What goes through the database is opened only with the bot's token, and fits into a notification."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.remote.messages.frames import MalformedError
from bot.shared_log.messages import MOST_LINE_CHARS, LogAnswer, LogRequest
from bot.shared_log.sealed import Seal, answer_seal, fitting, request_seal
from bot.store.dialects.port import MOST_NOTIFICATION_CHARS

TAIL, RUN = "a" * 32, "b" * 16
ANSWER = LogAnswer(RUN, "north", "0-1/4", RUN)


def test_a_message_comes_back_and_its_text_tells_nothing() -> None:
    """It is the same after it was opened, and no word of it stands in the text."""
    request = LogRequest(TAIL, "north", 0.0, session="2026", patterns=("room_*",), last=5, follow=True, seen={RUN: "x"})
    text = request_seal("token").sealed(request)
    assert text is not None
    assert request_seal("token").opened(text, LogRequest) == request
    assert "north" not in text
    assert b"north" not in base64.b64decode(text)


@pytest.mark.parametrize(
    "seal",
    [request_seal("another token"), answer_seal("token", TAIL), Seal("token", "else")],
    ids=["another bot", "an answer", "another purpose"],
)
def test_what_was_sealed_for_something_else_is_not_opened(seal: Seal) -> None:
    """Neither another bot's requests, nor an answer as a request."""
    text = seal.sealed(LogRequest(TAIL, "north", 0.0))
    assert text is not None
    with pytest.raises(MalformedError):
        request_seal("token").opened(text, LogRequest)


@given(st.text())
def test_rubbish_is_refused(text: str) -> None:
    """Whatever another user of the database sends is malformed, and never another error."""
    with pytest.raises(MalformedError):
        request_seal("token").opened(text, LogRequest)


@pytest.mark.parametrize(
    "content",
    [
        b"no compressed text",
        zlib.compress(b"\xff"),
        zlib.compress(b"{}"),
        zlib.compress(b" " * (1 << 20)),
        zlib.compress(json.dumps({"tail": "A" * 32, "machine": "m"}).encode()),
        zlib.compress(json.dumps({"tail": TAIL, "machine": "m", "last": "5"}).encode()),
        zlib.compress(json.dumps({"tail": TAIL, "machine": "m", "patterns": ["*"] * 21}).encode()),
    ],
    ids=["uncompressed", "bytes", "empty", "large", "id", "type", "patterns"],
)
def test_a_message_of_another_form_is_refused(content: bytes) -> None:
    """Also with the right key: another release, or a mistake."""
    seal = request_seal("token")
    text = base64.b64encode(seal._box.encrypt(content)).decode()
    with pytest.raises(MalformedError):
        seal.opened(text, LogRequest)


@given(st.lists(st.text(max_size=3_000), min_size=1, max_size=300))
def test_lines_are_told_in_texts_that_fit(words: list[str]) -> None:
    """All lines are told once and in order, whatever stands in them, each text short enough for a notification."""
    lines = [json.dumps({"timestamp": "t", "event": "spoken", "detail": each})[:MOST_LINE_CHARS] for each in words]
    seal = answer_seal("token", TAIL)
    told: list[str] = []

    def sealed(some: tuple[str, ...]) -> str | None:
        return seal.sealed(LogAnswer(RUN, "north", "0-1/4", RUN, lines=some))

    waiting = [line if line.endswith("}") else json.dumps({"event": "cut"}) for line in lines]
    while waiting:
        count, text = fitting(waiting, sealed)
        assert len(text) <= MOST_NOTIFICATION_CHARS
        told += seal.opened(text, LogAnswer).lines
        del waiting[:count]
    assert len(told) == len(lines)
    assert {json.loads(each)["event"] for each in told} <= {"spoken", "cut"}


def test_a_line_that_does_not_fit_is_cut_with_a_word() -> None:
    """Its event, time and session are told, and how long it was."""
    line = json.dumps({"timestamp": "t", "level": "info", "event": "spoken", "session_id": "s", "detail": "x" * 2_000})
    seal = answer_seal("token", TAIL)

    def sealed(lines: tuple[str, ...]) -> str | None:
        return seal.sealed(LogAnswer(RUN, "north", "0/1", RUN, lines=lines)) if len(lines[0]) < 1_000 else None

    _, text = fitting([line], sealed)
    (told,) = seal.opened(text, LogAnswer).lines
    kept = {"timestamp": "t", "level": "info", "event": "spoken", "session_id": "s"}
    assert json.loads(told) == {**kept, "cut_chars": len(line)}
