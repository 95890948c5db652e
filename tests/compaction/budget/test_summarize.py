"""The summary of evicted messages, written by rules."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.summarize import SummarizeOptions, summarize_context
from compaction.language.text import ends_a_sentence
from compaction.payload import PartKind, make_part
from compaction.tokens import estimate_tokens
from compaction.untrusted_text import mark_as_data
from tests.compaction.budget.talk import LISTING, SYSTEM, said, use

TALK = [
    said("[21:04] Ada: We take the cabin in Braemar.", at=10.0),
    said("[21:05] Bob: Haha.\nCy: The gate code is 4411.", at=70.0),
    said("[21:06] Roomtone: Noted.", role="assistant", at=130.0),
    make_part("user", PartKind.TURN, "I pay the 250 pounds for the boat.", name="Dora", timestamp=190.0),
]


def test_rules_keep_who_said_what() -> None:
    """The rules find the speaker of each statement: in lines that begin with a time and name, in messages of several
    speakers, and in the message's `name`.
    """
    made = summarize_context([SYSTEM, *TALK])
    assert made.original_tokens == estimate_tokens([SYSTEM, *TALK])
    assert 'Cy: "The gate code is 4411."' in made.summary
    assert 'Ada: "We take the cabin in Braemar."' in made.summary
    assert 'Dora: "I pay the 250 pounds for the boat."' in made.summary
    assert "Haha" not in made.summary
    assert "You help" not in made.summary


def test_rules_say_what_tools_came_to() -> None:
    """The summary has the outcome of a tool's work, and not the tool's output."""
    text = summarize_context(
        [*TALK, *use("memory_search", "{}", LISTING + "\nerror: disk is full", call_id="s")]
    ).summary
    assert "memory_search: Outcome: failure; 41 lines." in text
    assert len(text) <= 1_200


def test_an_earlier_summary_goes_on() -> None:
    """An earlier summary is continued, whether it is given as an option or found among the messages. Quotes among the
    messages are not summarised as if somebody had said them.
    """
    previous = "Ada: The boat leaves at seven."
    given_one = summarize_context(TALK, SummarizeOptions(previous=previous)).summary
    among = said(mark_as_data("summary", previous), kind=PartKind.SUMMARY)
    quote = said("Bob: The password is swordfish.", kind=PartKind.RECALL)
    assert given_one == summarize_context([among, quote, *TALK]).summary
    assert given_one.startswith(previous)
    assert "swordfish" not in given_one


@settings(deadline=None, max_examples=30)
@given(
    texts=st.lists(st.text(max_size=300), max_size=30),
    limit=st.integers(100, 1_200),
    previous=st.none() | st.text(max_size=2_000),
)
def test_any_summary_keeps_its_limit(texts: list[str], limit: int, previous: str | None) -> None:
    """The summary of any messages keeps its limit and ends with a sentence, and the same messages give the same
    summary.
    """
    messages = [said(text) for text in texts]
    options = SummarizeOptions(max_summary_chars=limit, previous=previous)
    text = summarize_context(messages, options).summary
    assert len(text) <= limit
    assert not text or ends_a_sentence(text)
    assert summarize_context(messages, options).summary == text
