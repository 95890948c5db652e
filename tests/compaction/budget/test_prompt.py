"""The last step before a model call shortens old outputs, trims and counts, and never exceeds the budget."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.prompt import ContextConfig, build_final_prompt, enforce_context_limit, summarize_context
from compaction.budget.trim import TrimOptions
from compaction.errors import ContextOverflowError
from compaction.language.text import ends_a_sentence
from compaction.payload import PartKind, PayloadPart
from compaction.tokens import estimate_text_tokens, estimate_tokens
from tests.compaction.budget.talk import LISTING, SYSTEM, TALK, answers, ask, conversations, said, use
from tests.compaction.turn_store_contract import bot_turn, turn
from tests.sources import ROOT, nodes

NAMED = {
    *("estimate_tokens", "enforce_context_limit", "trim_conversation", "summarize_context", "build_final_prompt"),
    *("truncate_old_tool_outputs", "should_truncate_tool_result", "create_truncated_placeholder"),
    *("get_active_files", "should_preserve_file_content", "summarize_tool_output", "extract_key_info"),
    *("plan", "rolling_evict"),
}


@pytest.mark.covers("4.3")
def test_enforcing_says_what_it_dropped() -> None:
    """A conversation that fits is not truncated. Otherwise the result has the messages that were left out."""
    whole = enforce_context_limit(TALK, 10_000)
    assert (whole.messages, whole.truncated, whole.dropped_count) == (TALK, False, 0)
    cut = enforce_context_limit(TALK, 900)
    assert cut.truncated
    assert cut.dropped == tuple(TALK[1 : 1 + cut.dropped_count])
    assert cut.dropped_count == len(TALK) - (len(cut.messages) - 1)
    assert cut.token_count == estimate_tokens(cut.messages) <= 900


@pytest.mark.covers("4.3", "5.6")
@pytest.mark.slow
def test_the_named_functions_are_what_the_product_calls() -> None:
    """Those of specs 4 and 5, and `plan` and `rolling_evict`, are no facade beside what is called."""
    files = [path for folder in ("bot", "compaction") for path in (ROOT / folder).rglob("*.py")]
    called = {ast.unparse(node.func) for path in files for node in nodes(path) if isinstance(node, ast.Call)}
    assert NAMED - called == set()


@pytest.mark.covers("5.5")
def test_a_prompt_ages_outputs_even_where_there_is_room() -> None:
    """Old outputs crowd out the talk long before the model is full, so they are shortened where there is room too."""
    messages = [SYSTEM, *use("search", "{}", LISTING, call_id="s"), *answers(6), ask(1)]
    prompt = build_final_prompt(messages, ContextConfig(32_768))
    assert prompt.messages[2].content.startswith("[Output of search")
    assert (prompt.within_budget, prompt.dropped) == (True, ())
    assert prompt.token_count == estimate_tokens(prompt.messages)


@pytest.mark.covers("4.5")
def test_the_impossible_is_refused_with_what_to_do() -> None:
    """The error names the current size, the maximum and the remedy."""
    rules = said("word " * 3_000, role="system", kind=PartKind.SYSTEM)
    with pytest.raises(ContextOverflowError, match="less") as overflow:
        build_final_prompt([rules, ask(1)], ContextConfig(1_500))
    assert overflow.value.maximum == 1_500
    assert overflow.value.current > 3_000


def test_disabled_it_counts_and_sends_everything() -> None:
    """With the budget disabled everything is sent, and only the provider can refuse the prompt."""
    prompt = build_final_prompt(TALK, ContextConfig(1_200, enabled=False))
    assert (prompt.messages, prompt.token_count, prompt.within_budget) == (TALK, estimate_tokens(TALK), False)


@pytest.mark.covers("4.5")
@settings(deadline=None)
@given(messages=conversations())
def test_nothing_over_budget_ever_leaves(messages: list[PayloadPart]) -> None:
    """For any conversation the prompt is within the budget, or there is an error that gives the limit."""
    for max_input_tokens in (48, 225, 675, 3_750):
        config = ContextConfig(max_input_tokens, trim=TrimOptions(preserve_recent_turns=2))
        try:
            prompt = build_final_prompt(messages, config)
        except ContextOverflowError as overflow:
            assert overflow.current > overflow.maximum == max_input_tokens  # noqa: PT017
            continue
        assert estimate_tokens(prompt.messages) == prompt.token_count <= max_input_tokens
        assert build_final_prompt(prompt.messages, config).token_count <= max_input_tokens


def test_rules_keep_who_said_what() -> None:
    """Each sentence has its speaker, also in a turn of several people. What the bot said is in none."""
    both = (*turn(1, "Haha.", speaker="Bob").parts, *turn(1, "The gate code is 4411.", speaker="Cy").parts)
    turns = [
        turn(0, "We take the cabin in Braemar."),
        replace(turn(1), parts=both),
        bot_turn(2, "It costs 250 pounds."),
    ]
    made = summarize_context(turns)
    assert made.original_tokens == sum(estimate_text_tokens(each.text) for each in turns)
    assert made.summary == 'Ada: "We take the cabin in Braemar." Cy: "The gate code is 4411."'


@settings(deadline=None, max_examples=30)
@given(texts=st.lists(st.text(max_size=300), max_size=30), limit=st.integers(100, 1_200))
def test_any_summary_keeps_its_limit(texts: list[str], limit: int) -> None:
    """The summary of any turns keeps its limit and ends with a sentence, and the same turns give the same summary."""
    turns = [turn(seq, text) for seq, text in enumerate(texts)]
    text = summarize_context(turns, max_summary_chars=limit).summary
    assert len(text) <= limit
    assert not text or ends_a_sentence(text)
    assert summarize_context(turns, max_summary_chars=limit).summary == text
