"""How the fact judge matches text."""

from __future__ import annotations

from benchmarks.memory.judges.text_matching import mentions, mentions_any, read_sentences


def test_sentences_end_at_marks_and_lines() -> None:
    """Punctuation marks and line ends separate sentences, and abbreviations do not."""
    assert read_sentences("Ada: Hi. Are you in? Yes!\n- Bob left") == ["Ada: Hi.", "Are you in?", "Yes!", "- Bob left"]
    assert read_sentences("We need fruit, e.g. kiwi. Fine.") == ["We need fruit, e.g. kiwi.", "Fine."]


def test_no_is_a_sentence_of_its_own() -> None:
    """'No.' as an answer is a sentence and not an abbreviation of 'number'."""
    assert read_sentences("No. It is Friday.") == ["No.", "It is Friday."]
    assert read_sentences("Ada: No. It is Friday.") == ["Ada: No.", "It is Friday."]


def test_blank_text_has_no_sentences() -> None:
    """A blank text has no sentences."""
    assert read_sentences("  \n ") == []


def test_phrase_is_found_whole() -> None:
    """A phrase is found only as whole words, and case and punctuation do not matter."""
    assert mentions("The QUIZ-evening, then.", "quiz evening")
    assert not mentions("quizevening", "quiz evening")
    assert not mentions("Anna", "Ann")
    assert mentions("It costs €40.", "€40")
    assert mentions_any("at 7:30", ("half past seven", "7:30"))
