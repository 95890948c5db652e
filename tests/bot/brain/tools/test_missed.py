"""What somebody missed, in words that can be spoken."""

from __future__ import annotations

import pytest

from bot.brain.tools.memory import MISSED, MOST_LINES, NOTHING_MISSED, missed_tools
from bot.brain.tools.tool import Asker
from bot.brain.tools.toolbox import Toolbox
from compaction.memory.digest import Digest, DigestLine

LINES = tuple(DigestLine(float(number), f"I counted {number} boats.", "Bo") for number in range(9))


@pytest.mark.parametrize(
    ("digest", "told"),
    [
        (None, ""),
        (Digest(0.0, 9.0, 0), NOTHING_MISSED),
        (
            Digest(0.0, 9.0, 2, decisions=(DigestLine(1.0, "We meet at nine."),), last=LINES[:1]),
            "We meet at nine. Bo said: I counted 0 boats.",
        ),
        (Digest(0.0, 9.0, 9, last=LINES), " ".join(f"Bo said: {each.text}" for each in LINES[:MOST_LINES])),
    ],
)
async def test_a_latecomer_is_told_what_matters_first(digest: Digest | None, told: str) -> None:
    """Who was there all the time is told nothing of it. No model is offered the tool."""
    asked: list[int] = []

    async def missed(person_id: int) -> Digest | None:
        asked.append(person_id)
        return digest

    answers = []
    for asker in (Asker(1, "Ada", present=True), Asker(1, "Ada"), Asker()):
        use = Toolbox(personal=lambda one: missed_tools(one, missed)).for_asker(asker)
        assert use.offers == ()
        answers.append(await use.do(MISSED, {}))
    assert answers == [told, None, None]
    assert asked == [1]
