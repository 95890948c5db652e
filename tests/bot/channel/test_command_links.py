"""The commands in the bot's own sentences are mentions, and those in what people say are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.channel.markdown import COMMAND_LINKS, in_message
from bot.texts.text import Text, joined, verbatim

MENTIONS = {
    "join": "</join:1>",
    "forget-me everything": "</forget-me everything:2>",
    "watch start": "</watch start:3>",
    "leave": "</leave:4>",
}


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    """Let Discord have given the commands their ids."""
    COMMAND_LINKS.know(MENTIONS)
    yield
    COMMAND_LINKS.know({})


@pytest.mark.parametrize(
    ("language", "sentence", "shown"),
    [
        ("en", "I am already in {channel}. Use /leave first.", "I am already in Den. Use </leave:4> first."),
        ("de", "I am already in {channel}. Use /leave first.", "Ich bin schon in Den. Benutze zuerst </leave:4>."),
        ("en", "Type /watch start, /joiner or https://a.example/join.", "Type </watch start:3>, /joiner or "),
        ("en", "Type /watch.", "Type /watch."),
    ],
)
def test_commands_are_mentioned_by_their_english_names(language: str, sentence: str, shown: str) -> None:
    """Discord shows each reader the name in their language. What only looks like one is none, and neither is a group of
    commands, which nobody can use.
    """
    told = in_message(Text(sentence, channel="Den"), language)
    assert told.startswith(shown)
    assert told.count("</") == shown.count("</")


def test_what_people_say_mentions_no_command() -> None:
    """Neither a value of a sentence nor what is there as it is."""
    said = joined((Text("{name} is saying: {words}", name="/join", words="/leave"), verbatim("/leave")), "\n")
    assert "</" not in in_message(said, "en")
