"""Which messages are left out of a conversation that is too large, in which order, and the note that reports them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.eviction_note import EvictedTurns
from compaction.budget.messages import group_messages
from compaction.budget.trim import TrimOptions, TrimStrategy, trim_conversation
from compaction.model import Seq
from compaction.payload import PartKind, PayloadPart
from compaction.tokens import estimate_tokens
from tests.compaction.budget.talk import KINDS, NOW, SYSTEM, TALK, WORDS, ask, conversations, names, read, said, tool


def order_of_leaving(messages: list[PayloadPart], options: TrimOptions) -> list[str]:
    """Return what leaves, in its order, as the target shrinks."""
    order: list[str] = []
    for target in range(estimate_tokens(messages), 0, -1):
        kept = names(trim_conversation(messages, target, options))
        order += [name for name in names(messages) if name not in kept and name not in order]
    return order


def test_the_oldest_turns_leave_and_one_note_tells() -> None:
    """The oldest turns leave until four fifths of the room are used. A note after the prompt says what is missing."""
    kept = trim_conversation(TALK, 1_000, TrimOptions(preserve_recent_turns=3))
    assert 700 < estimate_tokens(kept) <= 850
    assert [each.kind for each in kept[:2]] == [PartKind.SYSTEM, PartKind.EVICTION_NOTE]
    dropped = TALK[1 : 1 + len(TALK) - (len(kept) - 1)]
    assert f"{len(dropped)} messages evicted ({estimate_tokens(dropped)} tokens), said from 08:53 to" in kept[1].content
    assert kept[2:] == TALK[1 + len(dropped) :]


ORDER = [
    *tool(0),
    KINDS[PartKind.CONTINUITY],
    *(said(f"quote {number} {WORDS}", kind=PartKind.RECALL) for number in (1, 2)),
    KINDS[PartKind.NOTE],
    KINDS[PartKind.CHAPTER],
    KINDS[PartKind.SUMMARY],
    *(ask(number) for number in range(4)),
    KINDS[PartKind.PARTICIPANTS],
    *(ask(number) for number in range(4, 6)),
    *read("plan.md", f"plan is {WORDS}"),
]


@pytest.mark.covers("1.14", "4.4")
@pytest.mark.parametrize("left", range(len(ORDER)))
def test_the_order_of_worth(left: int) -> None:
    """What is kept is always worth more than what is not: the design's order, from a stale output to an active file.

    An output of a tool whose file is spoken of outlives the newest turns; the file left first before.
    """
    # In the order in which they are sent, which does not matter for the worth.
    at = {id(part): place for place, part in enumerate(ORDER)}
    sent = [SYSTEM, *(part for part in ORDER if part.kind not in {PartKind.TURN, PartKind.TOOL})]
    # So many answers of the model later.
    later = [said("rule", role="assistant", kind=PartKind.SYSTEM)] * 5
    sent += ORDER[:2] + later + [part for part in ORDER if part.kind is PartKind.TURN] + ORDER[-2:]
    question = said("And plan.md?", kind=PartKind.CURRENT, at=NOW + 900)
    target = estimate_tokens([SYSTEM, *later, question, *ORDER[left:]]) + 90
    kept = trim_conversation([*sent, question], target, TrimOptions(preserve_recent_turns=2, target_utilization=1.0))
    places = sorted(at[id(part)] for part in kept if id(part) in at)
    assert places == list(range(places[0] if places else len(ORDER), len(ORDER)))
    assert kept[-1] is question


@pytest.mark.covers("1.14", "4.4")
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {PartKind.PARTICIPANTS}))
def test_nothing_worth_less_than_a_turn_that_is_out_comes_back(kind: PartKind) -> None:
    """Though the window was cut to four fifths, and there would be room."""
    messages = [SYSTEM, said("short", kind=kind), *TALK[1:]]
    kept = trim_conversation(messages, 1_200, TrimOptions(preserve_recent_turns=3))
    assert estimate_tokens(kept) < 1_100
    assert names(kept)[:2] == ["system", "eviction_note"]


def test_rolling_cuts_the_window_first() -> None:
    """In the rolling mode the turns leave first, until the whole is within the target. Then worth decides."""
    messages = [SYSTEM, KINDS[PartKind.RECALL], *TALK[1:]]
    rolling = TrimOptions(rolling=True, min_keep_messages=4, target_utilization=0.5)
    kept = trim_conversation(messages, 1_200, rolling)
    assert names(kept)[:3] == ["system", "eviction_note", "recall"]
    assert 450 < estimate_tokens(kept) <= 600 + 40
    tight = names(trim_conversation(messages, 420, rolling))
    assert "recall" not in tight
    assert tight[-5:] == ["ask 15", "ask 16", "ask 17", "ask 18", "ask 19"]
    assert names(trim_conversation(messages, 1_200, replace(rolling, eviction_note=False)))[:2] == ["system", "recall"]


def test_oldest_first_goes_by_age_alone() -> None:
    """With the strategy `oldest-first` messages leave by age. The newest turns and the current turn stay longest."""
    messages = [SYSTEM, KINDS[PartKind.SUMMARY], ask(0), ask(1), ask(2), KINDS[PartKind.RECALL], ask(3)]
    options = TrimOptions(trim_strategy=TrimStrategy.OLDEST, preserve_recent_turns=2)
    assert order_of_leaving(messages, options) == ["summary", "ask 0", "recall", "ask 1", "ask 2"]


def test_the_system_prompt_can_be_given_up_last() -> None:
    """If the settings allow it, the system prompt is left out when nothing else can be."""
    messages = [said("rule " * 100, role="system", kind=PartKind.SYSTEM), *TALK[1:]]
    kept = trim_conversation(messages, 150, TrimOptions(preserve_system_prompt=False))
    assert names(kept) == ["eviction_note", "ask 19"]
    assert names(trim_conversation(messages, 150)) == ["system", "eviction_note", "ask 19"]


def turns(first: int, count: int) -> list[PayloadPart]:
    """Return turns of a session with their numbers, ten minutes apart."""
    numbers = range(first, first + count)
    return [
        replace(ask(number), seq_from=Seq(number), seq_to=Seq(number), timestamp=NOW + 600 * number)
        for number in numbers
    ]


@pytest.mark.parametrize(
    ("evicted", "searchable", "offset_h", "told"),
    [
        (None, False, 0, "turns 3 to 5, said from 09:23 to 09:43.]"),
        (None, True, 0, "said from 09:23 to 09:43. Full transcript searchable via memory_search.]"),
        # The newest turn is of the next day.
        (None, False, 14, "said from 2025-10-09 23:23 to 2025-10-09 23:43.]"),
        (EvictedTurns(Seq(1), Seq(3), 50, NOW, NOW), False, 0, "5 messages evicted ("),
        (EvictedTurns(Seq(1), Seq(3), 50, NOW, NOW), False, 0, "turns 1 to 5, said from 08:53 to 09:43.]"),
    ],
)
def test_the_note_says_what_and_when(evicted: EvictedTurns | None, searchable: bool, offset_h: int, told: str) -> None:
    """The note has the turns and their times, with those that the session evicted before; dates past midnight."""
    options = TrimOptions(
        preserve_recent_turns=3, evicted=evicted, searchable=searchable, zone=timezone(timedelta(hours=offset_h))
    )
    kept = trim_conversation([SYSTEM, *turns(3, 7)], 370, options)
    assert told in kept[1].content
    assert (kept[1].seq_from, kept[1].seq_to) == (3 if evicted is None else 1, 5)


def test_an_earlier_note_stays_told() -> None:
    """An earlier eviction note is kept inside the new one, so there is still only one note."""
    earlier = replace(
        said("[Context rolled: turns 0 to 2]", role="system", kind=PartKind.EVICTION_NOTE), seq_from=Seq(0)
    )
    earlier = replace(earlier, seq_to=Seq(2))
    kept = trim_conversation([SYSTEM, earlier, *turns(3, 7)], 380, TrimOptions(preserve_recent_turns=3))
    assert [each.kind for each in kept].count(PartKind.EVICTION_NOTE) == 1
    assert kept[1].content.startswith(earlier.content)
    assert (kept[1].seq_from, kept[1].seq_to) == (0, 5)


@pytest.mark.covers("1.14")
@settings(deadline=None)
@given(
    messages=conversations(),
    target=st.integers(0, 1_500),
    options=st.builds(
        TrimOptions,
        trim_strategy=st.sampled_from(TrimStrategy),
        preserve_recent_turns=st.integers(0, 5),
        preserve_system_prompt=st.booleans(),
        target_utilization=st.floats(0.1, 1.0),
        rolling=st.booleans(),
        min_keep_messages=st.integers(0, 5),
    ),
)
def test_any_trimming(messages: list[PayloadPart], target: int, options: TrimOptions) -> None:
    """Any trimmed conversation fits the target unless nothing more can be left out. Its order is kept, a call and its
    results stay together, there is one note, and the result is always the same.
    """
    kept = trim_conversation(messages, target, options)
    assert trim_conversation(messages, target, options) == kept
    notes = [each for each in kept if each.kind is PartKind.EVICTION_NOTE]
    rest = [each for each in kept if each.kind is not PartKind.EVICTION_NOTE]
    remaining = iter(messages)
    assert all(any(each is candidate for candidate in remaining) for each in rest)
    assert len(notes) == (len(rest) < len(messages))
    for group in group_messages(messages):
        together = [any(messages[at] is each for each in rest) for at in group]
        assert messages[group[0]].kind is not PartKind.TOOL or all(together) or not any(together)
    assert estimate_tokens(kept) <= max(target, estimate_tokens(trim_conversation(messages, 0, options)))
    if options.trim_strategy is TrimStrategy.PRIORITY and not options.rolling:
        gone = [each for each in messages if each.kind is PartKind.TURN and not any(each is other for other in rest)]
        worth_less = {PartKind.CONTINUITY, PartKind.RECALL, PartKind.NOTE, PartKind.SUMMARY}
        assert not gone or all(each.kind not in worth_less for each in rest)
    assert not options.preserve_system_prompt or all(each in kept for each in messages if each is SYSTEM)
