"""Log events contain names and figures, but no speech and no secrets."""

from __future__ import annotations

import ast
import dataclasses
import json
import logging
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.errors import BotError, SetupError
from bot.llm.endpoint_errors import translate_error
from bot.logs.redaction import NAME_KEYS, REDACTED, LogRedactor, describe_library_message, describe_traceback
from compaction.errors import StoreError
from compaction.events import CompactionEvent
from compaction.payload import context_built_fields
from tests.growth import LINEAR, cpu_growth
from tests.sources import ROOT, nodes
from voice.errors import VoiceError

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("token", "abcdef"),
        ("bot_token", "abcdef"),
        ("Authorization", "Bearer abcdef"),
        ("api_key", ["abcdef"]),
        ("openai_apikey", "abcdef"),
        ("secret_key", b"abcdef"),
        ("client_secret", {"x": "abcdef"}),
        ("anything", SecretStr("abcdef")),
        ("headers", {"authorization": "abcdef", "x": {"password": "abcdef"}}),
        ("path", "wss://host/?token=sk-abcdef-abcdef"),
        ("detail", f"401 for {TOKEN}"),
        ("detail", "Authorization: Bearer abcdef-abcdef"),
        ("detail", ["it was hunter-two-three"]),
    ],
)
def test_secrets_never_pass(field: str, value: object) -> None:
    """Secrets are recognised by the name of their field, by their shape or because they are known."""
    written = LogRedactor(["hunter-two-three", "short"])(None, "", {"event": "x", field: value})
    shown = json.dumps(written)
    assert "abcdef" not in shown
    assert TOKEN not in shown
    assert "hunter" not in shown
    assert REDACTED in shown


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "a_", "a-", f"{'a' * 20}.", "sk-", "xoxb-", "Bearer ", "Bot a.", "1 "])
def test_a_long_text_is_looked_through_in_time(unit: str) -> None:
    """Twice the text takes less than three times the CPU time, whatever it is: a long word held up the event loop."""
    redactor = LogRedactor()
    assert cpu_growth(lambda text: redactor(None, "", {"detail": text}), unit) < LINEAR


def test_figures_about_tokens_and_speech_pass() -> None:
    """Counts, durations and ids are logged unchanged."""
    fields = {
        "event": "model_context_built",
        "prompt_tokens": 1200,
        "token": 3,
        "summary_chars": 40,
        "summary_revision": 2,
        "text": None,
        "model_first_token_ms": 80.5,
        "tokens_by_part": {"summary": 300, "notes": 20},
        "utterance_id": "u1",
        "reason": "below_threshold",
        "end_to_text_ms": 510,
        "ok": True,
    }
    assert LogRedactor()(None, "", dict(fields)) == fields


@pytest.mark.parametrize("field", ["text", "gist", "facts", "problem", "value", "line", "error", "anything_new"])
def test_text_stays_out_unless_its_key_is_listed(field: str) -> None:
    """Of a text whose key is not on the list, the log has type and length."""
    event = {"event": "x", "payload": [{field: "we meet at nine"}], field: ["we", "meet"]}
    withheld = LogRedactor()(None, "", dict(event))
    assert withheld == {"event": "x", "payload": [{field: "[str of 15 withheld]"}], field: "[list of 2 withheld]"}


@pytest.mark.parametrize("key", sorted(NAME_KEYS))
def test_a_listed_name_has_no_spaces(key: str) -> None:
    """A value under a key for names is logged if it is one word, and withheld if it is a sentence."""
    event = {key: "voice-1", "event": "x"}
    assert LogRedactor()(None, "", dict(event))[key] == event[key]
    assert LogRedactor()(None, "", {key: "we meet at nine"})[key] == "[str of 15 withheld]"


