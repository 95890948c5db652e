"""A model's thoughts are told from its words, whether or not their tag is opened, and however the answer is cut."""

from __future__ import annotations

import pytest

from bot.llm.thoughts import Thoughts, words_of

BYTEWISE, WHOLE = 1, 999


def separated(text: str, *, unopened: bool, size: int, cut_off: bool = False) -> tuple[str, Thoughts]:
    """Return the words of an answer that comes in pieces of `size` characters."""
    thoughts = Thoughts(unopened=unopened)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    words = "".join(map(thoughts.feed, pieces))
    return words + thoughts.end(cut_off=cut_off), thoughts


@pytest.mark.parametrize("size", [BYTEWISE, 3, WHOLE])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Bo brings it.", "Bo brings it."),
        ("  <b>Bo</b> brings it.", "  <b>Bo</b> brings it."),
        ("<think>Who? Bo.</think>\n\nBo brings it.", "\n\nBo brings it."),
        ("\n<think></think>Bo.", "Bo."),
        ("<think>Who brings", ""),
        ("<th", "<th"),
        ("", ""),
        ("I <think> so.", "I <think> so."),
    ],
)
def test_opened_thoughts_are_left_out(text: str, words: str, size: int) -> None:
    """Thoughts at the beginning are left out, also those that never end."""
    for cut_off in (False, True):
        found, thoughts = separated(text, unopened=False, size=size, cut_off=cut_off)
        assert found == words
        assert not thoughts.was_answer


@pytest.mark.parametrize("size", [BYTEWISE, 3, WHOLE])
def test_thoughts_that_nothing_opens_are_left_out_where_they_are_expected(size: int) -> None:
    found, thoughts = separated("They ask who. Bo.</think>Bo brings it.", unopened=True, size=size)
    assert (found, thoughts.was_answer) == ("Bo brings it.", False)


@pytest.mark.parametrize("size", [BYTEWISE, 3, WHOLE])
def test_an_answer_without_the_expected_thoughts_is_an_answer(size: int) -> None:
    """It is passed on whole at its end. If it is cut off there, it may be thoughts, and is left out."""
    found, thoughts = separated("Bo brings it.", unopened=True, size=size)
    assert (found, thoughts.was_answer) == ("Bo brings it.", True)
    found, thoughts = separated("They ask who brings", unopened=True, size=size, cut_off=True)
    assert (found, thoughts.was_answer) == ("", False)


@pytest.mark.parametrize(
    ("answer", "unopened", "cut_off", "words"),
    [
        ("Bo brings it.", False, False, "Bo brings it."),
        ("Bo brings it.", True, False, "Bo brings it."),
        ("They ask who brings", True, True, ""),
        ("Bo brings", False, True, "Bo brings"),
        ("<think>Who? Bo.</think>Bo brings it.", False, False, "Bo brings it."),
        ("<think>Who? Bo.</think>Bo brings it.", True, False, "Bo brings it."),
        ("Who? Bo.</think>Bo brings it.", False, False, "Bo brings it."),
        ("Bo wrote <think>so</think>.", False, False, "Bo wrote <think>so</think>."),
    ],
)
def test_a_whole_answer_has_its_words_at_once(answer: str, unopened: bool, cut_off: bool, words: str) -> None:
    """Thoughts that nothing opens are seen the first time, because all of the answer is there."""
    assert words_of(answer, unopened=unopened, cut_off=cut_off) == words
