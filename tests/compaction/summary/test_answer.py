"""A model's answer is read in every known shape, and refused with a reason when it is unusable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.errors import SummaryRefusedError
from compaction.model import FactKind
from compaction.ports import CompletionAnswer
from compaction.summary.answer import ModelAnswer, ModelFact, parse_answer, parse_paragraph
from tests.compaction.turn_store_contract import turn
from tests.growth import LINEAR, cpu_growth

TURNS = (turn(4, "We rent the cabin in Braemar for 450 pounds, and Olga brings the tent and the stove."),)
PARAGRAPH = "Ada and Olga met, and Ada rents a cabin."
GOOD = {
    "gist": "Ada rents a cabin.",
    "facts": [
        {
            "turns": [4],
            "subject": "Ada",
            "kind": "decision",
            "text": "Ada rents the cabin.",
            "importance": 3,
            "supersedes": ["2b"],
        }
    ],
    "paragraph": PARAGRAPH,
}
FACT = ModelFact((4,), FactKind.DECISION, "Ada rents the cabin.", "Ada", 3, ("2b",))
READ = ModelAnswer("Ada rents a cabin.", (FACT,), PARAGRAPH)


def answer(text: str, finish_reason: str | None = "stop") -> CompletionAnswer:
    return CompletionAnswer(text, finish_reason, None, None)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"Here is the JSON you asked for:\n{json.dumps(GOOD)}\nLet me know if you need more.",
        json.dumps(GOOD).replace("and Ada rents", "and\nAda rents"),
    ],
)
def test_json_is_read_wherever_it_stands(text: str) -> None:
    """JSON is read if it stands alone, in a code fence, inside other text, or has raw line breaks in its strings."""
    assert parse_answer(answer(text), TURNS) == READ


@pytest.mark.parametrize(
    "text",
    [
        f"gist: Ada rents a cabin.\nparagraph: {PARAGRAPH}\n4 | Ada | decision | 3 | Ada rents the cabin. | 2b",
        f"**Gist**: Ada rents a cabin.\n**Paragraph**: {PARAGRAPH}\n* 4|Ada|Decision|3|Ada rents the cabin.|2b",
        f"Gist: Ada rents a cabin.\n[4] | Ada | decision | 3 | Ada rents the cabin. | 2b\nParagraph: {PARAGRAPH}",
        f"Gist: Ada rents a cabin.\nTurn 4, 4 | Ada | decision | 3 | Ada rents the cabin. | 2b\nParagraph: {PARAGRAPH}",
    ],
)
def test_plain_lines_are_read(text: str) -> None:
    """Plain lines are read in the form that was asked for, and in forms that models write."""
    assert parse_answer(answer(text), TURNS) == READ


def test_empty_fields_are_read_in_linear_time() -> None:
    """A table with padded empty fields and one column too many holds no fact. With eighty spaces in each it would have
    taken minutes, in which nobody was heard.
    """

    def read(padding: str) -> None:
        with pytest.raises(SummaryRefusedError):
            parse_answer(answer("|".join(["4", *[padding] * 5, "more"])), TURNS)

    assert cpu_growth(read, " ", chars=5) < LINEAR


def test_unusable_facts_are_left_out_one_by_one() -> None:
    """A wrong type costs that fact alone; an unknown kind is `other`, an unknown importance is 2."""
    facts = [
        {"turns": ["four"], "kind": "decision", "text": "a word for a number"},
        {"turns": [True], "kind": "decision", "text": "a truth for a number"},
        {"turns": [4], "kind": "decision", "text": "  "},
        {"turns": [4], "kind": "decision"},
        {"turns": [], "kind": "decision", "text": "from nowhere"},
        "just words",
        {"turns": ["4", 5, 4], "kind": "misc", "text": "kept", "importance": 9, "supersedes": [1, "2b", None, True]},
        {"turns": 4, "kind": "open", "text": "kept too", "importance": "1"},
    ]
    told = parse_answer(answer(json.dumps({"gist": "Fine.", "facts": facts})), TURNS)
    assert told.facts == (
        ModelFact((4, 5), FactKind.OTHER, "kept", "", 2, ("1", "2b")),
        ModelFact((4,), FactKind.OPEN, "kept too", "", 1),
    )
    assert parse_answer(answer('{"gist": "Fine.", "facts": "none"}'), TURNS).facts == ()


@pytest.mark.parametrize("text", ['{"gist": "They met.", "facts": ["57b", 60]}', "gist: They met.\nfacts: 57b, 60"])
def test_labels_of_a_chapter_are_read(text: str) -> None:
    """A chapter's facts are labels."""
    assert parse_answer(answer(text), ()).refs == ("57b", "60")


@pytest.mark.parametrize(
    "text",
    [
        'The summary so far:\n<data from="the summary so far">\nAda rents the cabin.\n</data>',
        '<data from="the summary so far">\nSummary: Ada rents the cabin.',
        'Ada rents the cabin. <data from="the new turns"></data>',
        json.dumps({"paragraph": '<data from="the summary so far">Ada rents the cabin.</data>'}),
    ],
)
def test_copied_marks_are_no_part_of_a_paragraph(text: str) -> None:
    """Small models copy the prompt's marks; each next summary would have one more of them."""
    assert parse_paragraph(answer(text), TURNS, labels=("The summary so far",)) == "Ada rents the cabin."


