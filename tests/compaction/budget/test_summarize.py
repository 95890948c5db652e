"""The summary of evicted messages, written by rules."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.summarize import summarize_context
from compaction.language.text import ends_a_sentence
from compaction.payload import PartKind, make_part
from compaction.tokens import estimate_tokens
from tests.compaction.budget.talk import SYSTEM, said

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


@settings(deadline=None, max_examples=30)
@given(texts=st.lists(st.text(max_size=300), max_size=30), limit=st.integers(100, 1_200))
def test_any_summary_keeps_its_limit(texts: list[str], limit: int) -> None:
    """The summary of any messages keeps its limit and ends with a sentence, and the same messages give the same
    summary.
    """
    messages = [said(text) for text in texts]
    text = summarize_context(messages, max_summary_chars=limit).summary
    assert len(text) <= limit
    assert not text or ends_a_sentence(text)
    assert summarize_context(messages, max_summary_chars=limit).summary == text
