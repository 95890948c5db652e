"""Which parts of a prompt are left out first, which come back, and the note that lists what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.budget.fit import CUTTABLE, LeftOut, PartCandidates, fit_parts
from compaction.budget.rolling import RollingPolicy
from compaction.errors import ContextOverflowError

NOTE_TOKENS = 5


@dataclass(frozen=True)
class Sized:
    content: str
    tokens: int
    timestamp: float | None = None


def described(cut: LeftOut[Sized]) -> Sized | None:
    """Return a note of five tokens that lists what was left out."""
    parts = (*cut.summary, *cut.turns, *cut.notes, *cut.recall, *cut.participants)
    parts = (*parts, *cut.continuity)
    assert bool(cut) is bool(parts)
    return Sized("cut " + " ".join(each.content for each in parts), NOTE_TOKENS) if parts else None


def sent(limit: int, *, turns: int = 12, summary: int = 20, notes: int = 2, recall: int = 2) -> list[str]:
    """Fit a sample prompt into `limit` tokens and return the contents of its parts.

    The prompt has 10 tokens, each turn 10, each note and quote 6, and the current turn 10.
    """
    return [
        each.content
        for each in fit_parts(
            PartCandidates(
                fixed=(Sized("prompt", 10),),
                summary=(Sized("summary", summary),),
                turns=tuple(Sized(f"t{number}", 10) for number in range(turns)),
                notes=tuple(Sized(f"n{number}", 6) for number in range(notes)),
                recall=tuple(Sized(f"q{number}", 6) for number in range(recall)),
                current=(Sized("current", 10),),
            ),
            max_input_tokens=limit,
            newest=3,
            describe=described,
        )
    ]


TURNS = [f"t{number}" for number in range(12)]
WHOLE = 10 + 20 + 120 + 12 + 12 + 10


def test_all_of_it_when_it_fits() -> None:
    """A prompt that fits is sent whole, without a note."""
    assert sent(WHOLE) == ["prompt", "summary", *TURNS, "n0", "n1", "q0", "q1", "current"]


def test_quotes_go_first_from_the_last() -> None:
    """Quotes are left out first, beginning with the last one, which is the least similar to the question."""
    assert sent(WHOLE - 1) == ["prompt", "summary", "cut q1", *TURNS, "n0", "n1", "q0", "current"]


def test_then_notes_from_the_oldest() -> None:
    """The oldest note is left out before newer ones."""
    assert sent(WHOLE - 12) == ["prompt", "summary", "cut n0 q0 q1", *TURNS, "n1", "current"]


def test_then_the_summary() -> None:
    """The summary is left out before the window: recent words are worth more than old history."""
    assert sent(WHOLE - 12 - 12 - 1) == ["prompt", "cut summary n0 n1 q0 q1", *TURNS, "current"]


def test_then_the_window_in_one_go_and_the_rest_returns() -> None:
    """The window is cut to four fifths at once. The summary, notes and quotes come back as far as they fit
    beside it.
    """
    assert sent(144) == ["prompt", "summary", "cut t0 t1 t2 n0 q0 q1", *TURNS[3:], "n1", "current"]


def test_the_newest_turns_go_at_the_very_last() -> None:
    """The newest turns are left out last, when the bot could not answer otherwise."""
    assert sent(10 + 10 + NOTE_TOKENS + 20)[2:] == ["t10", "t11", "current"]
    assert sent(10 + 10 + NOTE_TOKENS)[-1] == "current"
    with pytest.raises(ContextOverflowError):
        sent(10 + 10 + NOTE_TOKENS - 1)


def test_nothing_but_the_prompt() -> None:
    """A payload without turns and without a current turn is valid."""
    prompt = Sized("prompt", 10)
    assert fit_parts(PartCandidates(fixed=(prompt,)), max_input_tokens=10, newest=3, describe=described) == (prompt,)


# Every kind of part, with ten tokens each. There are four turns, and the newest two are protected.
EVERYTHING: PartCandidates[Sized] = PartCandidates(
    fixed=(Sized("prompt", 10),),
    continuity=(Sized("c0", 10), Sized("c1", 10)),
    summary=(Sized("summary", 10),),
    participants=(Sized("p0", 10),),
    turns=tuple(Sized(f"t{number}", 10) for number in range(4)),
    notes=(Sized("n0", 10),),
    recall=(Sized("q0", 10), Sized("q1", 10)),
    current=(Sized("current", 10),),
)
# The parts in the order in which they are left out. Parts listed before the turns come back beside a cut window, as far
# as they fit.
LEAST_FIRST = ["c0", "c1", "q1", "q0", "n0", "summary", "t0", "t1", "p0", "t2", "t3"]


@pytest.mark.parametrize("missing", [1, 2, 3, 4, 5, 6, 9, 10, 11])
def test_the_order_of_worth(missing: int) -> None:
    """The parts left out are always the ones that docs/budget.md ranks lowest."""
    everything = ["prompt", "current", *LEAST_FIRST]
    limit = 10 * (len(everything) - missing) + NOTE_TOKENS
    kept = [each.content for each in fit_parts(EVERYTHING, max_input_tokens=limit, newest=2, describe=described)]
    assert {each for each in kept if not each.startswith("cut")} == set(everything) - set(LEAST_FIRST[:missing])


def test_the_order_in_which_parts_are_sent() -> None:
    """Parts that rarely change are sent first, so that a provider may cache them. Parts about the question are sent
    last.
    """
    whole = fit_parts(EVERYTHING, max_input_tokens=1_000, newest=2, describe=described)
    assert [each.content for each in whole] == [
        *("prompt", "c0", "c1", "summary", "p0", "t0", "t1", "t2", "t3"),
        *("n0", "q0", "q1", "current"),
    ]


def test_rolling_evicts_the_window_and_keeps_the_rest() -> None:
    """In the rolling mode the oldest turns are left out first, until four fifths of the limit are used."""
    turns = tuple(Sized(f"t{number}", 10) for number in range(20))
    offered = PartCandidates(
        fixed=(Sized("prompt", 10),), turns=turns, notes=(Sized("n0", 10),), current=(Sized("current", 10),)
    )
    policy = RollingPolicy(min_keep_messages=5)
    sent = fit_parts(offered, max_input_tokens=200, newest=5, describe=described, rolling=policy)
    assert [each.content for each in sent if each.content.startswith("t")] == [f"t{number}" for number in range(7, 20)]
    assert sum(each.tokens for each in sent) == 160 + NOTE_TOKENS
    assert "n0" in [each.content for each in sent]
    # If everything fits, nothing is evicted.
    assert len(fit_parts(offered, max_input_tokens=230, newest=5, describe=described, rolling=policy)) == 23
    # The newest turns stay while anything else can be left out.
    tight = [
        each.content for each in fit_parts(offered, max_input_tokens=80, newest=5, describe=described, rolling=policy)
    ]
    assert tight == ["prompt", tight[1], "t15", "t16", "t17", "t18", "t19", "current"]
    assert "n0" in tight[1]


_SIZES = st.lists(st.integers(1, 40), max_size=8)


@given(
    sizes=st.fixed_dictionaries(dict.fromkeys(CUTTABLE, _SIZES)),
    limit=st.integers(20, 700),
    newest=st.integers(0, 5),
    rolling=st.booleans(),
)
def test_never_over_the_limit_and_in_order(sizes: dict[str, list[int]], limit: int, newest: int, rolling: bool) -> None:
    """Any payload is within the limit. Of each kind the oldest parts are left out first, and of the quotes the least
    similar ones. No part of a lower rank is kept if one of the newest turns or a fact about the people was left out.
    """
    offered: PartCandidates[Sized] = PartCandidates(
        fixed=(Sized("prompt", 5),),
        current=(Sized("current", 5),),
        **{name: tuple(Sized(f"{name} {at}", size) for at, size in enumerate(each)) for name, each in sizes.items()},
    )
    policy = RollingPolicy(min_keep_messages=newest) if rolling else None
    sent = fit_parts(offered, max_input_tokens=limit, newest=newest, describe=described, rolling=policy)
    assert sum(each.tokens for each in sent) <= limit
    kept = {name: [each for each in getattr(offered, name) if each in sent] for name in CUTTABLE}
    for name in CUTTABLE:
        whole = list(getattr(offered, name))
        count = len(kept[name])
        assert kept[name] == (whole[:count] if name == "recall" else whole[len(whole) - count :])
    lost_newest = len(kept["turns"]) < min(newest, len(sizes["turns"]))
    lost_people = len(kept["participants"]) < len(sizes["participants"])
    if lost_newest:
        assert not kept["participants"]
    if lost_newest or lost_people:
        assert not any(kept[name] for name in ("summary", "notes", "recall", "continuity"))
    for more, less in pairwise(("summary", "notes", "recall", "continuity")):
        if len(kept[more]) < len(sizes[more]):
            assert not kept[less]
    missing = sum(len(each) for each in sizes.values()) - sum(len(each) for each in kept.values())
    assert any(each.content.startswith("cut") for each in sent) is bool(missing)
