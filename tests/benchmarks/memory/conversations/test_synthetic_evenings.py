"""Made-up conversations (evenings) with planted facts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening

EVENING = generate_evening(1, TemplateSet.TUNING, lines=400)


def test_same_seed_makes_the_same_evening() -> None:
    """The same seed makes the same evening, and another seed makes another one."""
    assert generate_evening(1, TemplateSet.TUNING, lines=400) == EVENING
    assert generate_evening(2, TemplateSet.TUNING, lines=400) != EVENING


def test_sets_of_templates_have_no_fact_in_common() -> None:
    """The held-out set shares no sentence, no key and no speaker with the set that is used for tuning."""
    held_out = generate_evening(1, TemplateSet.HELD_OUT, lines=400)
    assert not {line.text for line in held_out.lines} & {line.text for line in EVENING.lines}
    assert not {fact.key for fact in held_out.facts} & {fact.key for fact in EVENING.facts}
    assert not held_out.speakers & EVENING.speakers - {"Roomtone"}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(TemplateSet))
def test_every_statement_is_where_it_says(seed: int, templates: TemplateSet) -> None:
    """The line of each statement is by its speaker and has its value, and the first statement's line has the key."""
    made = generate_evening(seed, templates, lines=200)
    for fact in made.facts:
        assert [each.seq for each in fact.statements] == sorted({each.seq for each in fact.statements})
        for number, each in enumerate(fact.statements):
            line = made.lines[each.seq]
            assert line.speaker == each.speaker
            assert any(value.casefold() in line.text.casefold() for value in each.value)
            assert number > 0 or fact.key.casefold() in line.text.casefold()


def test_several_people_and_the_bot_speak() -> None:
    """An evening has three to five people, and the bot speaks now and then."""
    assert 4 <= len(EVENING.speakers) <= 6
    assert any(line.by_bot for line in EVENING.lines)
    assert all(one.at < other.at for one, other in zip(EVENING.lines, EVENING.lines[1:], strict=False))
