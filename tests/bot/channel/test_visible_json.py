"""Whatever a call has in its arguments, people see all of it and nothing else."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.channel.visible_json import visible_json

LANGUAGES = ("de", "en-GB", "el", "hi", "ja", "ko", "ru", "th", "vi", "zh-CN", "ar", "he", "nonsense", "")
# What takes no place, or the place of another: a variation selector of each block, a tag, fillers, joiners, a soft
# hyphen, a stack of accents, letters that turn the direction, a sign that turns it, blanks, private use, unassigned.
HIDDEN = [
    "\ufe0f", "\U000e0100", "\U000e0041", "\u3164", "\u115f", "\uffa0", "\u034f", "\u17b4", "\u200b", "\u200d",
    "\u00ad", "\u0301\u0302\u0303", "\u05d0", "\u0627", "\u202e", "\u00a0", "\u2003", "\u2028", "\u2800", "\ue000",
    "\U000e0fff", "\x7f", "\x00", "`",
]  # fmt: skip
text = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("".join(HIDDEN))), max_size=30)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=12,
)
arguments = st.dictionaries(text, values, max_size=4)
languages = st.lists(st.sampled_from(LANGUAGES), max_size=3)


@pytest.mark.slow
@given(arguments, arguments, languages)
@example({"text": "Hi Ben!"}, {"text": "Hi Ben!\U000e0141"}, ["en"])
@example({"text": "\u00e9"}, {"text": "e\u0301"}, ["fr"])
@example({"text": "\\u0301"}, {"text": "\u0301"}, ["fr"])
def test_two_different_calls_have_different_cards(
    one: dict[str, object], other: dict[str, object], spoken: Sequence[str]
) -> None:
    """Because reading a card gives exactly the arguments that it was made of."""
    cards = [visible_json(each, spoken) for each in (one, other)]
    assert [json.dumps(json.loads(card)) for card in cards] == [json.dumps(each) for each in (one, other)]
    assert (cards[0] == cards[1]) is (json.dumps(one) == json.dumps(other))


@pytest.mark.slow
@given(arguments, languages)
def test_nothing_invisible_passes(given: dict[str, object], spoken: Sequence[str]) -> None:
    """Each character has a place of its own, from left to right. A letter has two marks at most."""
    card = visible_json(given, spoken)
    assert not set(card) & set("".join(HIDDEN) + "\N{HEBREW LETTER BET}\N{ARABIC LETTER BEH}")
    marks = 0
    for char in card:
        assert char == "\n" or char.isprintable()
        assert unicodedata.bidirectional(char) not in {"R", "AL", "AN"}
        assert unicodedata.normalize("NFC", char) == char
        marks = marks + 1 if unicodedata.category(char) in {"Mn", "Mc"} else 0
        assert marks <= 2


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_cannot_be_seen_is_its_number(hidden: str, language: str) -> None:
    """In a room of every language."""
    card = visible_json({"text": f"Hi Ben!{hidden}"}, [language])
    assert card.isascii()
    assert card.count("\\u") >= len(hidden)


@pytest.mark.parametrize(
    ("written", "language"),
    [
        ("Grüße: „Straße“ – 5 €?", "de"),
        ("Привет, мир №1", "ru"),
        ("Γειά σου", "el"),
        ("日本語のテスト、カード。", "ja"),
        ("한국어 시험", "ko"),
        ("ทำอาหารที่นี่", "th"),
        ("हिन्दी में।", "hi"),
        ("Tiếng Việt", "vi"),
        ("中文，好！", "zh-CN"),
    ],
)
def test_what_people_of_the_room_can_read_is_shown_as_it_is(written: str, language: str) -> None:
    """In its script. Where another is read, it is numbers."""
    assert written in visible_json({"text": written}, ["en", language])
    is_latin = language in {"de", "vi"}
    assert (written in visible_json({"text": written}, ["en"])) is is_latin
