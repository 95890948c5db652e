"""Evenings that no chapter fits, and questions that no search expects: the prompt is bounded and makes nothing up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from compaction.context.build import build_payload
from compaction.log_events import MemoryEvent
from compaction.payload import PartKind
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest
from compaction.untrusted_text import without_marks
from tests.compaction.rooms import MemoryRoom

LIMIT = 4_000
# What both parts with chapters may take: an eighth of the limit each at most.
CHAPTERS = 2 * LIMIT // 8
# Said at the end of each evening.
ASKED = {
    "short": "Roomtone, where is the lamp?",
    "three hundred words": "Roomtone, " + "and then the lamp that you know of was somewhere " * 30 + "where is it?",
    "another language": "Roomtone, wo ist die Lampe geblieben, die wir gestern gekauft haben?",
}
SAID: dict[str, Callable[[int], str]] = {
    "no subject": lambda at: ("Yeah.", "Mhm.", "Okay.", "Haha.")[at % 4],
    "one subject": lambda at: f"The lamp burns for {at} hours in the cave of the dragon.",
    "always another subject": lambda at: f"Item {at} is {('red', 'green', 'round', 'new')[at % 4]} and costs {at}.",
}


class HeadingModel(ExtractiveSummariser):
    """A model that gives each batch a heading: the same for all, or always another."""

    def __init__(self, *, changes: bool) -> None:
        self._changes = changes

    async def fold(self, request: FoldRequest) -> Fold:
        """Return quotes under a heading."""
        heading = f"Part from {request.start}" if self._changes else "The evening"
        return replace(await super().fold(request), prompt_version="fold.v1", heading=heading)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize(
    "model",
    [None, HeadingModel(changes=False), HeadingModel(changes=True)],
    ids=["quotes", "one heading", "always another"],
)
async def test_an_odd_evening_gets_a_bounded_prompt(said: str, model: HeadingModel | None, asked: str) -> None:
    """Chapters keep their room, no line is empty, each quote was said, and each run has one line of log at its end."""
    lines = [SAID[said](at) for at in range(300)]
    async with MemoryRoom(summariser=model or ExtractiveSummariser()) as room:
        for at, line in enumerate(lines):
            await room.say(line)
            if at % 20 == 0:
                await room.fold()
        current = await room.say(ASKED[asked])
        await room.fold()
        context = room.timeline.context(current=current, max_input_tokens=LIMIT)
        payload = build_payload(context, system=["You take part."])
        started, completed = (room.logged(each) for each in (MemoryEvent.RUN_STARTED, MemoryEvent.RUN_COMPLETED))
        assert len(started) == len(completed) > 0
        assert not room.logged(MemoryEvent.RUN_FAILED)
        assert context.cursor >= len(lines) - 150
    everything = " ".join(lines)
    told = [each for each in payload if each.kind is PartKind.CHAPTER]
    assert sum(each.tokens for each in told) <= CHAPTERS
    for line in [each for part in told for each in without_marks(part.content).splitlines()[1:]]:
        _, _, rest = line.partition(", ")
        assert rest.strip(" :")
        # Facts are quotes here.
        assert all(quote.strip(" …") in everything for quote in rest.split('"')[1::2])
