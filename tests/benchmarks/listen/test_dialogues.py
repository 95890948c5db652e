"""The scripted dialogues are the same every time, there are enough of them, and the two sets share nothing."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from benchmarks.listen.dialogues import load_dialogues
from benchmarks.listen.timed_talk import ReplyExpected
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet


@pytest.mark.parametrize("part", TemplateSet)
def test_there_is_enough_of_everything(part: TemplateSet) -> None:
    """Each set has hundreds of lines between one to five people, most of them meant for each other and not
    for the bot.
    """
    made = load_dialogues(part)
    lines = [line for talk in made for line in talk.lines]
    owed = Counter(line.owed for line in lines)
    assert len(lines) > 400
    assert owed[ReplyExpected.YES] >= 100
    assert owed[ReplyExpected.NO] > 4 * owed[ReplyExpected.YES]
    assert {len(talk.people) for talk in made} >= {1, 2, 3, 4, 5}
    kinds = {line.kind for line in lines}
    assert kinds >= {"name", "misheard", "follow_up", "about", "similar", "others", "to_bots", "by_bots", "hushed"}


def test_the_held_out_part_shares_nothing_with_the_tuning_part() -> None:
    """The two sets share no template, no bot name and no conversation. Misheard names are counted separately for each
    set.
    """
    tables = [
        tomllib.loads((files("benchmarks.listen") / "talks" / f"{part.value}.toml").read_text("utf-8"))
        for part in TemplateSet
    ]
    for pool in tables[0]:
        if pool not in {"conversation", "heard"}:
            assert not set(tables[0][pool]) & set(tables[1][pool]), pool
    written = [{line for each in table["conversation"] for line in each["talk"].splitlines()} for table in tables]
    assert written[0] & written[1] <= {""}