def test_names_of_nested_fields_are_no_sentences() -> None:
    """A dict with sentences as keys is logged without them."""
    event = {"counts": {"we meet at nine": 1, "notes": 2}}
    assert LogRedactor()(None, "", dict(event)) == {"counts": {"[str of 15 withheld]": 1, "notes": 2}}


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (StoreError("The disk is full."), "The disk is full."),
        (SetupError("'we meet' is no time I don't know, 'at nine' neither."), "[44 characters withheld] neither."),
        (
            VoiceError('It can\'t: it said "we meet at nine". Try again.'),
            "It can't: it said [17 characters withheld]. Try again.",
        ),
        (
            BotError("It refused: “we meet “at” nine”; ask its server."),
            "It refused: [19 characters withheld]; ask its server.",
        ),
        (BotError("It refused: 'we meet at ni"), "It refused: [14 characters withheld]"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (OSError("we meet at nine"), "OSError"),
        (KeyError("we meet at nine"), "KeyError"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_errors_of_ours_are_told_without_quotes(error: Exception, logged: str) -> None:
    """An error of ours is logged with its sentence, less what it quotes; one of the system with the system's words; any
    other with its type.
    """
    assert LogRedactor()(None, "", {"problem": error}) == {"problem": logged}


def test_a_server_that_echoes_the_request_is_not_quoted() -> None:
    """What an endpoint answers to a refused request may repeat the prompt, so the log leaves it out."""
    response = httpx2.Response(400, request=httpx2.Request("POST", "http://models.test/v1"))
    refused = openai.BadRequestError(
        "x", response=response, body={"message": "Can't take 'we meet at nine' or \"Ada\""}
    )
    error = translate_error(refused, model="small", where="http://models.test/v1")
    assert "we meet at nine" in str(error)
    logged = LogRedactor()(None, "", {"problem": error})["problem"]
    assert "meet" not in logged
    assert "Ada" not in logged
    assert logged.endswith("Check llm.model and that its context is large enough.")


@pytest.mark.parametrize(
    ("message", "arguments", "detail"),
    [
        ("Unclosed client session", (), "Unclosed client session [str of 23 withheld]"),
        (
            "Task exception was never retrieved\nfuture: KeyError('nine')",
            (),
            "Task exception was never retrieved [str of 59 withheld]",
        ),
        ("we meet at nine", (), "[str of 15 withheld]"),
        ("Shard %s took %d ms", ("nine", 12), "Shard [str of 4 withheld] took 12 ms"),
        ("%(who)s left", ({"who": "Ada"},), "[str of 3 withheld] left"),
        ("%d left", ("Ada",), "%d left"),
        ("Failed: %s", (KeyError("nine"),), "Failed: KeyError"),
        ("Object %r", (object(),), "Object '<object>'"),
    ],
)
def test_library_messages_keep_their_constant_part(message: str, arguments: tuple[object, ...], detail: str) -> None:
    """Of a library's message only the constant part and numbers are logged."""
    record = logging.LogRecord("lib", logging.WARNING, "f.py", 1, message, arguments, None)
    assert describe_library_message(record, record.args) == detail


def test_errors_that_cause_each_other_are_each_told_once() -> None:
    """Libraries raise kept errors again, so a chain of causes may lead back to its beginning."""
    first, second = StoreError("The disk is full."), StoreError("The room cannot go on.")
    first.__cause__, second.__cause__ = second, first
    told = describe_traceback((StoreError, first, None))
    assert [told.count(str(each)) for each in (first, second)] == [1, 1]


@cache
def method_calls(package: str) -> Sequence[tuple[str, str, ast.Call]]:
    """Return the calls of methods that a log has: where each is, what it is a method of, and the call."""
    return [
        (f"{path.relative_to(ROOT)}:{call.lineno}", ast.unparse(call.func.value), call)
        for path in (ROOT / package).rglob("*.py")
        for call in nodes(path)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"debug", "info", "warning", "error", "exception", "critical", "bind"}
    ]


@pytest.mark.slow
def test_every_key_for_names_is_one_of_some_line() -> None:
    """A key that no line has any more would let through what a later line has under it."""
    calls = chain.from_iterable(map(method_calls, ("bot", "compaction", "voice", "rehearsal")))
    in_calls = {each.arg for *_, call in calls for each in call.keywords}
    in_compactions = {each.name for kind in get_args(CompactionEvent) for each in dataclasses.fields(kind)}
    by_the_log_itself = {"event", "level", "location", "logger", "timestamp"}
    assert (
        NAME_KEYS - in_calls - in_compactions - by_the_log_itself - context_built_fields((), summary_revision=0).keys()
        == set()
    )


def test_objects_show_their_type_alone() -> None:
    """An object is logged as its type name, without calling repr(), and deeply nested values are cut."""

    class Session:
        def __repr__(self) -> str:
            raise AssertionError("repr of a session leaks")

    deep: Any = "bottom"
    for _ in range(10):
        deep = [deep]
    written = LogRedactor()(None, "", {"event": "x", "dave": Session(), "deep": deep, "at": Path("/a")})
    assert written["dave"] == "<Session>"
    assert written["at"] == "/a"
    assert "bottom" not in json.dumps(written)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.binary(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    )
)
def test_any_value_can_be_written(value: object) -> None:
    """Every value can be written as JSON after redaction."""
    json.dumps(LogRedactor(["12345678"])(None, "", {"event": "x", "value": value}))
