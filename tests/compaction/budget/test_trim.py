"""Which messages are removed from a conversation that is too large, in which order, and the note that reports them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.messages import Message, MessageToolCall, group_messages
from compaction.budget.trim import TrimOptions, TrimStrategy, trim_conversation
from compaction.payload import PartKind
from compaction.tokens import estimate_tokens

WORDS = "word " * 40
NOW = 1_760_000_000.0


def ask(number: int) -> Message:
    """Return a message that a person said."""
    return Message("user", f"ask {number} {WORDS}", timestamp=NOW + 60 * number)


def tool(number: int, *, step: int | None = None) -> list[Message]:
    """Return a call of a tool and its result."""
    call = MessageToolCall(f"call-{number}", "read", "{}")
    return [
        Message("assistant", "", tool_calls=(call,), step=step),
        Message("tool", f"output {number} {WORDS}", tool_call_id=call.id, name="read", step=step),
    ]


def names(messages: list[Message]) -> list[str]:
    """Return the first two words of each message, or its kind if it has one."""
    return [each.kind.value if each.kind else " ".join(each.content.split()[:2]) for each in messages]


SYSTEM = Message("system", "You help.")
TALK = [SYSTEM, *(ask(number) for number in range(20))]


def test_all_of_it_where_it_fits() -> None:
    """A conversation that fits stays unchanged and gets no note."""
    assert trim_conversation(TALK, estimate_tokens(TALK)) == TALK


def test_the_oldest_turns_leave_and_one_note_tells() -> None:
    """The oldest turns are removed. One note after the prompt says how many, how many tokens and from when to when."""
    kept = trim_conversation(TALK, 900)
    assert estimate_tokens(kept) <= 900
    assert kept[0] == SYSTEM
    assert kept[1].kind is PartKind.EVICTION_NOTE
    dropped = len(TALK) - (len(kept) - 1)
    assert f"{dropped} messages evicted" in kept[1].content
    assert f"({estimate_tokens(TALK[1 : 1 + dropped])} tokens, said from 2025-10-09 08:53 to" in kept[1].content
    assert kept[2:] == TALK[1 + dropped :]


def test_the_note_points_to_search_only_where_there_is_one() -> None:
    """The note mentions the search tool only if there is one."""
    for searchable in (True, False):
        kept = trim_conversation(TALK, 900, TrimOptions(searchable=searchable))
        assert ("memory_search" in kept[1].content) is searchable


def test_an_earlier_note_stays_told() -> None:
    """An earlier eviction note is kept inside the new one, so there is still only one note."""
    earlier = Message("system", "[Context rolled: left out: turns 0 to 9]", kind=PartKind.EVICTION_NOTE)
    kept = trim_conversation([SYSTEM, earlier, *TALK[1:]], 900)
    assert [each.kind for each in kept].count(PartKind.EVICTION_NOTE) == 1
    assert kept[1].content.startswith(earlier.content)
    assert "messages evicted" in kept[1].content
    assert estimate_tokens(kept) <= 900


def test_stale_outputs_leave_before_any_turn() -> None:
    """A tool output older than five steps is removed first, together with its call. A fresh output counts as much as a
    turn.
    """
    messages = [SYSTEM, *tool(0, step=0), ask(1), *tool(1, step=7), ask(2), ask(3)]
    kept = trim_conversation(
        messages, estimate_tokens(messages) - 60, TrimOptions(preserve_recent_turns=0, current_step=8)
    )
    assert names(kept) == ["You help.", "eviction_note", "ask 1", "", "output 1", "ask 2", "ask 3"]


def test_work_on_the_current_turn_outlives_the_talk_before_it() -> None:
    """Tool results for the current turn stay longer than earlier turns, because the model has just asked for them."""
    messages = [SYSTEM, *(ask(number) for number in range(6)), *tool(1), *tool(2)]
    kept = trim_conversation(messages, 360)
    assert names(kept) == ["You help.", "eviction_note", "ask 5", "", "output 1", "", "output 2"]
    least = trim_conversation(messages, 260)
    assert names(least) == ["You help.", "eviction_note", "ask 5", "", "output 2"]


KINDS = {
    "continuity": Message("user", f"continuity … {WORDS}", kind=PartKind.CONTINUITY),
    "summary": Message("user", f"summary … {WORDS}", kind=PartKind.SUMMARY),
    "participants": Message("user", f"participants … {WORDS}", kind=PartKind.PARTICIPANTS),
    "note": Message("user", f"note … {WORDS}", kind=PartKind.NOTE),
    "recall": Message("user", f"recall … {WORDS}", kind=PartKind.RECALL),
}


def test_the_order_of_worth() -> None:
    """As the target shrinks, parts are removed in the order of docs/budget.md."""
    messages = [
        SYSTEM,
        *(KINDS[name] for name in ("continuity", "summary", "participants")),
        *tool(0, step=0),
        ask(1),
        ask(2),
        *(KINDS[name] for name in ("note", "recall")),
        ask(3),
    ]
    options = TrimOptions(preserve_recent_turns=1, current_step=9)
    order: list[str] = []
    for target in range(estimate_tokens(messages), 0, -1):
        kept = names(trim_conversation(messages, target, options))
        order += [name for name in names(messages) if name not in kept and name not in order]
    assert order == [
        *("", "output 0", "continuity", "recall", "note", "summary", "ask 1", "participants", "ask 2"),
    ]


def test_oldest_first_goes_by_age_alone() -> None:
    """With the strategy `oldest` messages are removed by age alone. The prompts, the newest turns and the current turn
    stay.
    """
    messages = [SYSTEM, KINDS["summary"], ask(0), *tool(0, step=0), ask(1), ask(2), ask(3)]
    options = TrimOptions(trim_strategy=TrimStrategy.OLDEST, preserve_recent_turns=2, current_step=9)
    order: list[str] = []
    for target in range(estimate_tokens(messages), 0, -1):
        kept = names(trim_conversation(messages, target, options))
        order += [name for name in names(messages) if name not in kept and name not in order]
    assert order == ["summary", "ask 0", "", "output 0", "ask 1", "ask 2"]


def test_the_system_prompt_can_be_given_up() -> None:
    """If the settings allow it, the system prompt is removed like any other message."""
    kept = trim_conversation(TALK, 300, TrimOptions(preserve_system_prompt=False, preserve_recent_turns=2))
    assert SYSTEM not in kept
    assert kept[0].kind is PartKind.EVICTION_NOTE
    assert kept[-1] == TALK[-1]


def test_what_never_leaves_stays_even_when_it_is_too_much() -> None:
    """Trimming keeps the protected messages even over the target; the caller decides whether to send them."""
    assert names(trim_conversation(TALK, 1)) == ["You help.", "eviction_note", "ask 19"]
    assert trim_conversation([SYSTEM], 1) == [SYSTEM]
    assert trim_conversation([], 0) == []


_KINDS = st.sampled_from([None, None, None, *KINDS.values()])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw any conversation of prompts, talk, tool calls with results, and parts of a payload."""
    messages = [SYSTEM] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 12))):
        match draw(st.integers(0, 3)):
            case 0:
                messages += tool(number, step=draw(st.none() | st.integers(0, 20)))
            case 1:
                known = draw(_KINDS)
                messages.append(ask(number) if known is None else known)
            case 2:
                messages.append(Message("assistant", draw(st.text(max_size=60))))
            case _:
                messages.append(Message("user", draw(st.text(max_size=300)), timestamp=NOW + number))
    return messages


