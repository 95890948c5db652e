"""The last step before a model call shortens old outputs, trims and counts, and never exceeds the budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from compaction.budget.prompt import ContextConfig, build_final_prompt, enforce_context_limit
from compaction.budget.trim import TrimOptions
from compaction.errors import ContextOverflowError
from compaction.payload import PartKind, PayloadPart
from compaction.tokens import estimate_tokens
from tests.compaction.budget.talk import LISTING, SYSTEM, answers, ask, conversations, said, use
from tests.compaction.budget.test_trim import TALK


def test_enforcing_says_what_it_dropped() -> None:
    """A conversation that fits is not truncated. Otherwise the result has the messages that were left out."""
    whole = enforce_context_limit(TALK, 10_000)
    assert (whole.messages, whole.truncated, whole.dropped_count) == (TALK, False, 0)
    cut = enforce_context_limit(TALK, 900)
    assert cut.truncated
    assert cut.dropped == tuple(TALK[1 : 1 + cut.dropped_count])
    assert cut.dropped_count == len(TALK) - (len(cut.messages) - 1)
    assert cut.token_count == estimate_tokens(cut.messages) <= 900


def test_a_prompt_ages_outputs_even_where_there_is_room() -> None:
    """Old outputs crowd out the talk long before the model is full, so they are shortened where there is room too."""
    messages = [SYSTEM, *use("search", "{}", LISTING, call_id="s"), *answers(6), ask(1)]
    prompt = build_final_prompt(messages, ContextConfig(32_768))
    assert prompt.messages[2].content.startswith("[Output of search")
    assert (prompt.within_budget, prompt.dropped) == (True, ())
    assert prompt.token_count == estimate_tokens(prompt.messages)


def test_the_impossible_is_refused_with_what_to_do() -> None:
    """The error names the current size, the maximum and the remedy."""
    rules = said("word " * 3_000, role="system", kind=PartKind.SYSTEM)
    with pytest.raises(ContextOverflowError, match="Ask for less at once") as overflow:
        build_final_prompt([rules, ask(1)], ContextConfig(2_000))
    assert overflow.value.maximum == 1_500
    assert overflow.value.current > 3_000


def test_disabled_it_counts_and_sends_everything() -> None:
    """With the budget disabled everything is sent, and only the provider can refuse the prompt."""
    prompt = build_final_prompt(TALK, ContextConfig(1_200, enabled=False))
    assert (prompt.messages, prompt.token_count, prompt.within_budget) == (TALK, estimate_tokens(TALK), False)


@settings(deadline=None)
@given(messages=conversations())
def test_nothing_over_budget_ever_leaves(messages: list[PayloadPart]) -> None:
    """For any conversation the prompt is within the budget, or there is an error that gives the limit."""
    for max_context_tokens in (64, 300, 900, 5_000):
        config = ContextConfig(max_context_tokens, trim=TrimOptions(preserve_recent_turns=2))
        try:
            prompt = build_final_prompt(messages, config)
        except ContextOverflowError as overflow:
            assert overflow.current > overflow.maximum == config.max_input_tokens  # noqa: PT017
            continue
        assert estimate_tokens(prompt.messages) == prompt.token_count <= config.max_input_tokens
        assert build_final_prompt(prompt.messages, config).token_count <= config.max_input_tokens
