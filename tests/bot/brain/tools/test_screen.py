"""The tool that looks at a shared screen, offered only while one is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.built_in import screen_tool
from bot.brain.tools.toolbox import Toolbox
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import told

if TYPE_CHECKING:
    from collections.abc import Sequence


class View:
    """Fake screens that show a map."""

    def __init__(self) -> None:
        self.shared: list[str] = []

    def sharing(self) -> Sequence[str]:
        """Return the names of the people who share."""
        return self.shared

    async def look(self, question: str, *, who: str | None) -> str:
        """Return a fixed description with the question."""
        return f"{who or 'Ada'} shows a map. You asked: {question}"


async def test_it_is_there_while_somebody_shares() -> None:
    """The tool is offered and can be called only while somebody shares a screen."""
    view = View()
    toolbox = Toolbox([screen_tool(lambda: view)])
    call = MessageToolCall("c", "look_at_screen", '{"question": "Which town?", "who": "Bo"}')
    assert toolbox.for_asker().offers == ()
    assert "There is no tool" in await told(toolbox.for_asker(), call)
    view.shared.append("Bo")
    assert [offer.name for offer in toolbox.for_asker().offers] == ["look_at_screen"]
    assert "Bo shows a map. You asked: Which town?" in await told(toolbox.for_asker(), call)
    assert "'question' is a required property" in await told(
        toolbox.for_asker(), MessageToolCall("c", "look_at_screen", "{}")
    )
