"""Nothing that measures, shortens or marks a text takes more than linear time, whatever a tool or a person sends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compaction.budget.tool_outputs import create_truncated_placeholder, truncate_old_tool_outputs
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, make_part
from compaction.summary.extractive import extract_quotes
from compaction.summary.port import FoldRequest
from compaction.tokens import estimate_text_tokens
from compaction.untrusted_text import defuse, inline, mark_as_data, visible
from tests.growth import LINEAR, cpu_growth

pytestmark = pytest.mark.slow

UNITS = (
    *("a-", "a", "a.", "./", "../", "a/", "C:\\", "@~", "0 errors ", "no ", "error ", "timed ", "\n", " ", "ok"),
    *(
        "<",
        "< ",
        "[",
        "[A_",
        "[INST",
        "[1",
        "<data",
        "\u200d",
        "\ufe0f",
        "１",
        "a1",
        "A",
        "aB",
        "xkcd",
        "Ada: ",
        "[21:04] ",
    ),
)
RUNS: dict[str, Callable[[str], object]] = {
    # With the key facts of the text.
    "placeholder": lambda text: create_truncated_placeholder(make_part("tool", PartKind.TOOL, text)),
    "shortening": lambda text: truncate_old_tool_outputs([make_part("tool", PartKind.TOOL, text, name="x")], 0),
    "tokens": estimate_text_tokens,
    "tokens with a digit": lambda text: estimate_text_tokens(f"{text} 1"),
    "marks": lambda text: mark_as_data("x", text),
    "one line": inline,
    "defusing": defuse,
    "invisible": visible,
}


@pytest.mark.parametrize("name", RUNS)
def test_time_grows_with_length(name: str) -> None:
    """Twice the text takes less than three times the CPU time."""
    slow = {unit: growth for unit in UNITS if (growth := cpu_growth(RUNS[name], unit)) >= LINEAR}
    assert slow == {}


@pytest.mark.parametrize("unit", ["We met. ", "a-"])
def test_quotes_of_a_long_turn(unit: str) -> None:
    """Each of many short sentences begins quotes of several lengths; a very long line has none."""

    def read(text: str) -> object:
        said = (TurnPart("1", "Ada", text),), (TurnPart("2", "Bob", text),)
        turns = tuple(Turn(Seq(seq), TurnKind.SPEECH, 0.0, 1.0, parts) for seq, parts in enumerate(said))
        return extract_quotes(FoldRequest(Seq(0), turns))

    assert cpu_growth(read, unit, chars=4_000) < LINEAR