@pytest.mark.parametrize(
    ("paragraph", "problem"),
    [
        ("", "no summary"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("Sorry, but I can't help with that.", "refused"),
        ("Sure! I'd take the left door.", "replied"),
        ("Error: rate limit reached", "error text"),
        ("[4] 21:04 Ada: We rent [5] 21:05 Bob: Fine", "copied"),
        (7, "no summary"),
    ],
)
def test_good_facts_outlast_a_bad_paragraph(paragraph: object, problem: str) -> None:
    """A paragraph that is none leaves the gist and the facts, and says what is wrong."""
    told = parse_answer(answer(json.dumps({**GOOD, "paragraph": paragraph})), TURNS)
    assert (told.gist, told.facts, told.paragraph) == (READ.gist, READ.facts, "")
    assert problem in told.paragraph_problem


@pytest.mark.parametrize(
    "paragraph",
    [
        "Error messages in Bob's build kept them busy.",
        "Errors in the build kept them busy.",
        "Exceptions to the rule were found by Ada.",
        "Quota of 5 fish was reached by Ada.",
        "Rate limits are what the group talked about.",
        "Timeouts in the raid annoyed everybody.",
        "Sorry, Bob said.",
        "Sorry tales were told all evening.",
        "Thanks to Bob the tent is dry.",
        "Of course Ada wants the cabin.",
        "Bob told Ada to feel free to take the car and asked her: would you like me to drive?",
        "Ada wants Cy to let me know, as Bob put it.",
    ],
)
def test_what_people_talk_about_is_no_refusal(paragraph: str) -> None:
    """A paragraph is not refused for a word that an error, a refusal or a reply also begins with."""
    told = parse_answer(answer(json.dumps({**GOOD, "paragraph": paragraph})), (*TURNS, turn(5, "Yes.", speaker="Bob")))
    assert (told.paragraph, told.paragraph_problem) == (paragraph, "")


def test_good_facts_outlast_a_bad_gist() -> None:
    """A gist that is none is left out if there are facts."""
    told = parse_answer(answer(json.dumps({**GOOD, "gist": "Great question! You should rent it."})), TURNS)
    assert (told.gist, told.facts) == ("", (FACT,))


def test_paragraph_alone_is_prose_or_json() -> None:
    """A call for the paragraph alone is answered with prose, and by some models with JSON."""
    assert parse_paragraph(answer(f"Here is the summary:\n{PARAGRAPH}"), TURNS) == PARAGRAPH
    assert parse_paragraph(answer(json.dumps(GOOD)), TURNS) == PARAGRAPH
    with pytest.raises(SummaryRefusedError, match="not prose"):
        parse_paragraph(answer('{"gist": "a"}'), TURNS)


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason"),
    [
        ("", "stop", "blank"),
        ("   \n", None, "blank"),
        (json.dumps(GOOD), "length", "cut off"),
        (json.dumps(GOOD), "content_filter", "withheld"),
        ("Error: rate limit reached", "stop", "error text"),
        ("502 Bad Gateway", "stop", "error text"),
        ("<html><body>Service Unavailable</body></html>", "stop", "error text"),
        ('{"error": {"message": "quota"}}', "stop", "error text"),
        ("The conversation is too long to summarize.", "stop", "error text"),
        ('{"gist": "The conversation is too long to summarize.", "facts": []}', "stop", "error text"),
        ("I'm sorry, but I can't help with that.", "stop", "refused to summarise"),
        ('{"gist": "As an AI language model I cannot do this.", "facts": []}', "stop", "refused to summarise"),
        ("Sure! I'd take the left door.", "stop", "replied to the conversation"),
        ('{"gist": "Great question! You should rent it.", "facts": []}', "stop", "replied to the conversation"),
        ('{"gist": "I recommend the cabin.", "facts": []}', "stop", "replied to the conversation"),
        ("They rent it. Let me know if you need more.", "stop", "replied to the conversation"),
        ("[4] 21:04 Ada: We rent\n[5] 21:05 Bob: Fine", "stop", "copied"),
        ("{}", "stop", "neither"),
        ('{"gist": "", "facts": []}', "stop", "neither"),
        ("Ada rents a cabin.", "stop", "neither"),
        ("[1, 2, 3]", "stop", "neither"),
    ],
)
def test_answers_that_are_none_are_refused(text: str, finish_reason: str | None, reason: str) -> None:
    """Each unusable answer is refused with its reason, and the error does not contain the answer's text."""
    with pytest.raises(SummaryRefusedError, match=reason) as refused:
        parse_answer(answer(text, finish_reason), TURNS)
    assert "cabin" not in str(refused.value)


def test_copy_of_what_was_said_is_refused() -> None:
    """A gist with thirty words in a row from one turn is refused as a copy."""
    words = " ".join(f"word{number}" for number in range(60))
    with pytest.raises(SummaryRefusedError, match="copied"):
        parse_answer(answer(json.dumps({"gist": words, "facts": []})), (turn(0, words),))
    short = " ".join(f"word{number}" for number in range(20))
    assert parse_answer(answer(json.dumps({"gist": short, "facts": []})), (turn(0, words),)).gist == short


@given(
    st.one_of(
        st.text(max_size=300),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=20),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["gist", "facts", "turns", "kind", "text", "supersedes", "importance", "paragraph"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=14,
        ).map(json.dumps),
    )
)
def test_any_answer_is_read_or_refused(text: str) -> None:
    """Any answer of a model is either read or refused with `SummaryRefusedError`."""
    try:
        told = parse_answer(answer(text), TURNS)
    except SummaryRefusedError:
        return
    assert told.gist or told.facts
