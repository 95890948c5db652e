"""What the bot or a model tells again of forgotten words is found, also in another order."""

from __future__ import annotations

import pytest

from compaction.language.terms import terms
from compaction.memory.restating import NOTHING_FORGOTTEN, forgotten_words

SAID = ("My boat is moored behind the old lighthouse at Wickham.", "I'm vegan.", "Fine.")


@pytest.mark.parametrize(
    ("text", "others", "restated"),
    [
        ("At Wickham there is a lighthouse.", "", True),
        ("The lighthouse is tall.", "", False),
        ("At Wickham there is a lighthouse.", "Which lighthouse is that?", False),
        ("No cheese: somebody is vegan.", "", True),
        ("No cheese: somebody is vegan.", "Are there vegans?", False),
        ("The gate code is 4411.", "", False),
        ("", "", False),
    ],
)
def test_rare_words_of_one_turn_tell_it_again(text: str, others: str, *, restated: bool) -> None:
    """Two words of one turn, or half of a short one, tell it again, unless other people have said them too."""
    words = forgotten_words(SAID, {"Will"})
    assert words.restated_in(text, set(terms(others))) is restated


def test_names_and_quotations_are_told() -> None:
    """A name or a run of words is enough. A single word is rare if nobody else has said it."""
    words = forgotten_words(SAID, {"Will"})
    assert words.quoted_or_named_in("It lies behind the old lighthouse at Wickham, he said.")
    assert words.quoted_or_named_in("Ask Will about it.")
    assert not words.quoted_or_named_in("It will rain.")
    assert words.has_rare_word("The matter of Wickham goes on.", set())
    assert not words.has_rare_word("The matter of Wickham goes on.", set(terms("Wickham")))
    assert not forgotten_words(["Thank you.", "You can.", "Blue boat."]).quoted_or_named_in("You can see a blue boat.")
    assert not NOTHING_FORGOTTEN.quoted_or_named_in("Will")
    assert not NOTHING_FORGOTTEN.restated_in("Wickham")
