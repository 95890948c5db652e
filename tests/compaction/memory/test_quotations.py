"""The bot's quotations of a person are recognised by a run of words or by the name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.quotations import RUN_WORDS, is_quotation, is_whole_of, names_any, repeats, runs_of

SAID = ("I have decided that the town is Lisbon.", "To Zanzibar!", "Yes.", "")


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("Earlier, Ada said: I have decided that the town is Lisbon.", True),
        ("They have decided, and the town is Lisbon, I think.", True),
        ("It is Lisbon.", False),
        ("Off to Zanzibar we go.", True),
        ("Yes.", False),
        ("", False),
    ],
)
def test_a_run_of_words_is_a_quotation(text: str, repeated: bool) -> None:
    """Four words in a row, or the whole of something shorter, are a quotation; one common word is not."""
    assert repeats(text, runs_of(SAID)) is repeated


def test_long_texts_are_read_to_their_end() -> None:
    """Prompts, records and what somebody says without a pause may be long."""
    long = "Something else is told here, word by word. " * 1_000
    assert repeats(f"{long} {SAID[0]}", runs_of(SAID))
    assert repeats(SAID[0], runs_of([f"{long} {SAID[0]}"]))
    assert names_any(f"{long} Ask Ada Lovelace.", ["Ada Lovelace"])
    assert names_any(f"{long} Then ask Ada.", ["Ada"])


@pytest.mark.parametrize(
    ("said", "text", "repeated"),
    [
        ("来年の春に東京へ引っ越します。", "小明さんは来年の春に東京へ引っ越すそうです。", True),
        ("来年の春に東京へ引っ越します。", "来年は雨です。", False),
        ("はい", "はい、そうです。", False),
        ("나는 내년 봄에 서울로 이사해요", "내년 봄에 서울로 이사한대요.", True),
        ("मैं दिल्ली में रहता हूँ और खुश हूँ", "उसने कहा: मैं दिल्ली में रहता हूँ", True),
        ("मैं दिल्ली में रहता हूँ और खुश हूँ", "मैं मुंबई में था", False),
    ],
)
def test_other_writings_are_quoted_too(said: str, text: str, repeated: bool) -> None:
    """In scripts without spaces, eight characters in a row count like four words. Combining marks on letters do not
    split words.
    """
    assert repeats(text, runs_of([said])) is repeated


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Ada wants to go.", True),
        ("It is ADA’s boat.", True),
        ("Canada is large.", False),
        ("Mary Ann said so.", True),
        ("Ann Mary said so.", False),
        ("小明さんは元気です。", True),
        ("明日は雨です。", False),
        ("지수는 갔어요.", True),
        ("", False),
        ("It will rain.", False),
        ("Will it rain? Will you come?", False),
        ("I asked Will.", True),
        ("Will's bees are asleep.", True),
        ("Yes. Will said so.", True),
        ("The moon is full.", False),
        ("Then moon said so.", True),
        ("Moon, I think so.", True),
        ("xX_Dragon_99 is late", True),
        ("Zsófia went home, and سارة too.", True),
        ("أهلا يا سارة", True),
        ("قال مُحَمَّد ذلك", True),
        ("قال محمد ذلك", True),
        ("תָּמָר אמרה", True),
        ("މުހައްމަދު said so", True),
        ("སྒྲོལ said so", True),
    ],
)
def test_a_name_stands_as_a_name(text: str, named: bool) -> None:
    """A name is found with all its words in order, and not where it is an ordinary word. One without letters is never
    found.
    """
    latin = {"Ada", "Mary Ann", "!!", "Will", "moon", "xx_dragon_99", "Zsófia"}
    names = latin | {"小明", "明", "지수", "سارة", "مُحَمَّد", "תָּמָר", "މުހައްމަދު", "སྒྲོལ"}
    assert names_any(text, names) is named


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("You", "You meet on Friday at eight."),
        ("you", "You meet on Friday, and I wait for you."),
        ("I", "Then I say so."),
        ("And", "It is late. And Bob went home."),
        ("Sie", "Haben Sie Zeit?"),
        ("you can", "You can reach Ada there."),
        ("You can", "Then you can reach Ada there."),
        ("You Can", "You can reach Ada there."),
        ("of the", "At the end of the road."),
        ("Spare Key", "The spare key is under the pot."),
    ],
)
def test_words_that_every_text_has_are_no_names(name: str, text: str) -> None:
    """Somebody may call themselves what they like. The bot's sentences do not mean them for that."""
    assert not names_any(text, [name])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("You", "I asked You about it."),
        ("You Can", "Ask You Can."),
        ("Will May", "Will May said so."),
        ("An", "Ask An."),
    ],
)
def test_a_name_of_such_words_is_told_by_its_capitals(name: str, text: str) -> None:
    assert names_any(text, [name])


def test_what_everybody_says_is_no_quotation() -> None:
    """A short text is none, nor is a run of stop words alone; the whole of a short text is found as such."""
    (run,) = runs_of(["The key is under"]).runs
    assert is_quotation(run)
    for said in ("Thank you", "Is there anything else", "Ich weiss es nicht"):
        assert not any(map(is_quotation, runs_of([said]).runs))
    assert is_whole_of("Thank you!", runs_of(["thank you"]))
    assert not is_whole_of("Thank you, Bo.", runs_of(["thank you"]))


@given(st.lists(st.sampled_from(["red", "blue", "green", "nine", "boat"]), min_size=RUN_WORDS, max_size=12))
def test_whatever_was_said_is_found_where_it_is_quoted(words: list[str]) -> None:
    """A quotation of several words is found in the middle of any sentence."""
    said = " ".join(words)
    assert repeats(f"Just now, Ada said: {said}, if I heard that well.", runs_of([said]))
