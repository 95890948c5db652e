"""Replays of transcripts through the real memory: what is summarised, what is sent, and that no turn is lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import pytest

from bot.memory.replay import Replay, TranscriptClock, replay
from bot.memory.transcript import NoteLine, SaidLine, TranscriptLine
from compaction.budget.trim import TrimOptions
from compaction.model import Mode
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Summariser
from tests.fakes.turn_store import InMemoryTurnStore

NAMES = ("Ada", "Bo", "Cy")


def talk(turns: int) -> list[TranscriptLine]:
    """Return that many different turns, four seconds apart."""
    return [
        SaidLine(NAMES[number % 3], f"I put parcel {number} into shed {number % 7}.", 1_000_000_000.0 + 4 * number)
        for number in range(turns)
    ]


async def play(
    lines: Sequence[TranscriptLine],
    *,
    summariser: Summariser | None = None,
    mode: Mode = Mode.SUMMARY,
    room: int = 30_000,
    own_names: Sequence[str] = (),
    options: TrimOptions | None = None,
    searchable: bool = True,
) -> Replay:
    """Replay the lines, by default with the extractive summariser."""
    return await replay(
        lines,
        store=InMemoryTurnStore(),
        summariser=summariser or ExtractiveSummariser(),
        mode=mode,
        system=["You are in a room."],
        max_input_tokens=room,
        zone=UTC,
        own_names=own_names,
        options=options,
        searchable=searchable,
        on_event=lambda event: None,
        on_line=lambda: None,
    )


async def test_the_payload_is_reported_part_by_part() -> None:
    """The report lists system prompt, summary with its range, turns in order, notes, and the current turn last."""
    note = NoteLine("A map of the harbour.", "Bo", 1_000_000_000.0 + 4 * 69)
    result = await play([*talk(70), note])
    payload = result.report()["payload"]
    assert isinstance(payload, list)
    kinds = [part["kind"] for part in payload]
    assert kinds == ["system", "summary", *["turn"] * 59, "note", "current"]
    assert (payload[1]["seq_from"], payload[1]["seq_to"]) == (0, 9)
    assert [part["seq_from"] for part in payload if part["kind"] == "turn"] == list(range(10, 69))
    assert payload[-1]["content"].endswith("Cy: I put parcel 69 into shed 6." if 69 % 3 == 2 else "into shed 6.")
    assert set(payload[0]) == {"role", "kind", "seq_from", "seq_to", "tokens", "content"}


def test_the_transcripts_clock_never_goes_back() -> None:
    """Lines out of order do not turn the clock back, and a gap between lines advances the monotonic time too."""
    clock = TranscriptClock(100.0)
    before = clock.monotonic()
    clock.advance_to(3700.0)
    clock.advance_to(50.0)
    assert clock.now() == 3700.0
    assert clock.monotonic() - before >= 3600.0


@pytest.mark.covers("2.1")
async def test_a_rolling_replay_evicts_and_tells() -> None:
    """In mode rolling, nothing is summarised: the prompt has the newest turns and one note for all turns
    before them.
    """
    result = await play(talk(300), mode=Mode.ROLLING, room=2_000)
    report = result.report()
    assert (report["cursor"], report["summary"], result.landed) == (0, "", ())
    assert result.covered.missing == result.covered.summarised == ()
    (evicted,) = result.covered.evicted
    assert evicted[0] == 0
    note = next(part for part in result.payload if part.kind.value == "eviction_note")
    assert f"{evicted[1] + 1} messages evicted (" in note.content
    assert "memory_search" in note.content
    assert sum(part.tokens for part in result.payload) <= 2_000


async def test_the_bot_is_known_by_its_name() -> None:
    """What the bot said is not taken for a person's."""
    lines: list[TranscriptLine] = [SaidLine("Ada", "Hello.", 1_000.0), SaidLine("ROOMTONE", "Hi, Ada.", 1_004.0)]
    played = await play([*lines, SaidLine("Ada", "Well?", 1_008.0)], own_names=["Roomtone"])
    assert [part.role for part in played.payload] == ["system", "user", "assistant", "user"]
