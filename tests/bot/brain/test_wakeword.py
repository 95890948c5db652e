"""Which texts call the bot by its name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.wakeword import calls_name, mentions_name, strip_call, strip_name

NAMES = ("Roomtone", "Room tone")


@pytest.mark.parametrize(
    "text",
    [
        "Roomtone, what did Bo say?",
        "what do you think, room tone?",
        "ROOMTONE!",
        "Hey, Room-Tone.",
        "Rumtone, who brings the lantern?",
        "Rome tone, are you there?",
        "Room town, are you there?",
        "Roomtone's opinion?",
        "Roomtones opinion?",
        "Roomstone, hello.",
        "Room Tom... Roomtome, hello.",
        "Hey rim tone.",
        "Rome tone what time is it",
        "Roam tone, what was that?",
        "Rum tone. Who was it?",
        "Room stone what time is it",
        "Roomtown can you help us",
        "Roomtune, hello.",
        "And you, room tune?",
        "Rometone, hello.",
        "Rhum tone, hello.",
        "Rumton, hello.",
        "Run tone, who is it?",
        "Room ton, hello.",
        "Roundtone, hello.",
        "Womtone, hello.",
        "Room thone, hello.",
        "Room tome, tell me a story.",
        "Okay room town, who was it?",
        # How Whisper wrote the name when people with several accents called it through noise.
        "Room tones, who was it?",
        "Room time, who was it?",
        "Is that right, room time?",
        "Hey room time what was it?",
        "Rume tone, who was it?",
        "Rumpton, who was it?",
        "Rinton, who was it?",
        "Brumptown, who was it?",
        "Room turn, who was it?",
        "Wumton, who was it?",
        "Roombtoon, who was it?",
        "Room done, who was it?",
        "Runt on, who was it?",
        "What do you say, Roomton?",
        "I asked Roomtone yesterday.",
    ],
)
def test_the_name_and_its_mishearings_address_the_bot(text: str) -> None:
    """The name is recognised in the usual misspellings of the recogniser."""
    assert mentions_name(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "There is no room for two.",
        "Room one is free.",
        "The tone of the room was odd.",
        "I like the ringtone.",
        "He took the microphone.",
        "Romantic, isn't it?",
        "Rome was not built in a day.",
        "Remember the tone we agreed on.",
        "What a ringtone you have.",
        "Your ringtone, please turn it off.",
        "The room's tone was friendly.",
        "I liked the room's tone, didn't you?",
        "Is that room's town hall open?",
        "Give me a rundown of the week.",
        "A quick rundown, please.",
        "The room turned cold.",
        "He ran down the road.",
        "We roamed on through the night.",
        "They roamed on.",
        "Room ten is on the left.",
        "Meet me in room ten.",
        "Which room? Room ten.",
        "Room two and room ten are taken.",
        "Is there room to one side of it?",
        "We gave the room to an old friend.",
        "We need room to grow.",
        "Make room to the left.",
        "The living room done in blue looks nice.",
        "Is the room done yet?",
        "Put the room down as taken.",
        "The room down the hall is empty.",
        "The bathroom tone is beige.",
        "A broom, Tony, bring a broom.",
        "The groom, Tom, was late.",
        "My roommate is away.",
        "My roommates own a cat.",
        "Roommate, wake up!",
        "The room that owns the view.",
        "Rotten tomatoes, really.",
        "Random people came by.",
        "That was totally random.",
        "The rhinestone fell off.",
        "It is made of limestone.",
        "Brimstone and fire.",
        "Turn the gramophone on.",
        "Rum and tonic, please.",
        "Rum, tonic and ice.",
        "Two rum tonics for us.",
        "The Romans own the pitch.",
        "Roman stone walls are thick.",
        "A Roman tone of voice.",
        "He is from town.",
        "Come from Tony.",
        "Room for one more?",
        "In the engine room, Tom slept.",
        "Show me the throne room.",
        "Is the tomb stone new?",
        "The tombstone was old.",
        "Remington made typewriters.",
        "The rooster crowed at dawn.",
        "The room at noon was hot.",
        "The drum tone was too low.",
        "Drum tones like these are rare.",
        "The room tone was recorded first.",
        "Record some room tone, will you?",
        "We need a room tone for the edit.",
        "I rented one.",
        "The rent on the flat went up.",
        "It was a long time ago.",
        "Ramon told me so.",
        "Ramon, tell me more.",
        "Raymond, are you there?",
        "Rowan, Tom is here.",
        "Run, Tom, run!",
        "Room temperature is fine.",
        "The moon's tone is grey.",
        "The milestone is behind us.",
        "I want to tone it down.",
        "Don't tone it down.",
        "Someone atone for this.",
        "He plays the trombone.",
        "Room service, please.",
        "Run to one of them.",
        "A rumour, Tony, nothing else.",
        "We rode on to town.",
        "The remote one is broken.",
        "Where is the remote, Tony?",
    ],
)
def test_other_words_do_not(text: str) -> None:
    """Words that only look or sound similar are not taken for the name."""
    assert not mentions_name(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "Roomtone, what was it?",
        "Roomtone what was it",
        "Roomtone read me the list.",
        "Roomtone is it raining?",
        "Roomtone did anybody call?",
        "What was it, Roomtone?",
        "What do you think Roomtone?",
        "Are you there Roomtone",
        "Thanks Roomtone.",
        "Thanks Roomtone, that helps.",
        "Good evening Roomtone",
        "So Roomtone, your turn.",
        "And what about you, Roomtone?",
        "Ask Roomtone. Roomtone, which day was it?",
        "Let's ask Roomtone: when do we leave?",
        "Be quiet Roomtone.",
        "I forgot it. Roomtone, do you know?",
        "Roomtone!",
        "Roomtone's opinion?",
        "And Rome tone, what about you?",
        "Room tone who can bring the long ladder.",
        "Roomtone which of the two was it",
    ],
)
def test_these_call_it(text: str) -> None:
    """These texts call the bot, however the recogniser sets its commas."""
    assert calls_name(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "I asked Roomtone the same thing yesterday.",
        "Roomtone got it wrong last time.",
        "Roomtone answered that before.",
        "Roomtone is quite useful.",
        "Hey, Roomtone didn't answer.",
        "I think Roomtone is quite useful, actually.",
        "Did you see what Roomtone posted in the channel?",
        "She always talks to Roomtone like a person.",
        "It was Roomtone who remembered the address.",
        "I don't think Roomtone heard you.",
        "Just ask Roomtone.",
        "Is that what Roomtone said?",
        "I love Roomtone.",
        "Good idea, let Roomtone do it.",
        "Roomtone and Ben were there.",
        "Nobody said anything.",
    ],
)
def test_these_only_speak_of_it(text: str) -> None:
    """These texts only mention the bot and want no answer from it."""
    assert not calls_name(text, NAMES)


@pytest.mark.parametrize(
    ("name", "heard", "not_heard"),
    [
        (
            "Jarvis",
            ["Jarvis, hello.", "Jervis, hello.", "Hey Jarvus, hello.", "Charvis?"],
            ["Travis, hello.", "Mavis?"],
        ),
        ("Computer", ["Computer, stop.", "Komputer!"], ["The commuter train.", "Compute it.", "Come put her down."]),
        ("Alexa", ["Alexa, play."], ["Alex, play.", "Alexis, hello."]),
        ("Marvin", ["Marvin?", "Marven, hello."], ["Martin, hello.", "Starving, me too."]),
        ("Ottoline", ["Otto line, hello.", "Ottoleen?"], ["Outline it.", "Draw an outline, please."]),
    ],
)
def test_other_names_work_alike(name: str, heard: list[str], not_heard: list[str]) -> None:
    """Other names are recognised by the same rules, with their misspellings."""
    assert [text for text in heard if not mentions_name(text, (name,))] == []
    assert [text for text in not_heard if mentions_name(text, (name,))] == []


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
        assert calls_name(text, (name,)), text
    for text in not_called:
        assert not calls_name(text, (name,)), text


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
    assert calls_name(text, (name,))
    assert strip_call(text, (name,)) == text.removeprefix(name).lstrip(", ")
    assert not mentions_name(other, (name,))


def test_a_short_name_must_be_said_exactly() -> None:
    """A name of three letters must match exactly, because similar words are other people's names."""
    assert mentions_name("Ada, hello", ("Ada",))
    assert not mentions_name("Ida, hello", ("Ada",))


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_a_name_is_heard_wherever_it_stands(before: str, after: str) -> None:
    """The name is recognised whatever stands before and after it."""
    assert mentions_name(f"{before} Roomtone, {after}", NAMES)


@settings(deadline=None)
@given(st.text(), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_and_any_names_can_be_looked_at(text: str, names: list[str]) -> None:
    """Any text and names are accepted, and removing a call only ever shortens the text."""
    assert strip_call(text, tuple(names)) in text
    if not mentions_name(text, tuple(names)):
        assert strip_name(text, tuple(names)) == text


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
        ("Be quiet, Roomtone.", "Be quiet ."),
        ("Roomtone, be quiet.", "be quiet."),
        ("Please, Roomtone, be quiet.", "Please be quiet."),
        ("Be quiet.", "Be quiet."),
    ],
)
def test_the_name_is_taken_out_wherever_it_stands(text: str, rest: str) -> None:
    """The name is removed wherever it stands, and the rest of the text is kept."""
    assert strip_name(text, NAMES) == rest
