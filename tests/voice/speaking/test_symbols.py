"""Numbers and symbols are written as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.symbols import expand_symbols


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It is 5% more.", "It is 5 percent more."),
        ("About $1,200,000 in all", "About 1200000 dollars in all"),
        ("$1 or €2.50", "1 dollar or 2.50 euros"),
        ("3 € each, $2.5M in sum", "3 euros each, 2.5 million dollars in sum"),
        ("20°C or 68 °F, turn 90°", "20 degrees Celsius or 68 degrees Fahrenheit, turn 90 degrees"),
        ("At 21:04, not 9:00", "At 21 oh 4, not 9 o'clock"),
        ("At 9:30 pm", "At 9 30 pm"),
        ("On 2026-05-01.", "On 1 May 2026."),
        ("5-10 people, 7–3 at the end", "5 to 10 people, 7 to 3 at the end"),
        ("Call 555-123", "Call 555 123"),
        ("It is -5 outside, a so-so day", "It is minus 5 outside, a so-so day"),
        ("3 + 4 = 7", "3 plus 4 equals 7"),
        ("2 * 3, x < y", "2 times 3, x less than y"),
        ("Tom & Ada, R&D", "Tom and Ada, R and D"),
        ("rated 8/10, half is 1/2, open 24/7", "rated 8 out of 10, half is one half, open 24 7"),
        ("he/she", "he or she"),
        ("#1 of them", "number 1 of them"),
        ("~5 of them, ≥3", "about 5 of them, at least 3"),
        ("120 km/h, 5 km, 16GB", "120 kilometres an hour, 5 kilometres, 16 gigabytes"),
        ("Write to ada@example.org", "Write to ada at example dot org"),
        ("Fruit, e.g. apples etc. vs. bread", "Fruit, for example apples et cetera versus bread"),
        ("Don't — it's Ada's, “really”!", "Don't — it's Ada's, “really”!"),
        ("left → right", "left to right"),
        ("and/or, w/ friends, w/o me", "and or, with friends, without me"),
        ("See /etc/passwd and ~/notes/today", "See etc passwd and notes today"),
        ("C#, F# and C++ beside .NET", "C sharp, F sharp and C plus plus beside .NET"),
        ("x^2 + y^3 = z^n", "x squared plus y cubed equals z to the power of n"),
    ],
)
def test_signs_become_words(written: str, said: str) -> None:
    """Symbols are replaced by the words that a person would read aloud."""
    assert expand_symbols(written) == said


@given(st.text(max_size=200))
def test_no_sign_is_left(text: str) -> None:
    """The result never contains a symbol that a voice would spell, or doubled spaces."""
    said = expand_symbols(text)
    assert not set(said) & set("*_`~|<>{}[]^\\#=+@/&%$€£¥°\n\t")
    assert said == " ".join(said.split())
