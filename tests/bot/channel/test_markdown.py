"""Whatever people say, write or are called, Discord shows it as it is, and nothing else happens."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.channel.markdown import escape_markdown, in_message
from bot.texts.text import Text, counted, in_language, joined, verbatim
from tests.bot.channel.discord_rendering import Shown, shown
from tests.bot.channel.hostile import HOSTILE
from voice.errors import VoiceConnectionError

# What is around it in messages of the bot's, and the rules of that.
AROUND = {
    "{}": (),
    "**{}:** Hello.": ("bold",),
    "> {}": ("quote",),
    "> **Ben: {}**": ("quote", "bold"),
    "- {}": ("item",),
}
# The characters that Discord gives a meaning to, often beside each other.
PIECES = (
    "\\",
    "*",
    "**",
    "_",
    "__",
    "~~",
    "`",
    "```",
    "||",
    "<",
    ">",
    "[",
    "]",
    "(",
    ")",
    "#",
    "@",
    "@everyone",
    "<@1>",
)
MORE_PIECES = (
    "discord.gg/",
    "https://",
    ":",
    "/",
    "-",
    "-#",
    "1.",
    " ",
    "\n",
    "a",
    "b c",
    ".",
    "\u200b",
    "\u202e",
    "]( ",
    "<t:1:R>",
)


@pytest.mark.parametrize(("said", "rule"), HOSTILE.items())
def test_it_would_have_an_effect(said: str, rule: str) -> None:
    """What the next test escapes needs it: Discord would read more than text in it."""
    assert rule in shown(said).rules


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("said", HOSTILE)
def test_it_is_shown_as_it_was_said(said: str, around: str) -> None:
    """Escaped, it is read as it was said, wherever the bot writes it. Only what the bot writes has an effect."""
    expected = shown(around.format("X"))
    assert shown(around.format(escape_markdown(said))) == Shown(expected.text.replace("X", said), AROUND[around])


@given(st.lists(st.sampled_from(PIECES + MORE_PIECES), min_size=1).map("".join), st.sampled_from(sorted(AROUND)))
def test_nothing_that_is_said_is_more_than_text(said: str, around: str) -> None:
    """Any row of Discord's signs is shown as it is, on one line."""
    line = " ".join(said.replace("\u202e", "").split())
    assume(line)
    expected = shown(around.format("X"))
    text = expected.text.replace("X", line.replace("\u200b", ""))
    assert shown(around.format(escape_markdown(said))) == Shown(text, AROUND[around])


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("one\n# two\r\n\tthree", "one # two three"),
        ("\u202eelbisivni\u2069 \x00words\x1b", "elbisivni words"),
        ("C# is > C, and 5 < 6", "C# is > C, and 5 < 6"),
        ("\\o/ ¯\\_(ツ)_/¯", "\\o/ ¯\\_(ツ)_/¯"),
    ],
)
def test_it_is_one_line_of_what_can_be_seen(said: str, line: str) -> None:
    assert shown(escape_markdown(said)) == Shown(line, ())


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("said", HOSTILE)
def test_a_name_in_a_sentence_is_shown_as_it_is(said: str, language: str) -> None:
    """No sentence has to escape the name of a channel itself, nor one in an error that it tells."""
    refused = VoiceConnectionError("The voice channel {channel} no longer exists.", channel=said)
    for text in (
        Text("I am already in {channel}.", channel=said),
        Text("I could not join {channel}. {error}", channel="Evening", error=refused),
        joined((counted(2, "{count} place", "{count} places"), Text("I am coming to {channel}.", channel=said))),
    ):
        sentence = in_message(text, language)
        assert shown(sentence) == Shown(in_language(text, language), ())


def test_what_the_bot_means_as_a_mention_is_one() -> None:
    """Mentions and links of the bot's own are `verbatim`."""
    text = Text(
        "I only write down what is said, and post it in a thread of {channel}. I do not speak.",
        channel=verbatim("<#600>"),
    )
    assert "<#600>" in in_message(text, "de")
    assert in_message(verbatim("**Words** of <@2001>"), "de") == "**Words** of <@2001>"
