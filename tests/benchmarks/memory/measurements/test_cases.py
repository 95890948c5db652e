"""The tables of short talks as conversations, and what a text states of them."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.folds import folds_possible
from benchmarks.memory.judges.statement_judge import StatementJudge
from benchmarks.memory.measurements.cases import TABLES, read_cases, read_small_talk


@pytest.mark.parametrize("table", TABLES)
def test_cases_are_folded_once(table: str) -> None:
    """Their talk comes first, and words of agreement fill the window."""
    for case in read_cases(table):
        assert folds_possible(case.conversation) == 1
        assert case.conversation.lines[-1].text == "Okay."


def test_small_talk_is_labelled() -> None:
    """Both halves have chatter and lines worth keeping."""
    for apart in (False, True):
        talk = read_small_talk(apart=apart)
        assert 0 < len(talk.chatter) < folds_possible(talk) * 10


@pytest.mark.parametrize(
    ("text", "who", "words", "denied"),
    [
        ("Ada can come on Friday.", "Ada", "come Friday", False),
        ("Ada: I can't bring the cake after all.", "Ada", "cake", True),
        ("Ada comes on Friday, but Bob can't come.", "Bob", "come", True),
        ("Bob: I owe Ada 20 euros.", "Bob", "owe Ada 20", False),
        ("Bob does not eat meat any more.", "Bob", "eat meat", True),
    ],
)
def test_statement_is_found_with_its_sign(text: str, who: str, words: str, *, denied: bool) -> None:
    """Of the right person, and not with the other sign."""
    judge = StatementJudge({"Ada", "Bob"})
    assert judge.says_of(text, who, words, denied=denied)
    assert not judge.says_of(text, who, words, denied=not denied)
    assert not judge.says_of(text.replace(who, "Cleo"), who, words, denied=denied)
