"""The summary of evicted messages, written by rules or by a model whose text is checked."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.messages import Message
from compaction.budget.summarize import SummarizeOptions, summarize_by_rules, summarize_context
from compaction.errors import CompletionError
from compaction.language.text import ends_a_sentence
from compaction.payload import PartKind
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.tokens import estimate_text_tokens, estimate_tokens
from tests.compaction.budget.test_tool_outputs import LISTING, search
from tests.compaction.budget.test_trim import SYSTEM

TALK = [
    Message("user", "[21:04] Ada: We take the cabin in Braemar.", timestamp=10.0),
    Message("user", "[21:05] Bob: Haha.\nCy: The gate code is 4411.", timestamp=70.0),
    Message("assistant", "[21:06] Roomtone: Noted.", timestamp=130.0),
    Message("user", "I'm allergic to walnuts.", name="Dora", timestamp=190.0),
]


class Writer:
    """A model that gives one answer and keeps the requests."""

    model = "writer"

    def __init__(self, text: str = "", *, finish_reason: str = "stop", error: CompletionError | None = None) -> None:
        self.text = text
        self.finish_reason = finish_reason
        self.error = error
        self.asked: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the answer, or raise the error."""
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return CompletionAnswer(self.text, self.finish_reason, None, None)


def test_rules_keep_who_said_what() -> None:
    """The rules find the speaker of each statement: in lines that begin with a time and name, in messages of several
    speakers, and in the message's `name`.
    """
    made = asyncio.run(summarize_context([SYSTEM, *TALK]))
    assert made.original_tokens == estimate_tokens([SYSTEM, *TALK])
    assert not made.by_model
    assert 'Cy said: "The gate code is 4411."' in made.summary
    assert 'Ada said: "We take the cabin in Braemar."' in made.summary
    assert 'Dora said: "I\'m allergic to walnuts."' in made.summary
    assert "Haha" not in made.summary
    assert "You help" not in made.summary


def test_rules_say_what_tools_came_to() -> None:
    """The summary has the outcome of a tool's work, and not the tool's output."""
    text = summarize_by_rules([*TALK, *search(LISTING + "\nerror: disk is full", step=0)])
    assert "memory_search: Outcome: failure; 41 lines." in text
    assert len(text) <= 1_200


def test_an_earlier_summary_goes_on() -> None:
    """An earlier summary is continued, whether it is given as an option or found among the messages. Quotes among the
    messages are not summarised as if somebody had said them.
    """
    previous = "Ada: The boat leaves at seven."
    given_one = summarize_by_rules(TALK, SummarizeOptions(previous=previous))
    among = Message("system", previous, kind=PartKind.SUMMARY)
    quote = Message("user", "Bob: The password is swordfish.", kind=PartKind.RECALL)
    assert given_one == summarize_by_rules([among, quote, *TALK])
    assert given_one.startswith(previous)
    assert "swordfish" not in given_one


def test_a_model_writes_it_where_there_is_one() -> None:
    """If there is a model, the model writes the summary within the limit. Sentences without a source are removed."""
    writer = Writer("Ada takes the cabin in Braemar. Zelda bought 900 swords. Cy has the gate code 4411.")
    made = asyncio.run(summarize_context(TALK, SummarizeOptions(completion=writer)))
    assert made.by_model
    assert made.summary == "Ada takes the cabin in Braemar. Cy has the gate code 4411."
    assert "Cy: The gate code is 4411." in writer.asked[0].prompt
    assert "1200 characters" in writer.asked[0].system


@pytest.mark.parametrize(
    "writer",
    [
        Writer(""),
        Writer("Ada takes the cabin", finish_reason="length"),
        Writer("Zelda bought 900 swords."),
        Writer(error=CompletionError("It is away.", retryable=True)),
    ],
)
def test_a_model_that_fails_is_stood_in_for(writer: Writer) -> None:
    """If the model fails, the rules write the summary; nothing is lost and nothing is raised."""
    made = asyncio.run(summarize_context(TALK, SummarizeOptions(completion=writer)))
    assert not made.by_model
    assert made.summary == summarize_by_rules(TALK)
    assert len(writer.asked) == 1


@pytest.mark.slow
def test_the_model_is_sent_no_more_than_it_takes() -> None:
    """A request to the model never exceeds its input limit and has the newest messages. If the limit is too small, the
    model is not asked.
    """
    writer = Writer("Ada takes the cabin in Braemar.")
    long = [Message("user", f"Ada: We take the cabin in Braemar, number {number}. " * 5) for number in range(500)]
    options = SummarizeOptions(completion=writer, max_input_tokens=1_200)
    asyncio.run(summarize_context(long, options))
    (request,) = writer.asked
    assert 900 < estimate_text_tokens(request.system) + estimate_text_tokens(request.prompt) + 12 <= 1_200
    assert "number 499." in request.prompt
    assert "number 0." not in request.prompt
    tiny = SummarizeOptions(completion=writer, max_input_tokens=100)
    assert not asyncio.run(summarize_context(long, tiny)).by_model
    assert len(writer.asked) == 1


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
    messages = [Message("user", text) for text in texts]
    options = SummarizeOptions(max_summary_chars=limit, previous=previous)
    text = summarize_by_rules(messages, options)
    assert len(text) <= limit
    assert not text or ends_a_sentence(text)
    assert summarize_by_rules(messages, options) == text
