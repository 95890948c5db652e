"""Caches of people's sentences are bounded and can be emptied at once."""

from __future__ import annotations

from compaction.sentence_cache import clear_sentence_caches, sentence_cache


def test_a_sentence_is_worked_on_once_until_it_is_forgotten() -> None:
    """A cached function works on a sentence once while the cache holds it. The cache has a size limit, and all caches
    can be emptied at once.
    """
    worked_on: list[str] = []

    @sentence_cache(most=2)
    def length(sentence: str) -> int:
        worked_on.append(sentence)
        return len(sentence)

    assert [length("a"), length("bb"), length("a")] == [1, 2, 1]
    assert worked_on == ["a", "bb"]
    length("ccc")
    length("bb")
    assert worked_on == ["a", "bb", "ccc", "bb"]
    clear_sentence_caches()
    length("bb")
    assert worked_on[-1] == "bb"
    assert len(worked_on) == 5