@settings(deadline=None)
@given(
    messages=conversations(),
    target=st.integers(0, 1_500),
    strategy=st.sampled_from(TrimStrategy),
    recent=st.integers(0, 5),
    keep_prompt=st.booleans(),
)
def test_any_trimming(
    messages: list[Message], target: int, strategy: TrimStrategy, recent: int, keep_prompt: bool
) -> None:
    """Any trimmed conversation fits the target unless nothing more can be removed. Its order is kept, bundles stay
    whole, there is one note, and the result is always the same.
    """
    options = TrimOptions(
        trim_strategy=strategy, preserve_recent_turns=recent, preserve_system_prompt=keep_prompt, current_step=30
    )
    kept = trim_conversation(messages, target, options)
    assert trim_conversation(messages, target, options) == kept
    notes = [each for each in kept if each.kind is PartKind.EVICTION_NOTE]
    rest = [each for each in kept if each.kind is not PartKind.EVICTION_NOTE]
    remaining = iter(messages)
    assert all(any(each is candidate for candidate in remaining) for each in rest)
    assert len(notes) == (len(rest) < len(messages))
    for bundle in group_messages(messages):
        together = [any(messages[at] is each for each in rest) for at in bundle]
        assert all(together) or not any(together)
    least = trim_conversation(messages, 0, options)
    assert estimate_tokens(kept) <= max(target, estimate_tokens(least))
    if keep_prompt:
        assert all(each in kept for each in messages if each == SYSTEM)


@pytest.mark.parametrize("strategy", TrimStrategy)
def test_ten_thousand_turns(strategy: TrimStrategy) -> None:
    """A session of ten thousand turns is trimmed to fit a small model."""
    messages = [SYSTEM]
    for number in range(10_000):
        messages += tool(number) if number % 50 == 0 else [ask(number)]
    kept = trim_conversation(messages, 6_000, TrimOptions(trim_strategy=strategy))
    assert 5_000 < estimate_tokens(kept) <= 6_000
    assert kept[-1] == messages[-1]
