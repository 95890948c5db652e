"""Speech that is addressed to others, follows up on a reply, or needs no reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.addressing import PersonName, calls_any, is_follow_up, needs_no_reply, word_count

NAMES = tuple(PersonName.prepare(name) for name in ("Ben Okafor", "Chloe", "Juke", "Will", "Okay", "☃", "May", "Show"))


@pytest.mark.parametrize(
    "text",
    [
        "Ben, are you coming?", "Hey Ben, look.", "Ben what do you think", "What do you think, Chloe?", "Chloe!",
        "Are you there, Ben Okafor?", "Okay Chloe can you bring it", "I think so too, Chloe.", "Juke, play something.",
        "Thanks, Ben, that was kind.", "What do you think Ben?", "Will, are you coming?", "Are you coming, Will?",
        "May, do you know?",
    ],
)  # fmt: skip
def test_these_call_somebody(text: str) -> None:
    """These texts address a person in the room by name."""
    assert calls_any(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "", "Ben said that it rains.", "I saw Chloe at the market.", "Did Chloe say that?",
        "What did Ben Okafor bring?", "Benjamin, hello.", "Ben and I will go.", "Is it Ben or Chloe who goes?",
        "Ada, are you coming?",
        "Will you tell me more?", "When will it rain?", "Okay, what next?", "And Ben?", "What about Ben?",
        "May I ask what time it is?", "Show me the map.", "Is Ben coming?",
        "Are Ben and Chloe coming?", "Is that from Chloe?",
    ],
)  # fmt: skip
def test_these_only_speak_of_somebody(text: str) -> None:
    """These texts only mention a person, or address somebody who is not in the room."""
    assert not calls_any(text, NAMES)


def test_people_whose_names_have_vowels_that_are_signs_are_called() -> None:
    """By their own names, and not by each word with the same consonants."""
    names = [PersonName.prepare("मीरा शर्मा")]
    assert calls_any("मीरा, समय क्या है?", names)
    assert calls_any("मीरा शर्मा, समय क्या है?", names)
    assert not calls_any("मेरा, समय क्या है?", names)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("what is it?", 3),
        ("", 0),
        ("今天天气怎么样？", 4),
        ("何？", 1),
        ("何でも", 2),
        ("今日 is ルームトーン", 5),
        ("สวัสดี", 3),
    ],
)
def test_words_are_counted_in_writing_without_spaces_too(text: str, count: int) -> None:
    """In scripts without spaces, two characters count as one word."""
    assert word_count(text) == count


@pytest.mark.parametrize("text", ["明天呢？", "و غدا؟", "und morgen?"])
def test_every_writing_can_ask(text: str) -> None:
    """A follow-up question is recognised by the question marks of other scripts too."""
    assert is_follow_up(text)
    assert not needs_no_reply(text)


@pytest.mark.parametrize(
    ("text", "none"),
    [
        ("Mm-hm.", True),
        ("Oh, nice.", True),
        ("Thank you very much.", True),
        ("Never mind.", True),
        ("Alles klar, danke!", True),
        ("Danke, und am Sonntag?", False),
        ("[laughter]", True),
        ("Really?", False),
        ("Thanks, and on Sunday?", False),
        ("Thank you for the lamp, it is green.", False),
        ("No.", False),
    ],
)
def test_some_words_want_no_answer(text: str, none: bool) -> None:
    """Signs of attention, laughter and closing words need no reply."""
    assert needs_no_reply(text) is none


@pytest.mark.parametrize(
    ("text", "goes"),
    [
        ("And on Sunday?", True),
        ("What else?", True),
        ("No, I meant the second one.", True),
        ("Not Ada, me.", True),
        ("You didn't mention the price.", True),
        ("Okay, but that was yesterday.", True),
        ("Tell me more.", True),
        ("Sorry, I meant the harbour.", True),
        ("I mean the other one.", True),
        ("I thought it was Sunday?", True),
        ("I mean, sure, why not.", False),
        ("I like this song, who is it?", False),
        ("You always say that.", False),
        ("No spoilers please.", False),
        ("I'm back.", False),
        ("Push left, push left.", False),
        ("We have to leave at nine.", False),
        ("Okay.", False),
        ("", False),
    ],
)
def test_some_words_go_on_with_what_was_answered(text: str, goes: bool) -> None:
    """A follow-up asks a question, objects, corrects the reply, or wants more."""
    assert is_follow_up(text) is goes


@pytest.mark.parametrize(
    ("before", "after", "calls"), [(0, 400, True), (80, 400, True), (400, 0, True), (400, 80, True), (400, 400, False)]
)
def test_a_long_text_calls_people_at_its_beginning_and_its_end(before: int, after: int, calls: bool) -> None:
    """What one text can cost is bounded: nobody is looked for in the middle of hundreds of words."""
    text = f"{'word ' * before}hey Bartholomew, what now? {'word ' * after}"
    assert calls_any(text, [PersonName.prepare("Bartholomew")]) is calls


@given(st.text(), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_and_any_names_can_be_looked_at(text: str, names: list[str]) -> None:
    """Any text and names are accepted, and a text without words addresses nobody."""
    if calls_any(text, [PersonName.prepare(name) for name in names]):
        assert word_count(text) > 0
