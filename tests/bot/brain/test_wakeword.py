"""Which texts call the bot by its name, which call somebody else, and which words send it into silence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.wakeword import (
    SpokenWords,
    asks_for_silence,
    call_names,
    calls_any,
    strip_call,
    use_of_name,
    vocatives,
)
from bot.texts.text import catalogue, languages

NAMES = ("Roomtone", "Room tone")


@pytest.mark.parametrize(
    "text",
    [
        "Roomtone, what was it?", "Roomtone what was it", "Roomtone read me the list.", "Roomtone is it raining?",
        "Roomtone can you remind me?", "What was it, Roomtone?", "Thanks Roomtone.", "So Roomtone, your turn.",
        "And what about you, Roomtone?", "Ask Roomtone. Roomtone, which day was it?", "I forgot. Roomtone, do you?",
        "ROOMTONE!", "Hey, Room-Tone.", "Roomtone's opinion?", "Roomtones opinion?", "Room tones, who was it?",
        # How Whisper wrote the name when people with several accents called it through noise.
        "Rumtone, who brings the lantern?", "Rome tone, are you there?", "Room town, are you there?", "Hey rim tone.",
        "Rome tone what time is it", "Roam tone, what was that?", "Room stone what time is it", "Roomtown can you help",
        "Rometone, hello.", "Rumton, hello.", "Roundtone, hello.", "Room thone, hello.", "Okay room town, who was it?",
        "Is that right, room time?", "Hey room time what was it?", "Rumpton, who was it?", "Room turn, who was it?",
        "Roombtoon, who was it?", "Room done, who was it?", "And Rome tone, what about you?",
    ],
)  # fmt: skip
def test_these_call_it(text: str) -> None:
    """However the recogniser sets its commas, and misheard where a call would stand."""
    assert use_of_name(text, NAMES).called


@pytest.mark.parametrize(
    "text",
    [
        "I asked Roomtone the same thing yesterday.", "Roomtone got it wrong last time.", "Roomtone is quite useful.",
        "Hey, Roomtone didn't answer.", "I think Roomtone is quite useful, actually.", "Just ask Roomtone.",
        "Did you see what Roomtone posted in the channel?", "It was Roomtone who remembered the address.",
        "Is that what Roomtone said?", "Roomtone and Ben were there.", "The room tone was recorded first.",
        "Record some room tone, will you?", "I liked the room's tone, didn't you?",
    ],
)  # fmt: skip
def test_these_only_speak_of_it(text: str) -> None:
    """The name is said, and the bot is not called."""
    use = use_of_name(text, NAMES)
    assert (use.mentioned, use.called) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "", "...", "There is no room for two.", "The tone of the room was odd.", "I like the ringtone.",
        "Ringtone, please.", "Romantic, isn't it?", "Rome was not built in a day.", "Give me a rundown of the week.",
        "A quick rundown, please.", "The room turned cold.", "They roamed on.", "Meet me in room ten.",
        "We need room to grow.", "The living room done in blue looks nice.", "A broom, Tony, bring a broom.",
        "My roommate is away.", "Rotten tomatoes, really.", "That was totally random.", "Brimstone and fire.",
        "Rum and tonic, please.", "Roman stone walls are thick.", "Come from Tony.", "Is the tomb stone new?",
        "Remington made typewriters.", "The drum tone was too low.", "Ramon, tell me more.", "Raymond, are you there?",
        "Run, Tom, run!", "Room temperature is fine.", "He plays the trombone.", "Room service, please.",
        "A rumour, Tony, nothing else.", "Where is the remote, Tony?", "Someone, help me.",
    ],
)  # fmt: skip
def test_other_words_are_not_the_name(text: str) -> None:
    """Words that only look or sound similar are not taken for it."""
    assert not use_of_name(text, NAMES).mentioned


@pytest.mark.parametrize(
    ("name", "heard", "not_heard"),
    [
        ("Computer", ["Computer, stop.", "Compooter, hello."], ["The commuter train.", "Komputer!"]),
        ("Ottoline", ["Otto line, hello.", "Ottoleen?"], ["Draw an outline, please."]),
        ("Alexa", ["Alexa, play."], ["Alex, play.", "Alexis, hello."]),
        ("Marvin", ["Marvin?"], ["Martin, hello.", "Marven, hello."]),
    ],
)
def test_other_names_work_alike(name: str, heard: list[str], not_heard: list[str]) -> None:
    """With fewer than seven letters, and at its first letter, a name has to be written as it is."""
    assert [text for text in heard if not use_of_name(text, (name,)).mentioned] == []
    assert [text for text in not_heard if use_of_name(text, (name,)).mentioned] == []


@pytest.mark.parametrize(
    ("name", "called", "not_called"),
    [
        (
            "ルームトーン",
            [
                "ルームトーン、今何時？", "ねえ、ルームトーン。今何時？", "ルームトーン今何時ですか",
                "ねえルームトーン今何時？",
                "今何時、ルームトーン？",
            ],
            ["昨日ルームトーンと話した。"],
        ),
        ("小明", ["小明今天天气怎么样？", "嘿小明，今天天气怎么样？", "你好，小明！"], ["我喜欢小明的声音。"]),
        ("Румтон", ["Эй Румтон который час", "Румтон, который час?"], ["Я спросил Румтон вчера и она ответила"]),
        ("कंप्यूटरवाला", ["कंप्यूटरवाला, कितने बजे हैं?"], ["कितने बजे हैं?"]),
        ("Roomtone", ["Oye Roomtone qué hora es", "Sag mal Roomtone wie spät ist es", "Salut Roomtone ça va"], []),
    ],
)  # fmt: skip
def test_it_is_called_in_other_languages(name: str, called: list[str], not_called: list[str]) -> None:
    """A call is recognised with the greetings and punctuation of other languages, and in scripts without spaces."""
    for text in called:
        assert use_of_name(text, (name,)).called, text
    for text in not_called:
        assert not use_of_name(text, (name,)).called, text


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("मीरा", "मीरा, समय क्या है?", "मेरा समय क्या है?"),
        ("மீனா", "மீனா, என்ன நேரம்?", "மான், என்ன நேரம்?"),
        ("ปรีชา", "ปรีชา ตอนนี้กี่โมง", "ปรุชา ตอนนี้กี่โมง"),
    ],
)
def test_vowels_that_are_signs_belong_to_a_name(name: str, text: str, other: str) -> None:
    """A word with the same consonants is another word, and nothing of a name is left when it is taken out."""
    assert use_of_name(text, (name,)).called
    assert strip_call(text, (name,)) == text.removeprefix(name).lstrip(", ")
    assert not use_of_name(other, (name,)).mentioned


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_a_name_is_heard_wherever_it_stands(before: str, after: str) -> None:
    """The name is recognised whatever stands before and after it."""
    assert use_of_name(f"{before} Roomtone, {after}", NAMES).mentioned


@settings(deadline=None)
@given(st.text(), st.lists(st.text(max_size=20), max_size=3))
@pytest.mark.slow
def test_any_text_and_any_names_can_be_looked_at(text: str, names: list[str]) -> None:
    """Any text and names are accepted, and removing a call only ever shortens the text."""
    assert strip_call(text, tuple(names)) in text
    if not use_of_name(text, tuple(names)).mentioned:
        assert use_of_name(text, tuple(names)).rest == text


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Roomtone, who brings the lantern?", "who brings the lantern?"),
        ("Hey room tone who brings it", "who brings it"),
        ("Rumtone. Who brings it?", "Who brings it?"),
        ("Who brings it, Roomtone?", "Who brings it, Roomtone?"),
        ("Tell Roomtone about it.", "Tell Roomtone about it."),
        ("Roomtone", ""),
        ("", ""),
    ],
)
def test_a_call_in_front_is_not_what_is_said(text: str, rest: str) -> None:
    """Only a name at the beginning is removed as a call."""
    assert strip_call(text, NAMES) == rest


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Be quiet, Roomtone.", "Be quiet"),
        ("Roomtone, be quiet.", "be quiet."),
        ("Please, Roomtone, be quiet.", "be quiet."),
        ("Be quiet.", "Be quiet."),
    ],
)
def test_the_name_is_taken_out_wherever_it_stands(text: str, rest: str) -> None:
    """With the greeting before it and the marks beside it; the rest of the text is kept."""
    assert use_of_name(text, NAMES).rest == rest


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Rent on, what can you do?", [("renton", "what can you do?")]),
        ("Hey rent on. What can you do?", [("renton", "What can you do?")]),
        ("What can you do, Renton?", [("renton", "What can you do?")]),
        ("What can you do?", []),
        ("", []),
    ],
)
def test_a_few_words_that_are_set_off_may_be_a_call(text: str, found: list[tuple[str, str]]) -> None:
    """At the beginning, with a greeting before them, and at the end."""
    assert [(each.name, each.rest) for each in vocatives(text)] == found


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_looked_at_for_calls(text: str) -> None:
    """There is at most one at each end."""
    assert len(vocatives(text)) <= 2


PEOPLE = ("Ben Okafor", "Chloe", "Will", "Okay", "☃", "May", "मीरा शर्मा", "小明")
OTHERS = frozenset().union(*map(call_names, PEOPLE))


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Ben, are you coming?", True),
        ("Hey Ben, look.", True),
        ("What do you think, Chloe?", True),
        ("Chloe!", True),
        ("Are you there, Ben Okafor?", True),
        ("Thanks, Ben, that was kind.", True),
        ("Will, are you coming?", True),
        ("मीरा, समय क्या है?", True),
        ("小明，你来吗？", True),
        ("मेरा, समय क्या है?", False),
        ("Ben said that it rains.", False),
        ("What did Ben Okafor bring?", False),
        ("Benn, hello.", False),
        ("Is it Ben or Chloe who goes?", False),
        ("Ada, are you coming?", False),
        ("Will you tell me more?", False),
        ("May I ask what time it is?", False),
        ("Okay, what next?", False),
        ("And Ben?", False),
        ("What about Ben?", False),
        ("", False),
    ],
)
def test_a_name_as_it_is_spelled_and_set_off_is_a_call(text: str, calls: bool) -> None:
    """Talk about somebody is none, nor is an ordinary word that is also a name."""
    assert calls_any(SpokenWords(text), OTHERS) is calls


@given(st.text(), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_can_be_looked_at_for_names_of_others(text: str, names: list[str]) -> None:
    """A text without words calls nobody."""
    words = SpokenWords(text)
    assert not calls_any(words, frozenset().union(*map(call_names, names))) or len(words.texts) > 0


@pytest.mark.parametrize(
    ("text", "count"),
    [("what is it?", 3), ("", 0), ("今天天气怎么样？", 4), ("何？", 1), ("今日 is ルームトーン", 5), ("สวัสดี", 3)],
)
def test_words_are_counted_in_writing_without_spaces_too(text: str, count: int) -> None:
    """In scripts without spaces, two characters count as one word."""
    assert SpokenWords(text).spoken_count == count


@pytest.mark.parametrize("code", languages())
def test_the_name_with_a_phrase_of_any_language(code: str) -> None:
    """Before it or after it, and misheard."""
    assert catalogue(code).quiet
    for phrase in catalogue(code).quiet:
        for text in (f"Roomtone, {phrase}.", f"{phrase.capitalize()}, Roomtone!", f"Hey room tone {phrase}"):
            assert asks_for_silence(text, NAMES), text


@pytest.mark.parametrize(
    "text",
    [
        "Be quiet.", "Ben, be quiet.", "Stop, stop, stop!", "Roomtone, stop.", "Quiet tonight?", "no silence please",
        "Roomtone, no silence please.", "Roomtone, be quiet?", "Roomtone, be quiet and listen to this.",
        "I told Roomtone to be quiet.", "Roomtone, could you be quiet about the party?", "Roomtone", "",
    ],
)  # fmt: skip
def test_nothing_else_does(text: str) -> None:
    """Neither without its name nor with other words around the phrase."""
    assert not asks_for_silence(text, NAMES)
