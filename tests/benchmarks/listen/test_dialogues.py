"""The scripted dialogues are the same every time, there are enough of them, and the two sets share nothing."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from benchmarks.memory.conversations.synthetic_evenings import TemplateSet


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
