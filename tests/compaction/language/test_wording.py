"""Sentences, names, numbers, concepts and signs of a lasting fact are read from words."""

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
    """Full stops of abbreviations and figures end nothing."""
    assert sentences(text) == expected


def test_plain_text_has_no_marks() -> None:
    """Lists, headings, emphasis, code, line breaks and control characters go; words stay."""
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
    """Digits and number words are the same numbers."""
    assert figures(text) == expected


def test_small_number_words_count_where_asked() -> None:
    """'one' allows a 1, and is no number to be checked itself."""
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
    """Capital letters make names, the first word's only where it is no ordinary word."""
    assert names(text) == expected


def test_concepts_are_told_apart() -> None:
    """Names and calendar words and figures are values, other meaningful words are topics."""
    about = concepts("We decided to rent the cabins in Braemar for 450 pounds on Friday.")
    assert about.figures == {"450"}
    assert about.names == {"braemar", "friday"}
    assert about.topics == {"decided", "rent", "cabin", "pound"}
    assert about.all == about.topics | about.values


def test_base_form() -> None:
    """Possessives and plurals are one word with their stem; short and Latin words are left alone."""
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
    """Their stops end them, and what asks is not taken for known."""
    assert sentences(text) == expected
    assert all(ends_a_sentence(each) for each in expected)
    assert [asks(each) for each in expected] == [each[-1] in "?？؟" for each in expected]


def test_durability_orders_sentences() -> None:
    """A commitment outlasts talk, and talk outlasts a question about a commitment."""
    assert (
        durability("My sister will bring the tent on Friday.")
        > durability("We will bring the tent.")
        > durability("The tent is green.")
        > durability("Will you bring the tent?")
    )


def test_the_passing_moment_lasts_least() -> None:
    """The state of the call or the round is over before it could matter."""
    assert durability("Hold on, my headset is acting up.") < durability("That boss has a lot of health.")


def test_nods_are_asked_for_in_form_alone() -> None:
    """Small talk may end in a question mark and stay small talk; a question about a plan is a question."""
    assert asks_for_a_nod("Nice weather, isn't it?")
    assert not asks_for_a_nod("We meet at nine, right?")
    assert not asks_for_a_nod("Who brings the tent?")


def test_sentence_from_where_it_begins_in_earnest() -> None:
    """Fillers and attention-getters go, words that carry meaning stay."""
    assert without_preamble("So, um, by the way, we leave at nine.") == "We leave at nine."
    assert without_preamble("Actually we leave at ten.") == "Actually we leave at ten."
    assert without_preamble("Right.") == "Right."


def test_change_is_announced() -> None:
    """A correction mostly says that it is one."""
    assert announces_change("Actually the code is 7023 now.")
    assert not announces_change("The code is 7023.")


def test_as_sentence_cuts_at_a_clause_and_closes() -> None:
    """What is too long ends where a clause or word does, with a stop."""
    assert as_sentence("we leave at nine", 80) == "we leave at nine."
    assert as_sentence("really?", 80) == "really?"
    assert as_sentence("we leave at nine, and then we drive to the lake", 30) == "we leave at nine."
    assert as_sentence("we leave at nine and then drive", 20) == "we leave at nine."
    assert as_sentence("", 80) == ""


def test_whole_sentences_are_never_cut() -> None:
    """Only what fits whole is kept."""
    assert whole_sentences("One two. Three four. Five six.", 20) == "One two. Three four."
    assert whole_sentences("One two three", 80) == ""
    assert whole_sentences("One two three four.", 5) == ""


@given(st.text(max_size=400), st.integers(2, 120))
def test_as_sentence_keeps_its_limit_for_any_text(text: str, limit: int) -> None:
    """Never longer than asked, and closed unless nothing is left."""
    sentence = as_sentence(text, limit)
    assert len(sentence) <= limit
    assert sentence == "" or ends_a_sentence(sentence)


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Nothing that people or models write breaks the reading."""
    concepts(text)
    kind_of(text)
    assert all("\n" not in sentence for sentence in sentences(text))
