"""The log is read for what models were sent, a line at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bot.logs.reader import LogReader
from bot.memory.prompt_records import records_of
from compaction.context.record import CallRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

CALL = {"event": "model_call_sent", "level": "info", "session_id": "evening", "timestamp": "2026-01-01T20:00:00Z"}


def test_the_log_is_not_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have 120 MB, and somebody who looks at the history has it read in the process of all rooms. Also a last
    line that is not finished is read.
    """
    log = tmp_path / "roomtone.jsonl"
    log.write_text("\n".join(json.dumps({**CALL, "answer_to": turn}) for turn in range(3)))
    read: list[int] = []
    whole = LogReader.read

    def one_by_one(reader: LogReader) -> Iterator[bytes]:
        for line in whole(reader):
            read.append(json.loads(line)["answer_to"])
            yield line

    monkeypatch.setattr(LogReader, "read", one_by_one)
    records = records_of(log, "evening")
    first = next(records)
    assert isinstance(first, CallRecord)
    assert (first.answer_to, read) == (0, [0])
    assert [record.answer_to for record in records] == [1, 2]
