"""Sentences, names, numbers, concepts and signs of a lasting fact are read from text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.wording import (
    announces_change,
    as_sentence,
    asks,
    asks_for_a_nod,
    base,
    concepts,
    durability,
    ends_a_sentence,
    figures,
    kind_of,
    names,
    plain,
    sentences,
    whole_sentences,
    without_preamble,
)
from compaction.model import FactKind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We leave at nine. Really? Yes!", ["We leave at nine.", "Really?", "Yes!"]),
        ("Mr. Smith met Dr. Jones at 3.5 miles.", ["Mr. Smith met Dr. Jones at 3.5 miles."]),
        ("J. K. asked e.g. Bob.", ["J. K. asked e.g. Bob."]),
        ("no stop at all", ["no stop at all"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("今日は雨です。明日は晴れ。", ["今日は雨です。", "明日は晴れ。"]),
        ("Wait… what?", ["Wait…", "what?"]),
        ("  ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    """The full stops of abbreviations and numbers do not end a sentence."""
    assert sentences(text) == expected


def test_plain_text_has_no_marks() -> None:
    """Marks of lists, headings, emphasis and code are removed, and so are line breaks and control characters. The words
    stay.
    """
    assert plain("# Plan\n- **rent** the `cabin`\x1b[31m\t| now") == "Plan - rent the cabin [31m now"
    assert plain("snake_case and it's fine") == "snake_case and it's fine"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The gate code is 4,411.", {"4411"}),
        ("Meet at 7:30 on 2024-05-01", {"7:30", "2024-05-01"}),
        ("fourteen", {"14"}),
        ("twenty-five people", {"20", "5", "25"}),
        ("three hundred", {"3", "100", "300"}),
        ("007", {"7"}),
        ("one of them", set()),
        ("nothing", set()),
    ],
)
def test_figures(text: str, expected: set[str]) -> None:
    """Number words and digits are read as the same numbers."""
    assert figures(text) == expected


def test_small_number_words_count_where_asked() -> None:
    """Small number words are read only on request: 'one' is a source for a 1, but needs no source itself."""
    assert figures("one of the two", small=True) == {"1", "2"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We rent the cabin in Braemar from Olga's aunt.", {"braemar", "olga"}),
        ("Margaret brings the tent.", {"margaret"}),
        ("Decided to leave. They agreed.", set()),
        ("Planning the trip with Ravi", {"ravi"}),
        ("I think so. I'm sure.", set()),
        ("The NASA stream", {"nasa"}),
    ],
)
def test_names(text: str, expected: set[str]) -> None:
    """Capitalised words are names. The first word of a sentence is a name only if it is not an ordinary word."""
    assert names(text) == expected


def test_concepts_are_told_apart() -> None:
    """Names, calendar words and figures are values, and other meaningful words are topics."""
    about = concepts("We decided to rent the cabins in Braemar for 450 pounds on Friday.")
    assert about.figures == {"450"}
    assert about.names == {"braemar", "friday"}
    assert about.topics == {"decided", "rent", "cabin", "pound"}
    assert about.all == about.topics | about.values


def test_base_form() -> None:
    """Possessives and plurals have the same base form as their word. Short and Latin words stay unchanged."""
    assert [base(word) for word in ("cabins", "ada's", "cities", "boss", "bus", "is", "gas")] == [
        "cabin",
        "ada",
        "city",
        "boss",
        "bus",
        "is",
        "gas",
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We decided to rent the cabin.", FactKind.DECISION),
        ("I'm allergic to walnuts.", FactKind.LASTING),
        ("Who brings the tent?", FactKind.OPEN),
        ("We still have to find out the price.", FactKind.OPEN),
        ("They are playing the Tokyo map.", FactKind.DOING),
        ("The weather was terrible.", FactKind.OTHER),
    ],
)
def test_slots(text: str, kind: FactKind) -> None:
    """Each kind of sentence has its place in a summary."""
    assert kind_of(text) is kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("كيف الطقس؟ هو جيد.", ["كيف الطقس؟", "هو جيد."]),
        ("मैं आता हूँ। कब?", ["मैं आता हूँ।", "कब?"]),
        ("明日は雨ですか？はい。", ["明日は雨ですか？", "はい。"]),
    ],
)
def test_sentences_of_other_writings(text: str, expected: list[str]) -> None:
    """The full stops and question marks of other scripts end sentences, and a question is recognised as one."""
    assert sentences(text) == expected
    assert all(ends_a_sentence(each) for each in expected)
    assert [asks(each) for each in expected] == [each[-1] in "?？؟" for each in expected]


def test_durability_orders_sentences() -> None:
    """A commitment is more durable than talk, and talk is more durable than a question about a commitment."""
    assert (
        durability("My sister will bring the tent on Friday.")
        > durability("We will bring the tent.")
        > durability("The tent is green.")
        > durability("Will you bring the tent?")
    )


def test_the_passing_moment_lasts_least() -> None:
    """Sentences about the current state of the call or the game are the least durable, because that state
    is over soon.
    """
    assert durability("Hold on, my headset is acting up.") < durability("That boss has a lot of health.")


def test_nods_are_asked_for_in_form_alone() -> None:
    """Small talk with a question tag asks only for agreement. A question about a plan is a real question."""
    assert asks_for_a_nod("Nice weather, isn't it?")
    assert not asks_for_a_nod("We meet at nine, right?")
    assert not asks_for_a_nod("Who brings the tent?")


def test_sentence_from_where_it_begins_in_earnest() -> None:
    """Fillers and words that call for attention are removed from the beginning. Words with a meaning stay."""
    assert without_preamble("So, um, by the way, we leave at nine.") == "We leave at nine."
    assert without_preamble("Actually we leave at ten.") == "Actually we leave at ten."
    assert without_preamble("Right.") == "Right."


def test_change_is_announced() -> None:
    """A correction is recognised by words that announce a change."""
    assert announces_change("Actually the code is 7023 now.")
    assert not announces_change("The code is 7023.")


def test_as_sentence_cuts_at_a_clause_and_closes() -> None:
    """A text that is too long is cut after a clause or a word and gets a full stop."""
    assert as_sentence("we leave at nine", 80) == "we leave at nine."
    assert as_sentence("really?", 80) == "really?"
    assert as_sentence("we leave at nine, and then we drive to the lake", 30) == "we leave at nine."
    assert as_sentence("we leave at nine and then drive", 20) == "we leave at nine."
    assert as_sentence("", 80) == ""


def test_whole_sentences_are_never_cut() -> None:
    """Only sentences that fit whole are kept."""
    assert whole_sentences("One two. Three four. Five six.", 20) == "One two. Three four."
    assert whole_sentences("One two three", 80) == ""
    assert whole_sentences("One two three four.", 5) == ""


@given(st.text(max_size=400), st.integers(2, 120))
def test_as_sentence_keeps_its_limit_for_any_text(text: str, limit: int) -> None:
    """The result is never longer than the limit and ends like a sentence, unless it is empty."""
    sentence = as_sentence(text, limit)
    assert len(sentence) <= limit
    assert sentence == "" or ends_a_sentence(sentence)


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Any text can be read without an error."""
    concepts(text)
    kind_of(text)
    assert all("\n" not in sentence for sentence in sentences(text))
