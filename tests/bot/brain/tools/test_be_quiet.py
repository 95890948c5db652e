"""The tool that silences the bot: for whoever is in the channel, without a press."""

from __future__ import annotations

import pytest

from bot.brain.tools.built_in import be_quiet_tools
from bot.brain.tools.tool import NOBODY, Asker
from bot.brain.tools.toolbox import Toolbox
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import ADA, told


@pytest.mark.parametrize(
    ("asker", "arguments", "silenced"),
    [
        (ADA, "{}", [(10, 1)]),
        (ADA, '{"minutes": 3}', [(3, 1)]),
        (ADA, '{"minutes": 0}', []),
        (ADA, '{"minutes": 1000000}', []),
        (Asker(1, "Ada"), "{}", []),
        (NOBODY, "{}", []),
    ],
)
async def test_whoever_is_present_silences_it(asker: Asker, arguments: str, silenced: list[tuple[int, int]]) -> None:
    """For ten minutes, or as long as they say within a day."""
    done: list[tuple[int, int]] = []

    toolbox = Toolbox(personal=lambda who: be_quiet_tools(who, lambda minutes, by: done.append((minutes, by))))
    await told(toolbox.for_asker(asker), MessageToolCall("c", "be_quiet", arguments))
    assert done == silenced
