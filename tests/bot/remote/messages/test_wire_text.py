"""Texts on the wire: they can still be translated at the other end, and a hostile one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import SetupError
from bot.remote.messages.wire_text import text_from_json, text_to_json
from bot.texts.text import Text, counted, in_language, joined, verbatim
from voice.errors import LinkError


def sent(text: str) -> Text:
    """Return a text as the other process has it."""
    return text_from_json(json.loads(json.dumps(text_to_json(text))))


@pytest.mark.parametrize(
    "text",
    [
        Text("I am shutting down. Try again in a moment."),
        Text("I am in {channel} already. Use /leave first.", channel="Evening {0}"),
        Text("{why} I am starting again in {seconds} s; what was said before is kept.", why=Text("Gone."), seconds=1.5),
        Text("I could not come along. {why}", why=SetupError(Text("I am coming to {channel}.", channel="Evening"))),
        Text("I could not come along. {why}", why=LinkError("The voice channel {channel} is gone.", channel="Bar")),
        counted(12_345, "{count} sound", "{count} sounds"),
        joined([Text("I am coming to {channel}.", channel="Evening"), "as it is", counted(1, "{count} turn", "")]),
        verbatim("what somebody {said}"),
        "plain {braces}",
    ],
)
def test_a_text_arrives_translatable(text: str) -> None:
    """It reads the same in every language as if it had never been sent."""
    arrived = sent(text)
    for language in ("en", "de", "fr"):
        assert in_language(arrived, language) == in_language(text, language)


def test_a_value_that_json_does_not_know_is_written_out_here() -> None:
    """A text with such a value is plain English at the other end, because its format cannot be applied there."""

    class Strange:
        def __format__(self, spec: str) -> str:
            return f"strange {spec}"

    assert sent(Text("It is {what:7}.", what=Strange())) == "It is strange 7."


@pytest.mark.parametrize(
    "found",
    [
        None,
        7,
        ["a"],
        {"template": "a"},
        {"template": "{a}", "values": {"b": 1}},
        {"template": "{a.__class__}", "values": {"a": "x"}},
        {"template": "{a[0]}", "values": {"a": "x"}},
        {"template": "{a!r}", "values": {"a": "x"}},
        {"template": "{a:>1000000000}", "values": {"a": 1}},
        {"template": "{a:{a}}", "values": {"a": 1}},
        {"template": "{a", "values": {"a": 1}},
        {"template": "{a:.1f}", "values": {"a": 10**400}},
        {"template": "{a}", "values": {"a": ["x"]}},
        {"parts": ["a"] * 1000, "separator": ""},
        {"parts": "abc", "separator": ""},
    ],
)
def test_a_hostile_text_is_refused(found: Any) -> None:
    """Nothing but names and plain formats of numbers is filled in."""
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says, pydantic refuses the message for it
        text_from_json(found)


@pytest.mark.parametrize(
    "found",
    [
        {"template": "{a}" * 1_000, "values": {"a": "x" * 1_000}},
        {"template": "{a:>99d}" * 1_000, "values": {"a": 1}},
        {"parts": ["x"] * 100, "separator": "y" * 10_000},
        {"template": "{a}" * 30, "values": {"a": {"template": "{a}" * 30, "values": {"a": "x" * 30}}}},
    ],
)
def test_a_short_message_makes_no_long_text(found: Any) -> None:
    """A value that is written again and again would let a message of 100 kB take gigabytes of memory."""
    with pytest.raises(ValueError, match="far longer"):
        text_from_json(found)


def test_texts_in_texts_have_an_end() -> None:
    """A text that holds a text that holds a text, and so on, is refused."""
    found: Any = "x"
    for _ in range(50):
        found = {"template": "{a}", "values": {"a": found}}
    with pytest.raises(ValueError, match="texts in texts"):
        text_from_json(found)


@settings(max_examples=30)
@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)
    | st.dictionaries(
        st.sampled_from(["template", "values", "parts", "separator"]),
        st.text() | st.lists(st.text()) | st.dictionaries(st.text(max_size=3), st.integers() | st.text()),
    )
)
def test_whatever_comes_is_a_text_or_refused(found: Any) -> None:
    """No other error gets out, so no message ends the task that reads."""
    try:
        text = text_from_json(found)
    except ValueError:
        return
    assert isinstance(in_language(text, "de"), str)
